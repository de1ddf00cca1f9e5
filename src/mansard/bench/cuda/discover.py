"""Opening a device: what it is, what the driver and the sensors say of it."""

import importlib.metadata
import platform

from cuda.bindings import driver

from mansard.bench.cuda.compile import nvrtc_version, supported_architectures
from mansard.bench.cuda.device import Gpu, check
from mansard.bench.cuda.sensors import Sensors
from mansard.bench.cuda.session import Session
from mansard.bench.cuda.topology import neighbour, uuid_of
from mansard.bench.messages import Opened
from mansard.bench.neighbour import NVLINK
from mansard.errors import DeviceError
from mansard.model.device import DeviceFacts
from mansard.units import unit_factor

_KHZ = unit_factor("khz")[0]
#: Compute capabilities that one chip only has.
_CHIPS = {"7.0": "GV100", "8.0": "GA100", "9.0": "GH100"}
_BUSY_PERCENT = 5
_SLICE = (
    "This is a MIG slice: its SMs and memory are a part of the GPU's, and its neighbours share "
    "power and clocks. Limits of device memory and L2 are not known for a slice."
)
_PACKAGES = ("cuda-core", "cuda-bindings", "nvidia-ml-py")


def open_device(index: int) -> tuple[Session, Opened]:
    """Open a GPU by its CUDA index.

    Raises:
        DeviceError: there is no driver, no such device, or the driver is too old.
    """
    _start_driver(index)
    uuid = uuid_of(index)
    sensors = Sensors(uuid)
    shared = _sharing(sensors)  # before this process shows up on the GPU itself
    gpu = Gpu(index)
    facts = _facts(gpu, sensors, uuid)
    numbers = _numbers(gpu, facts)
    numbers.update(_link_numbers(gpu, sensors))
    session = Session(gpu, sensors, numbers=numbers)
    opened = Opened(
        facts=facts,
        numbers=numbers,
        texts=_texts(sensors),
        architectures=supported_architectures(),
        caveats=(*shared, *_slice(facts)),
    )
    return session, opened


def count_devices() -> int:
    """Number of GPUs that CUDA shows to this process; none is opened.

    Raises:
        DeviceError: there is no driver or no GPU, or the driver is too old.
    """
    _start_driver(0)
    return int(check(driver.cuDeviceGetCount()))


def _start_driver(index: int) -> None:
    try:
        (status,) = driver.cuInit(0)
    except Exception as error:  # cuda.pathfinder: the library of the driver is not there
        raise DeviceError("there is no NVIDIA driver on this machine") from error
    if status != driver.CUresult.CUDA_SUCCESS:
        _, name = driver.cuGetErrorName(status)
        text = name.decode() if isinstance(name, bytes) else str(name)
        help_ = {
            "CUDA_ERROR_NO_DEVICE": "the driver sees no GPU (is CUDA_VISIBLE_DEVICES empty?)",
            "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH": "the driver's parts are of different versions: "
            "reboot, or mount the same driver into the container",
        }.get(text, f"the driver does not start: {text}")
        raise DeviceError(help_)
    version = int(check(driver.cuDriverGetVersion()))
    compiler = nvrtc_version()
    if version // 1000 < compiler[0]:
        raise DeviceError(
            f"the driver is for CUDA {version // 1000}.{version % 1000 // 10}, older than the "
            f"installed CUDA {compiler[0]} packages: update the driver, or "
            "pip install 'mansard[cuda12]'"
        )
    count = int(check(driver.cuDeviceGetCount()))
    if index >= count:
        raise DeviceError(f"there is no cuda:{index}; the driver shows {count} GPU(s)")


def _facts(gpu: Gpu, sensors: Sensors, uuid: str) -> DeviceFacts:
    major, minor = gpu.device.compute_capability
    capability = f"{major}.{minor}"
    memory_hz = gpu.attribute("MEMORY_CLOCK_RATE") * _KHZ or sensors.max_clock_hz(2)
    clock_hz = gpu.attribute("CLOCK_RATE") * _KHZ or sensors.max_clock_hz(1)
    return DeviceFacts(
        name=gpu.device.name,
        chip=_CHIPS.get(capability),
        compute_capability=capability,
        sm_count=gpu.sms,
        sm_clock_max_hz=clock_hz or None,
        dram_clock_hz=memory_hz or None,
        dram_bus_bits=gpu.attribute("GLOBAL_MEMORY_BUS_WIDTH") or None,
        l2_bytes=gpu.attribute("L2_CACHE_SIZE") or None,
        dram_bytes=int(check(driver.cuDeviceTotalMem(gpu.device.device_id))),
        uuid=uuid or None,
    )


def _numbers(gpu: Gpu, facts: DeviceFacts) -> dict[str, float]:
    return {
        "l2_bytes": float(facts.l2_bytes or 0),
        "shared_per_sm_bytes": float(gpu.attribute("MAX_SHARED_MEMORY_PER_MULTIPROCESSOR")),
        "shared_per_block_bytes": float(gpu.attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN")),
        "threads_per_sm": float(gpu.attribute("MAX_THREADS_PER_MULTIPROCESSOR")),
        "free_bytes": float(gpu.free_bytes()),
        "integrated": float(gpu.attribute("INTEGRATED")),
    }


def _link_numbers(gpu: Gpu, sensors: Sensors) -> dict[str, float]:
    """Peak of PCIe, and the first neighbour that can be reached."""
    found: dict[str, float] = {}
    pcie = sensors.pcie_peak()
    if pcie is not None:
        found["pcie_byte_per_s"], found["pcie_generation"], found["pcie_width"] = pcie
    near = gpu.device.device_id
    for other in range(int(check(driver.cuDeviceGetCount()))):
        if other != near and check(driver.cuDeviceCanAccessPeer(near, other)):
            found["peer"] = float(other)
            way = neighbour(sensors, near, other, uuid_of(other))
            found["peer_is_nvlink"] = float(way.name == NVLINK)
            if way.links is not None:
                found["nvlink_links"] = float(way.links)
            break
    return found


def _texts(sensors: Sensors) -> dict[str, str]:
    version = int(check(driver.cuDriverGetVersion()))
    found = {
        "driver_version": sensors.driver() or "",
        "cuda_version": f"{version // 1000}.{version % 1000 // 10}",
        "nvrtc_version": ".".join(map(str, nvrtc_version())),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
    }
    limit = sensors.power_limit_w()
    if limit is not None:
        found["power_limit_w"] = f"{limit:g}"
    for package in _PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {name: value for name, value in found.items() if value}


def _sharing(sensors: Sensors) -> tuple[str, ...]:
    """What to say when somebody else computes on the GPU."""
    found = []
    others = sensors.others()
    if others:
        found.append(
            f"The GPU was shared while it was measured: {', '.join(others[:5])}. "
            "Stop other programs and measure again."
        )
    busy = sensors.busy_percent()
    if busy is not None and busy > _BUSY_PERCENT:
        found.append(f"The GPU was {busy:.0f} % busy before the measurement began.")
    return tuple(found)


def _slice(facts: DeviceFacts) -> tuple[str, ...]:
    if "MIG" not in (facts.name or ""):
        return ()
    return (_SLICE,)
