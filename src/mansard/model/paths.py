"""Compute paths (a pipe and a precision) and memory levels: the resources of a Roofline.

A path is written as people say it, ``"tensor bf16"``; its column in a run is
``flop_tensor_bf16``, or ``op_tensor_int8`` where the operations are not floating point.
"""

import dataclasses

#: Memory levels from the SM outwards; ``link`` is NVLink, PCIe or C2C.
LEVELS = ("shared", "l1", "l2", "dram", "link")

#: Levels of any machine: a CPU has one more, and no column of a run.
MACHINE_LEVELS = ("shared", "l1", "l2", "l3", "dram", "link")


@dataclasses.dataclass(frozen=True, slots=True)
class ComputePath:
    """A pipe at a precision, for example the tensor pipe at bf16.

    Attributes:
        pipe: ``vector`` (CUDA cores) or ``tensor``. Precisions of one pipe share its time.
        precision: type of the operands.
        integer: whether its operations are counted apart from floating point.
    """

    pipe: str
    precision: str
    integer: bool = False

    @property
    def name(self) -> str:
        """The path as people say it: ``"tensor bf16"``."""
        return f"{self.pipe} {self.precision}"

    @property
    def column(self) -> str:
        """Its column in a run: ``flop_tensor_bf16`` or ``op_tensor_int8``."""
        return f"{'op' if self.integer else 'flop'}_{self.pipe}_{self.precision}"


#: Every path that some NVIDIA chip counts. ``fp4_fp6_fp8`` is the sum that chips without
#: separate counters give; it is never filled where fp8 and fp4 are separable.
PATHS = (
    ComputePath("vector", "fp64"),
    ComputePath("vector", "fp32"),
    ComputePath("vector", "fp16"),
    ComputePath("tensor", "fp64"),
    ComputePath("tensor", "tf32"),
    ComputePath("tensor", "fp16"),
    ComputePath("tensor", "bf16"),
    ComputePath("tensor", "fp8"),
    ComputePath("tensor", "fp6"),
    ComputePath("tensor", "fp4"),
    ComputePath("tensor", "fp4_fp6_fp8"),
    ComputePath("tensor", "int8", integer=True),
    ComputePath("tensor", "int4", integer=True),
    ComputePath("tensor", "int1", integer=True),
)

FLOP_PATHS = tuple(path for path in PATHS if not path.integer)
INTEGER_PATHS = tuple(path for path in PATHS if path.integer)

#: Paths of any machine: some can be measured that no counter of a run tells apart.
MACHINE_PATHS = (*(path.name for path in PATHS), "vector bf16", "vector int8", "vector int32")
