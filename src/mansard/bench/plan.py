"""Which compute ceilings, studies and curves a GPU gets: arithmetic on its attributes."""

import fnmatch
from collections.abc import Iterator

import msgspec

from mansard.analysis.theoretical import theoretical
from mansard.bench import kernels
from mansard.bench.kernels import Kernel, Variant, flop_of
from mansard.bench.memory_plan import link_tasks, memory_tasks, sweep_tasks
from mansard.bench.messages import Opened, Task
from mansard.bench.variants import variants
from mansard.errors import UsageError

ARMS = ("low-toggle", "random")
STUDIES = ("fp16",)

#: The product of a library: type, path, and the instruction as it is shown.
_PRODUCTS = (
    ("fp64", "tensor fp64"),
    ("fp32", "vector fp32"),
    ("tf32", "tensor tf32"),
    ("fp16", "tensor fp16"),
    ("bf16", "tensor bf16"),
    ("e4m3", "tensor fp8"),
    ("int8", "tensor int8"),
)
_SIZES = (4096, 8192)
_MORE_SIZES = (2048, 4096, 8192, 16384)
#: A product must not take longer than this at the theoretical rate.
_MOST_PRODUCT_S = 0.08

#: Instructions per 64 bytes of a point of the intensity curve, and FLOP of one.
_POINTS = {
    "fp64": ("vector fp64", "double", "d", "fma.rn.f64 %0, %0, %0, %1;", 2, range(1, 11)),
    "fp32": ("vector fp32", "float", "f", "fma.rn.f32 %0, %0, %0, %1;", 2, range(1, 12)),
    "fp16x2": ("vector fp16", "unsigned", "r", "fma.rn.f16x2 %0, %0, %0, %1;", 4, range(12)),
}
_MMA_POINTS = range(9)
_INTENSITY_BYTES = 2 * 1024**3


class Choice(msgspec.Struct, frozen=True):
    """What the user wants measured.

    Attributes:
        everything: also what most users do not need.
        quick: leave out the curves and the smaller library sizes.
        only: patterns of names; empty means all.
        study: a study instead of the ceilings.
    """

    everything: bool = False
    quick: bool = False
    only: tuple[str, ...] = ()
    study: str | None = None


def make_plan(opened: Opened, choice: Choice) -> tuple[Task, ...]:
    """The tasks for a device, in the order in which they run.

    Memory comes first: compute ceilings are compared with its ridges.

    Raises:
        UsageError: a study that does not exist, or a pattern that matches nothing.
    """
    if choice.study is not None:
        if choice.study not in STUDIES:
            raise UsageError(f"no study '{choice.study}': there is {', '.join(STUDIES)}")
        tasks = [*_half_tasks(), *_fp16_roofs(opened)]
    else:
        tasks = [*memory_tasks(opened), *_compute_tasks(opened, everything=choice.everything)]
        tasks += _library_tasks(opened, choice)
        if choice.everything:
            tasks += _wmma_product(opened)
        if not choice.quick:
            tasks += [*sweep_tasks(opened), *_intensity_tasks(opened)]
        tasks += link_tasks(opened)
    if not choice.only:
        return tuple(tasks)
    chosen = tuple(task for task in tasks if any(matches(task.name, p) for p in choice.only))
    if not chosen:
        known = "\n  ".join(task.name for task in tasks)
        raise UsageError(f"--only matches none of the ceilings of this GPU:\n  {known}")
    return chosen


def matches(name: str, pattern: str) -> bool:
    """Whether a name contains a text, or matches a pattern with ``*`` and ``?``; in any case."""
    name, pattern = name.casefold(), pattern.casefold()
    if any(character in pattern for character in "*?["):
        return fnmatch.fnmatchcase(name, pattern)
    return pattern in name


def _compute_tasks(opened: Opened, *, everything: bool) -> Iterator[Task]:
    # All of one arm, then all of the other: after random data at the power limit the clock needs
    # a second to come back, and would be too low for the arm that should run at its highest.
    for arm in ARMS:
        for kernel in kernels.kernels():
            if kernel.runs_on(opened.capability) and (everything or not kernel.extra):
                yield _compute_task(kernel, arm)


def _compute_task(kernel: Kernel, arm: str) -> Task:
    return Task(
        name=f"{kernel.path} {kernel.instruction} {arm}",
        recipe="compute",
        kind="compute",
        unit="flop/s",
        path=kernel.path,
        instruction=kernel.instruction,
        arm="random" if arm == "random" else "low-toggle",
        variants=variants(kernel),
        operand=kernel.operand,
        accumulator=kernel.accumulator,
        shape=kernel.shape,
        expected_s=0.35 if arm == "random" else 0.3,
    )


