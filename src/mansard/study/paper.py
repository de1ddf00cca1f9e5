"""What the paper measured, as data: ``paper.toml``."""

import functools
from importlib.resources import files

import msgspec

from mansard.workloads import Configuration


class PaperPhase(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One phase of one of the paper's runs on a V100.

    Attributes:
        run: what the paper ran.
        phase: forward, backward or optimizer.
        launches: number of launches.
        zero_flop_launches: launches of kernels without floating-point work.
        zero_flop_time_share: their share of the time.
        duration_s: time on the GPU.
        flop: counted work.
        tensor_share: share of it on Tensor Cores.
        intensity: FLOP/byte by level.
        beside: fields of the configuration of a study that comes nearest.
        remark: what differs.
    """

    run: str
    phase: str
    launches: int
    zero_flop_launches: int
    zero_flop_time_share: float
    duration_s: float
    flop: float
    tensor_share: float
    intensity: dict[str, float]
    beside: dict[str, str]
    remark: str = ""

    @property
    def flop_per_s(self) -> float:
        """Mean rate."""
        return self.flop / self.duration_s

    def is_beside(self, configuration: Configuration) -> bool:
        """Whether a configuration is the one that comes nearest."""
        return all(getattr(configuration, key) == value for key, value in self.beside.items())


class Paper(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The paper's results.

    Attributes:
        source: where they come from.
        gpu: what they were measured on.
        batch: images in a step.
        phase: phases of its runs.
    """

    source: str
    gpu: str
    batch: int
    phase: tuple[PaperPhase, ...]


@functools.cache
def paper() -> Paper:
    """The paper's results."""
    data = files("mansard.study").joinpath("paper.toml").read_bytes()
    return msgspec.toml.decode(data, type=Paper)
