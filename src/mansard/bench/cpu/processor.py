"""The processor as the system describes it: cores that we may use, caches, instruction sets."""

import dataclasses
import os
import platform
from pathlib import Path

from mansard.bench.cpu.cgroup import cpu_quota, memory_left
from mansard.errors import DeviceError

_KIB = 1024
_SIZE_SUFFIX = {"K": _KIB, "M": _KIB**2, "G": _KIB**3}
_ARCHITECTURES = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "aarch64", "arm64": "aarch64"}


@dataclasses.dataclass(frozen=True, slots=True)
class Cache:
    """One data or unified cache.

    Attributes:
        level: 1 is nearest to the core.
        size_bytes: capacity.
        cpus: logical processors that share it.
    """

    level: int
    size_bytes: int
    cpus: frozenset[int]


@dataclasses.dataclass(frozen=True, slots=True)
class Processor:
    """What the system says of the processor and of our share of it.

    Attributes:
        name: model name; empty where the system does not tell (most aarch64 systems).
        architecture: ``x86_64`` or ``aarch64``.
        flags: instruction sets by the names of the kernel (``/proc/cpuinfo``).
        cpus: logical processors that this process may run on.
        cores: one logical processor of each physical core among them.
        caches: every data and unified cache of the allowed processors.
        quota_cores: processor time that control groups allow, in cores; None without a limit.
        memory_bytes: installed memory.
        memory_free_bytes: memory that may be used now.
        clock_max_hz: highest clock of the frequency driver; None where there is none.
        governor: frequency governor; None where there is none.
        hypervisor: whether the processor says that it is a virtual one.
    """

    name: str
    architecture: str
    flags: frozenset[str]
    cpus: tuple[int, ...]
    cores: tuple[int, ...]
    caches: tuple[Cache, ...]
    quota_cores: float | None = None
    memory_bytes: int | None = None
    memory_free_bytes: int | None = None
    clock_max_hz: float | None = None
    governor: str | None = None
    hypervisor: bool = False

    @property
    def threads_allowed(self) -> int:
        """Threads that can run at once, undisturbed: a core each, within the quota."""
        if self.quota_cores is None:
            return len(self.cores)
        return max(1, min(len(self.cores), int(self.quota_cores)))


def read_processor(
    root: Path = Path("/"), *, machine: str | None = None, allowed: frozenset[int] | None = None
) -> Processor:
    """Read the description of the processor that this process runs on.

    Args:
        root: root of the file system (tests give their own).
        machine: architecture as ``platform.machine()`` names it.
        allowed: logical processors that may be used; by default the affinity of the process.

    Raises:
        DeviceError: another system than Linux, or an architecture without kernels.
    """
    machine = machine or platform.machine()
    architecture = _ARCHITECTURES.get(machine.lower())
    if architecture is None:
        raise DeviceError(
            f"There are no CPU kernels for {machine!r}: x86_64 and aarch64 only.",
            slug="cpu-architecture",
        )
    if allowed is None:
        if not hasattr(os, "sched_getaffinity"):
            raise DeviceError(
                "CPU ceilings need Linux, which can pin a thread to a core.", slug="cpu-system"
            )
        allowed = frozenset(os.sched_getaffinity(0))
    cpus = tuple(sorted(allowed))
    described = _cpuinfo(root)
    flags = frozenset((described.get("flags") or described.get("Features") or "").split())
    memory = _meminfo(root)
    left = [value for value in (memory.get("MemAvailable"), memory_left(root)) if value is not None]
    frequency = root / f"sys/devices/system/cpu/cpu{cpus[0]}/cpufreq"
    clock_khz = _text(frequency / "cpuinfo_max_freq")
    return Processor(
        name=described.get("model name", ""),
        architecture=architecture,
        flags=flags,
        cpus=cpus,
        cores=_one_per_core(root, cpus),
        caches=_caches(root, cpus),
        quota_cores=cpu_quota(root),
        memory_bytes=memory.get("MemTotal"),
        memory_free_bytes=min(left, default=None),
        clock_max_hz=1000.0 * int(clock_khz) if clock_khz.isdecimal() else None,
        governor=_text(frequency / "scaling_governor") or None,
        hypervisor="hypervisor" in flags,
    )


def parse_cpu_list(text: str) -> frozenset[int]:
    """Read a list of processors as the kernel writes it: ``0-3,8`` is 0, 1, 2, 3 and 8."""
    cpus: set[int] = set()
    for part in text.strip().split(","):
        first, _, last = part.partition("-")
        if first.isdecimal() and (not last or last.isdecimal()):
            end = int(last or first)
            # No machine has a million processors: a longer range is a broken file.
            cpus.update(range(int(first), min(end, int(first) + 1_000_000) + 1))
    return frozenset(cpus)


def _one_per_core(root: Path, cpus: tuple[int, ...]) -> tuple[int, ...]:
    taken: set[int] = set()
    cores: list[int] = []
    for cpu in cpus:
        if cpu in taken:
            continue
        topology = root / f"sys/devices/system/cpu/cpu{cpu}/topology"
        siblings = _text(topology / "core_cpus_list") or _text(topology / "thread_siblings_list")
        taken |= parse_cpu_list(siblings) | {cpu}
        cores.append(cpu)
    return tuple(cores)


def _caches(root: Path, cpus: tuple[int, ...]) -> tuple[Cache, ...]:
    found: set[Cache] = set()
    for cpu in cpus:
        for folder in sorted(root.glob(f"sys/devices/system/cpu/cpu{cpu}/cache/index*")):
            level, size = _text(folder / "level"), _size_bytes(_text(folder / "size"))
            if _text(folder / "type") in ("Data", "Unified") and level.isdecimal() and size:
                shared = parse_cpu_list(_text(folder / "shared_cpu_list")) | {cpu}
                found.add(Cache(int(level), size, shared))
    return tuple(sorted(found, key=lambda cache: (cache.level, min(cache.cpus))))


def _size_bytes(text: str) -> int:
    number = text.rstrip("KMG")
    if not number.isdecimal():
        return 0
    return int(number) * _SIZE_SUFFIX.get(text[len(number) :], 1)


def _cpuinfo(root: Path) -> dict[str, str]:
    """The first processor of /proc/cpuinfo."""
    fields: dict[str, str] = {}
    for line in _text(root / "proc/cpuinfo").splitlines():
        key, colon, value = line.partition(":")
        if colon:
            fields.setdefault(key.strip(), value.strip())
    return fields


def _meminfo(root: Path) -> dict[str, int]:
    fields: dict[str, int] = {}
    for line in _text(root / "proc/meminfo").splitlines():
        key, _, value = line.partition(":")
        words = value.split()
        if len(words) == 2 and words[0].isdecimal():
            fields[key] = int(words[0]) * _KIB
    return fields


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""
