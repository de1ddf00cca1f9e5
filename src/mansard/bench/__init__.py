"""What a machine can do: measured ceilings of a GPU or CPU, with evidence."""

from mansard.bench.entry import Options, Progress, bench

__all__ = ["Options", "Progress", "bench"]
