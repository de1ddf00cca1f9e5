"""Rules of the advice on kernels whose work could be done faster.

Each rule tells whether a kernel is its case, and what to do about all that are. What the rules
mean stands in docs/advice.md.
"""

from collections.abc import Sequence

from mansard.analysis.advice_case import (
    OPTIMIZER,
    Case,
    floor_of,
    keys_of,
    level_word,
    listed,
    recoverable_of,
    seconds,
    time_of,
)
from mansard.model.advice import Advice
from mansard.model.analysis import Kernel, quotient
from mansard.model.machine import Machine
from mansard.units import format_share

#: A level passes on what it gets if it moves at most this much more than DRAM does: counters of
#: streams on V100 and H200 agree within a few percent at L1 and DRAM.
_NO_REUSE = 1.25
#: Below this share of its highest floor a kernel waits rather than works.
_WORKS = 0.5
#: Products and convolutions of a usual size reach more of a compute roof than this.
_GOOD_COMPUTE = 0.75
#: This much more through L1 than through L2 means that lines are fetched again and again.
_FETCHED_AGAIN = 2.0
#: Tensor cores are worth a change when they at least halve the least time.
_HALF = 0.5

#: What bounds a product on the CUDA cores: their pipe, or the memory inside the SM that feeds it.
#: Tensor cores need far less of that for the same work.
_ON_CUDA_CORES = ("vector", "shared", "l1")

#: Where the work of a vector path can go, best choice first.
_ON_TENSOR = {
    "vector fp64": ("tensor fp64",),
    "vector fp32": ("tensor tf32", "tensor bf16", "tensor fp16"),
    "vector fp16": ("tensor fp16", "tensor bf16"),
}


def is_off_tensor(kernel: Kernel, case: Case) -> bool:
    """Whether a product or convolution runs on the CUDA cores, and would gain by not doing so."""
    if kernel.family not in ("gemm", "conv", "attention") or kernel.bound not in _ON_CUDA_CORES:
        return False
    if case.told("tensor-not-collected") or case.told("tensor-work-unseen"):
        return False  # unknown is not zero
    if any(flop for path, flop in kernel.flop_by_path.items() if path.startswith("tensor")):
        return False
    least_s = _on_tensor_s(kernel, case.machine)
    vector_s = kernel.floors_s.get("vector")
    return least_s is not None and vector_s is not None and least_s <= _HALF * vector_s


def off_tensor(kernels: Sequence[Kernel], case: Case) -> Advice:
    """Tensor-eligible work on the vector pipe."""
    time_s = time_of(kernels)
    least_s = sum(_on_tensor_s(kernel, case.machine) or 0.0 for kernel in kernels)
    source = _main_vector_path(kernels[0]) or ""
    target = _target(source, case.machine)
    path = target[0] if target else ""
    if case.analysis.totals.flop_by_path.get(path):
        remedy = (
            f"Other kernels of the run do use {path}: look at sizes (multiples of 8), groups and "
            "layout (channels-last) of these"
        )
    elif path == "tensor tf32":
        remedy = "Allow TF32 (torch.set_float32_matmul_precision('high')) or use AMP"
    elif path == "tensor fp64":
        remedy = "Use a library that has double-precision tensor products"
    else:
        remedy = "Use automatic mixed precision (AMP), with sizes that are multiples of 8"
    return Advice(
        rule="off-tensor",
        sentence=f"No tensor work in {listed(kernels)} ({seconds(time_s)}), products or "
        f"convolutions that {source} computes: on {path} the same work has a floor of "
        f"{seconds(least_s)}. {remedy}.",
        recoverable_s=max(0.0, time_s - least_s),
        kernels=keys_of(kernels),
        evidence={
            "duration_s": time_s,
            "floor_on_tensor_s": least_s,
            "path": source,
            "tensor_path": path,
        },
    )


def _main_vector_path(kernel: Kernel) -> str | None:
    work = {path: kernel.flop_by_path.get(path) or 0.0 for path in _ON_TENSOR}
    most = max(work, key=lambda path: work[path])
    return most if work[most] else None


def _target(source: str, machine: Machine | None) -> tuple[str, float] | None:
    for path in _ON_TENSOR.get(source, ()):
        ceiling = machine.compute(path) if machine else None
        if ceiling is not None and ceiling.value:
            return path, ceiling.value
    return None


def _on_tensor_s(kernel: Kernel, machine: Machine | None) -> float | None:
    """Its floor if all of its floating-point work were tensor work."""
    source = _main_vector_path(kernel)
    target = _target(source, machine) if source else None
    if target is None or kernel.flop is None:
        return None
    # Traffic nearer to the SM goes with the kernel: tensor cores are fed by larger tiles. What
    # comes from device memory has to come anyway.
    others = [kernel.floors_s.get(name) or 0.0 for name in ("dram", "launch")]
    return max(kernel.flop / target[1], *others)


def has_no_reuse(kernel: Kernel, case: Case) -> bool:
    """Whether it streams at a fair part of the bandwidth, and no cache serves anything twice.

    Not an optimizer: it has to read and write every parameter once, and has no neighbours.
    """
    del case
    return (
        not OPTIMIZER.search(kernel.key or "")
        and kernel.bound in ("dram", "l2")
        and kernel.efficiency is not None
        and kernel.efficiency >= _WORKS
        and _passes_on(kernel)
    )