def _library_tasks(opened: Opened, choice: Choice) -> Iterator[Task]:
    machine = theoretical(opened.facts)
    for operand, path in _PRODUCTS:
        roof = machine.compute(path) if machine is not None else None
        if roof is None or roof.value is None:
            continue  # this GPU has no such path, or none is known
        if operand == "e4m3" and opened.capability < (8, 9):
            continue
        wanted = _MORE_SIZES if choice.everything else _SIZES[:1] if choice.quick else _SIZES
        sizes = [n for n in wanted if 2 * n**3 / roof.value <= _MOST_PRODUCT_S] or [1024]
        yield Task(
            name=f"{path} library",
            recipe="gemm",
            kind="compute",
            unit="flop/s",
            path=path,
            instruction="library",
            arm="random",
            operand=operand,
            numbers={f"n{index}": float(n) for index, n in enumerate(sizes)},
            expected_s=0.9,
            remark="attained by the library's product of square matrices: not a limit",
        )


def _half_tasks() -> Iterator[Task]:
    meaning = {
        1: "scalar half",
        2: "half2, multiply and add apart",
        3: "half2, fused",
        4: "half2, fused, 32-bit indices",
    }
    for version, text in meaning.items():
        macros = (("PAIRS", "512"), ("VERSION", str(version)))
        yield Task(
            name=f"vector fp16 v{version}",
            recipe="half",
            kind="compute",
            unit="flop/s",
            path="vector fp16",
            instruction=f"study v{version}",
            arm="low-toggle",
            variants=(
                Variant(source="half.cu", entry="half_study", macros=macros, threads=256, blocks=8),
            ),
            remark=f"{text}; in the form of the authors' benchmark: not a limit",
        )


def _fp16_roofs(opened: Opened) -> Iterator[Task]:
    for kernel in kernels.kernels():
        if kernel.path == "vector fp16" and kernel.runs_on(opened.capability):
            yield _compute_task(kernel, "random")


def _wmma_product(opened: Opened) -> Iterator[Task]:
    if opened.capability >= (7, 0):
        yield Task(
            name="tensor fp16 wmma product",
            recipe="wmma product",
            kind="compute",
            unit="flop/s",
            path="tensor fp16",
            instruction="wmma product",
            arm="random",
            variants=(
                Variant(
                    source="wmma.cu",
                    entry="wmma_product",
                    macros=(("ILP", "4"), ("STEPS", "8")),
                    threads=1024,
                ),
            ),
            numbers={"n": 4096.0},
            expected_s=1.5,
            remark="one warp per tile, straight from global memory, as first WMMA programs were "
            "written: not a limit",
        )


def _intensity_tasks(opened: Opened) -> Iterator[Task]:
    l2 = float(opened.facts.l2_bytes or 0)
    for level, size in (("l2", 0.4 * l2), ("dram", float(_INTENSITY_BYTES))):
        if not size:
            continue
        for operand, (path, value, constraint, statement, flop, powers) in _POINTS.items():
            macros = {
                "VALUE": value,
                "CONSTRAINT": f'"{constraint}"',
                "STATEMENT": f'"{statement}"',
            }
            instruction = statement.split()[0]
            yield _intensity_task(
                "intensity.cu", macros, powers, flop, path, operand, instruction, level, size
            )
        if opened.capability >= (8, 0):
            kernel = next(k for k in kernels.kernels() if k.path == "tensor bf16")
            ptx = kernels.mma_ptx(kernel)
            # A warp shares an instruction; the point counts FLOP of one thread's 64 bytes.
            yield _intensity_task(
                "intensity_mma.cu",
                {"PTX": f'"{ptx}"'},
                _MMA_POINTS,
                flop_of(kernel) // 32,
                kernel.path,
                "bf16",
                "mma.sync",
                level,
                size,
            )


def _intensity_task(  # noqa: PLR0917  (one row of a table)
    source: str,
    macros: dict[str, str],
    powers: range,
    flop: int,
    path: str,
    operand: str,
    instruction: str,
    level: str,
    size: float,
) -> Task:
    points = " ".join(f"POINT({1 << power})" for power in powers)
    defines = tuple(sorted({**macros, "THREADS": "512", "POINTS": points}.items()))
    return Task(
        name=f"intensity {path} {level}",
        recipe="intensity",
        kind=None,
        path=path,
        instruction=instruction,
        level=level,
        operand=operand,
        variants=tuple(
            Variant(
                source=source,
                entry=f"intensity_{1 << power}",
                macros=defines,
                threads=512,
                blocks=4,
                work=float(flop << power),
            )
            for power in powers
        ),
        numbers={"bytes": size},
        expected_s=0.25,
    )
