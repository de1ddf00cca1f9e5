"""What CUPTI's result codes mean for a user, and what to do about each."""

from mansard.errors import CollectError, DeviceError, MansardError, PermissionDeniedError

#: How to get permission; also used by the doctor.
PERMISSION_REMEDY = (
    "the driver lets only administrators read GPU counters (ERR_NVGPUCTRPERM). An administrator of "
    "the host can run 'echo options nvidia NVreg_RestrictProfilingToAdminUsers=0 > "
    "/etc/modprobe.d/nvidia-profiling.conf' and reload the driver or reboot; a container needs "
    "--cap-add=SYS_ADMIN; else run as root. '--level trace' needs no permission"
)
_OTHER_PROFILER = (
    "another profiler holds the GPU's counters. Stop ncu, Nsight Systems with GPU metrics, another "
    "CUPTI program, or pause DCGM with 'dcgmi profiling --pause', then run again"
)
_VIRTUAL = (
    "this virtual GPU does not give counters to guests. The administrator of the host can set the "
    "vGPU plugin option enable_profiling=1; '--level trace' may work without"
)
_NOT_INITIALIZED = (
    "CUPTI found no usable driver, or its companions libnvperf_host.so and libnvperf_target.so are "
    "not beside it. 'mansard doctor' says which"
)
_UNKNOWN = (
    "often another profiler holds the GPU, or a CUDA graph was launched in a counter pass "
    "('--level phases' works with graphs). 'mansard doctor' looks for the causes"
)

#: Result code of CUPTI -> (its name, error class, remedy, slug).
RESULTS: dict[int, tuple[str, type[MansardError], str, str]] = {
    1: ("INVALID_PARAMETER", CollectError, "", ""),
    2: ("INVALID_DEVICE", DeviceError, "this GPU is not one that this CUPTI knows", ""),
    3: ("INVALID_CONTEXT", DeviceError, "use the GPU once before the first step", ""),
    7: ("INVALID_OPERATION", CollectError, _OTHER_PROFILER, "other-profiler"),
    8: (
        "OUT_OF_MEMORY",
        CollectError,
        "there is no memory left for counters: choose '--level phases'",
        "counter-memory",
    ),
    9: ("HARDWARE", DeviceError, "the GPU reported a fault; see 'nvidia-smi -q' and dmesg", ""),
    15: (
        "NOT_INITIALIZED",
        DeviceError,
        _NOT_INITIALIZED,
        "cupti-not-initialized",
    ),
    17: ("INVALID_METRIC_NAME", CollectError, "this chip has no such counter", ""),
    26: ("HARDWARE_BUSY", DeviceError, _OTHER_PROFILER, "other-profiler"),
    27: ("NOT_SUPPORTED", DeviceError, "this GPU or driver does not support it", ""),
    33: ("VIRTUALIZED_DEVICE_NOT_SUPPORTED", DeviceError, _VIRTUAL, "virtual-gpu"),
    35: ("INSUFFICIENT_PRIVILEGES", PermissionDeniedError, PERMISSION_REMEDY, "permission"),
    36: ("OLD_PROFILER_API_INITIALIZED", CollectError, _OTHER_PROFILER, "other-profiler"),
    38: (
        "LEGACY_PROFILER_NOT_SUPPORTED",
        DeviceError,
        "this GPU needs the newer profiler of CUDA 12.6 or later",
        "",
    ),
    39: ("MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED", CollectError, _OTHER_PROFILER, "other-profiler"),
    40: (
        "VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES",
        PermissionDeniedError,
        _VIRTUAL,
        "virtual-gpu",
    ),
    41: (
        "CONFIDENTIAL_COMPUTING_NOT_SUPPORTED",
        DeviceError,
        "counters are closed while confidential computing is on",
        "",
    ),
    42: ("CMP_DEVICE_NOT_SUPPORTED", DeviceError, "this mining GPU has no counters", ""),
    43: (
        "MIG_DEVICE_NOT_SUPPORTED",
        DeviceError,
        "counters of this MIG slice are not available: use a whole GPU, or '--level trace'",
        "mig",
    ),
    44: ("SLI_DEVICE_NOT_SUPPORTED", DeviceError, "counters are closed while SLI is on", ""),
    45: ("WSL_DEVICE_NOT_SUPPORTED", DeviceError, "counters do not work under WSL here", ""),
    46: (
        "INVALID_CHIP_NAME",
        DeviceError,
        "this CUPTI does not know the chip: install a newer nvidia-cuda-cupti",
        "unknown-chip",
    ),
    999: (
        "UNKNOWN",
        CollectError,
        _UNKNOWN,
        "cupti-unknown",
    ),
}


def failure(function: str, code: int, detail: str = "") -> MansardError:
    """The error for a result code: which call failed, why, what to do."""
    name, kind, remedy, slug = RESULTS.get(code, (f"code {code}", CollectError, "", ""))
    reason = f"{name}, {detail}" if detail else name
    return kind(f"{function} failed ({reason}){': ' + remedy if remedy else ''}", slug=slug)
