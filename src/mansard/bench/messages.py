"""What the measuring parent and its child processes say to each other, one JSON value a line."""

from typing import Any, Literal

import msgspec

from mansard.bench.kernels import Variant
from mansard.model.device import DeviceFacts

#: What to do without the packages that open a GPU; the doctor says the same.
INSTALL_BINDINGS = (
    "pip install 'mansard[cuda]' (cuda-core, cuda-bindings; 'mansard[cuda12]' for drivers of "
    "CUDA 12)"
)

Recipe = Literal[
    "compute",
    "shared",
    "cache",
    "l2",
    "partition",
    "stream",
    "memcpy",
    "latency",
    "launch",
    "link",
    "gemm",
    "wmma product",
    "half",
    "working set",
    "intensity",
]


class Settings(msgspec.Struct, frozen=True):
    """How long to measure.

    Attributes:
        repeats: samples of a ceiling.
        sample_s: length of a sample.
        warm_s: least warm-up of a ceiling with random data, so that the power limit acts.
        patience_s: longest warm-up, settled or not.
        curve_repeats: samples of a point of a curve.
    """

    repeats: int = 20
    sample_s: float = 0.006
    warm_s: float = 0.2
    patience_s: float = 0.7
    curve_repeats: int = 3


QUICK = Settings(repeats=5, sample_s=0.002, warm_s=0.03, patience_s=0.2, curve_repeats=2)


class Task(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to measure: a ceiling, or a curve.

    Attributes:
        name: unique; what ``--only`` is matched against.
        recipe: which part of the child measures it.
        kind: of the ceiling; None for a curve.
        unit: of the ceiling.
        path: compute path.
        instruction: how it is reached.
        level: memory level.
        access: read, write, copy, triad; stream, graph node, synchronize.
        arm: data.
        variants: geometries to try; the fastest one is measured.
        operand: type of the data.
        accumulator: type of the sums.
        shape: M, N, K of a matrix instruction.
        numbers: further arguments of the recipe.
        expected_s: rough time it takes, for the time left.
        remark: what belongs to the number whatever it is.
    """

    name: str
    recipe: Recipe
    kind: Literal["compute", "bandwidth", "latency", "launch"] | None
    unit: Literal["flop/s", "byte/s", "s"] = "byte/s"
    path: str | None = None
    instruction: str | None = None
    level: str | None = None
    access: str | None = None
    arm: Literal["random", "low-toggle"] | None = None
    variants: tuple[Variant, ...] = ()
    operand: str | None = None
    accumulator: str | None = None
    shape: tuple[int, int, int] | None = None
    numbers: dict[str, float] = {}
    expected_s: float = 0.3
    remark: str | None = None


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a child found.

    Attributes:
        values: samples in the unit of the task.
        clocks_hz: mean SM clock of each sample; None where it could not be read.
        evidence: what was checked, and how.
        refusal: why there is no value.
        remark: what belongs to the number.
        curves: further series, by name: columns and rows.
    """

    values: tuple[float, ...] = ()
    clocks_hz: tuple[float | None, ...] = ()
    evidence: dict[str, Any] = {}
    refusal: str | None = None
    remark: str | None = None
    curves: dict[str, Any] = {}


class Opened(msgspec.Struct, frozen=True, kw_only=True):
    """The device as the child found it.

    Attributes:
        facts: of the device.
        numbers: further attributes (sizes of shared memory, resident threads, free memory, ...).
        texts: driver, libraries, conditions, for the provenance.
        architectures: what NVRTC compiles for.
        caveats: what a reader must know (another process on the GPU, MIG, ...).
    """

    facts: DeviceFacts
    numbers: dict[str, float] = {}
    texts: dict[str, str] = {}
    architectures: tuple[int, ...] = ()
    caveats: tuple[str, ...] = ()

    @property
    def capability(self) -> tuple[int, int]:
        """Compute capability as numbers; (0, 0) if it is not known."""
        major, _, minor = (self.facts.compute_capability or "0.0").partition(".")
        return int(major), int(minor or 0)


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What the parent asks of a child.

    Attributes:
        do: ``count`` the devices, ``open`` one, ``build`` a variant, or ``measure`` a task.
        device: index of the device (open).
        arch: architecture to compile for; the child appends the feature letter itself.
        variant: what to build.
        task: what to measure.
        settings: how long.
    """

    do: Literal["count", "open", "build", "measure"]
    device: int = 0
    arch: str = ""
    variant: Variant | None = None
    task: Task | None = None
    settings: Settings = Settings()


class Built(msgspec.Struct, frozen=True, kw_only=True):
    """A compiled variant.

    Attributes:
        problem: why it must not be measured.
        evidence: what its machine code shows.
    """

    problem: str | None = None
    evidence: dict[str, Any] = {}


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to one request: one of its fields.

    Attributes:
        error: message for the user; the request could not be served.
    """

    count: int | None = None
    opened: Opened | None = None
    built: Built | None = None
    outcome: Outcome | None = None
    error: str | None = None


def failure(error: Exception) -> str:
    """What a child answers of an error that nobody foresaw, or of a package that is missing."""
    if isinstance(error, ImportError) and (error.name or "").partition(".")[0] == "cuda":
        return f"cuda bindings: missing -> {INSTALL_BINDINGS}"
    return f"{type(error).__name__}: {str(error)[:300]}"
