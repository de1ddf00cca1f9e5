"""What a machine can do: measured ceilings of a GPU or CPU, with evidence."""

from mansard.bench.entry import Options, Progress, bench
from mansard.bench.node import NodeResult, bench_node

__all__ = ["NodeResult", "Options", "Progress", "bench", "bench_node"]
