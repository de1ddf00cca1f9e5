"""What CUPTI's result codes mean for a user, and what to do about each."""

from typing import NamedTuple

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


class ResultError(NamedTuple):
    """What a result code of CUPTI stands for.

    Attributes:
        name: the vendor's name, less ``CUPTI_ERROR_``.
        kind: our error.
        remedy: what to do; empty where the name says all.
        slug: paragraph in docs/messages.md.
    """

    name: str
    kind: type[MansardError]
    remedy: str = ""
    slug: str = ""


_NO_CHIP = "this GPU is not one that this CUPTI knows: install a newer nvidia-cuda-cupti"
_NO_MEMORY = "there is no memory left for counters: choose '--level phases'"
_NO_MIG = "counters of this MIG slice are not available: use a whole GPU, or '--level trace'"
_FAULT = "the GPU reported a fault; see 'nvidia-smi -q' and dmesg"
_OLD = "this GPU needs the newer profiler of CUDA 12.6 or later"
_CONFIDENTIAL = "counters are closed while confidential computing is on"

#: By result code; a code that is not here has its number as its name.
RESULTS: dict[int, ResultError] = {
    1: ResultError("INVALID_PARAMETER", CollectError),
    2: ResultError("INVALID_DEVICE", DeviceError, _NO_CHIP),
    3: ResultError("INVALID_CONTEXT", DeviceError, "use the GPU once before the first step"),
    7: ResultError("INVALID_OPERATION", CollectError, _OTHER_PROFILER, slug="other-profiler"),
    8: ResultError("OUT_OF_MEMORY", CollectError, _NO_MEMORY, slug="counter-memory"),
    9: ResultError("HARDWARE", DeviceError, _FAULT),
    15: ResultError("NOT_INITIALIZED", DeviceError, _NOT_INITIALIZED, slug="cupti"),
    17: ResultError("INVALID_METRIC_NAME", CollectError, "this chip has no such counter"),
    26: ResultError("HARDWARE_BUSY", DeviceError, _OTHER_PROFILER, slug="other-profiler"),
    27: ResultError("NOT_SUPPORTED", DeviceError, "this GPU or driver does not support it"),
    33: ResultError("VIRTUALIZED_DEVICE_NOT_SUPPORTED", DeviceError, _VIRTUAL, slug="virtual-gpu"),
    35: ResultError(
        "INSUFFICIENT_PRIVILEGES", PermissionDeniedError, PERMISSION_REMEDY, slug="permission"
    ),
    36: ResultError(
        "OLD_PROFILER_API_INITIALIZED", CollectError, _OTHER_PROFILER, slug="other-profiler"
    ),
    38: ResultError("LEGACY_PROFILER_NOT_SUPPORTED", DeviceError, _OLD),
    39: ResultError(
        "MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED", CollectError, _OTHER_PROFILER, slug="other-profiler"
    ),
    40: ResultError(
        "VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES",
        PermissionDeniedError,
        _VIRTUAL,
        slug="virtual-gpu",
    ),
    41: ResultError("CONFIDENTIAL_COMPUTING_NOT_SUPPORTED", DeviceError, _CONFIDENTIAL),
    42: ResultError("CMP_DEVICE_NOT_SUPPORTED", DeviceError, "this mining GPU has no counters"),
    43: ResultError("MIG_DEVICE_NOT_SUPPORTED", DeviceError, _NO_MIG, slug="mig"),
    44: ResultError("SLI_DEVICE_NOT_SUPPORTED", DeviceError, "counters are closed while SLI is on"),
    45: ResultError("WSL_DEVICE_NOT_SUPPORTED", DeviceError, "counters do not work under WSL here"),
    46: ResultError("INVALID_CHIP_NAME", DeviceError, _NO_CHIP),
    999: ResultError("UNKNOWN", CollectError, _UNKNOWN, slug="cupti-unknown"),
}


def failure(function: str, code: int, detail: str = "") -> MansardError:
    """The error for a result code: which call failed, why, what to do."""
    known = RESULTS.get(code, ResultError(f"code {code}", CollectError))
    reason = f"{known.name}, {detail}" if detail else known.name
    remedy = f": {known.remedy}" if known.remedy else ""
    return known.kind(f"{function} failed ({reason}){remedy}", slug=known.slug)
