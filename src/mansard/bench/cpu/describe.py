"""What stands beside the ceilings of a CPU: its name, facts, provenance and caveats. Pure."""

import re
from collections.abc import Sequence
from typing import Any

from mansard.bench.cpu.limits import Microarchitecture
from mansard.bench.cpu.processor import Processor
from mansard.model.device import DeviceFacts
from mansard.model.machine import Ceiling

#: Load of the system per core, at the start, from which it is said.
_BUSY_LOAD = 0.5
_MARKS = re.compile(r"\((?:r|tm)\)|\bcpu\b|\bprocessor\b|@.*", re.IGNORECASE)
_INSTRUCTION_SETS = {
    "x86_64": re.compile(r"^(?:sse4_2|avx|fma|f16c|amx|vnni)"),
    "aarch64": re.compile(r"^(?:asimd|sve|sme|bf16|i8mm|fphp)"),
}


def machine_name(processor: Processor, core: Microarchitecture) -> str:
    """A short name that can be the stem of a file: ``cpu-amd-epyc-9r14``."""
    words = re.sub(r"[^a-z0-9]+", "-", _MARKS.sub(" ", product(processor, core)).lower())
    return f"cpu-{words.strip('-') or 'unknown'}"


def product(processor: Processor, core: Microarchitecture) -> str:
    """The model name, or LLVM's name of the core where the system tells none."""
    return processor.name or core.name


def facts_of(processor: Processor, core: Microarchitecture) -> DeviceFacts:
    """The facts that a machine file keeps of its device."""
    last = max(processor.caches, key=lambda cache: cache.level, default=None)
    return DeviceFacts(
        name=product(processor, core),
        chip=core.name if core.fma_bits is not None else None,
        sm_count=len(processor.cores),
        sm_clock_max_hz=processor.clock_max_hz,
        l2_bytes=last.size_bytes if last else None,
        dram_bytes=processor.memory_bytes,
    )


def provenance_of(
    processor: Processor, core: Microarchitecture, cpus: Sequence[int]
) -> dict[str, Any]:
    """How and where the ceilings were measured, as far as the processor tells."""
    pattern = _INSTRUCTION_SETS[processor.architecture]
    return {
        "architecture": processor.architecture,
        "core": core.name,
        "threads": len(cpus),
        "cpus": list(cpus),
        "cpus_allowed": list(processor.cpus),
        "quota_cores": processor.quota_cores,
        "pinning": "one thread on each core (sched_setaffinity)",
        "instruction_sets": sorted(flag for flag in processor.flags if pattern.match(flag)),
        "caches": [
            {"level": it.level, "size_bytes": it.size_bytes, "cpus": sorted(it.cpus)}
            for it in processor.caches
        ],
        "governor": processor.governor,
        "hypervisor": processor.hypervisor,
    }


def caveats_of(
    processor: Processor,
    core: Microarchitecture,
    cpus: Sequence[int],
    *,
    load: float,
    ceilings: Sequence[Ceiling],
) -> list[str]:
    """What a reader of a chart must know.

    Args:
        processor: what was measured on.
        core: what is documented of it.
        cpus: processors of the threads.
        load: load average of the last minute when the measurement began.
        ceilings: what was measured.
    """
    said: list[str] = []
    if processor.hypervisor:
        said.append(
            "Measured in a virtual machine: other guests share memory, the last cache and perhaps"
            " the cores, and the described sizes can differ from the real ones."
        )
    if len(cpus) < len(processor.cores):
        said.append(f"{len(cpus)} of {len(processor.cores)} cores that the process may use.")
    if processor.quota_cores is not None and processor.quota_cores < len(processor.cores):
        said.append(
            f"The control group allows {processor.quota_cores:g} cores' worth of time for"
            f" {len(processor.cores)} cores."
        )
    if load > _BUSY_LOAD * len(cpus):
        said.append(
            f"Other programs were running (load average {load:.1f} on {len(cpus)} cores): repeat"
            " on a quiet system."
        )
    if core.reason:
        said.append(core.reason)
    if "sve" in processor.flags:
        said.append(
            "Vectors of 128 bits (NEON) were measured; scalable vectors (SVE) may reach more."
        )
    unsteady = sum(it.evidence.get("settled") is False for it in ceilings)
    if unsteady:
        said.append(
            f"Samples did not agree within 3 % at the end of the warm-up for {unsteady} of"
            f" {len(ceilings)} ceilings; their evidence says which."
        )
    return said