def no_reuse(kernels: Sequence[Kernel], case: Case) -> Advice:
    """Data pass once: only fewer passes help."""
    time_s, floor_s = time_of(kernels), floor_of(kernels)
    without_s = sum(_floor_without_traffic(kernel) for kernel in kernels)
    share = quotient(floor_s, time_s)
    text = (
        f"Every byte is used once in {listed(kernels)} ({seconds(time_s)}), at "
        f"{format_share(share)} of the memory roof: no cache serves it again. Only fewer passes "
        "help: fuse with the neighbours, or tile; "
        f"the computing alone needs {seconds(without_s)}"
    )
    if any(origin.cache_control == "all" for origin in case.analysis.provenance):
        text += (
            " (the profiler flushed the caches before each kernel, so what L2 keeps from one "
            "kernel to the next does not show)"
        )
    return Advice(
        rule="no-reuse",
        sentence=f"{text}.",
        recoverable_s=max(0.0, time_s - without_s),
        kernels=keys_of(kernels),
        evidence={
            "duration_s": time_s,
            "floor_s": floor_s or 0.0,
            "floor_without_traffic_s": without_s,
            "bytes_dram": sum(kernel.bytes_by_level.get("dram") or 0.0 for kernel in kernels),
        },
    )


def _passes_on(kernel: Kernel) -> bool:
    """Whether L1 or L2 moves as much as DRAM does: what comes in is used once."""
    ratios = [
        quotient(kernel.bytes_by_level.get(level), kernel.bytes_by_level.get("dram"))
        for level in ("l1", "l2")
        if level not in kernel.partial_levels and "dram" not in kernel.partial_levels
    ]
    # Less than DRAM means that the level does not see all of the traffic.
    return any(ratio is not None and 1 / _NO_REUSE <= ratio <= _NO_REUSE for ratio in ratios)


def _floor_without_traffic(kernel: Kernel) -> float:
    return max(kernel.floors_s.get(name) or 0.0 for name in ("vector", "tensor", "launch"))


def is_latency_bound(kernel: Kernel, case: Case) -> bool:
    """Whether a kernel of some length is far from the roof of the level that binds it."""
    del case
    return (
        kernel.bound in kernel.bytes_by_level
        and not kernel.tiny
        and kernel.efficiency is not None
        and kernel.efficiency < _WORKS
    )


def latency_bound(kernels: Sequence[Kernel], case: Case) -> Advice:
    """No resource is busy: more work in flight, or another algorithm."""
    del case
    time_s, floor_s = time_of(kernels), floor_of(kernels)
    share = quotient(floor_s, time_s)
    text = (
        f"Nothing is busy in {listed(kernels)} ({seconds(time_s)}): the highest floor, mostly "
        f"{level_word(kernels[0].bound or '')}, is {format_share(share)} of the time, which "
        "leaves latency. Put more bytes in flight (wider loads, more blocks per SM, coalesced "
        "access), or take another algorithm"
    )
    evidence: dict[str, float | str] = {"duration_s": time_s, "floor_s": floor_s or 0.0}
    again = [kernel for kernel in kernels if _l1_over_l2(kernel) >= _FETCHED_AGAIN]
    if again:
        times = _l1_over_l2(again[0])
        text += (
            f". {listed(again[:1])} moves {times:.2g} times the bytes of L2 through L1: scattered "
            "access, or reuse that belongs into shared memory"
        )
        evidence["l1_over_l2_bytes"] = times
    passing = [k for k in kernels if _l1_over_l2(k) < _FETCHED_AGAIN and _passes_on(k)]
    if passing:
        text += f". No cache serves a byte twice in {listed(passing[:2])}"
    return Advice(
        rule="latency-bound",
        sentence=f"{text}.",
        recoverable_s=recoverable_of(kernels),
        kernels=keys_of(kernels),
        evidence=evidence,
    )


def _l1_over_l2(kernel: Kernel) -> float:
    return quotient(kernel.bytes_by_level.get("l1"), kernel.bytes_by_level.get("l2")) or 0.0


def is_below_compute_roof(kernel: Kernel, case: Case) -> bool:
    """Whether a kernel that computes is far from the roof of its pipe."""
    del case
    return (
        kernel.bound in ("vector", "tensor")
        and not kernel.tiny
        and kernel.efficiency is not None
        and kernel.efficiency < _GOOD_COMPUTE
    )


def below_compute_roof(kernels: Sequence[Kernel], case: Case) -> Advice:
    """Compute-bound, but not near the roof."""
    del case
    time_s, floor_s = time_of(kernels), floor_of(kernels)
    share = quotient(floor_s, time_s)
    return Advice(
        rule="below-compute-roof",
        sentence=f"Computing bounds {listed(kernels)} ({seconds(time_s)}), at "
        f"{format_share(share)} of the roof. Look at sizes that fill tiles and whole waves of "
        "blocks, at work beside the products (epilogues, index arithmetic), and at newer or "
        "tuned library kernels.",
        recoverable_s=recoverable_of(kernels),
        kernels=keys_of(kernels),
        evidence={"duration_s": time_s, "floor_s": floor_s or 0.0},
    )
