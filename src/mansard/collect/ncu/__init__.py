"""Counters of any program through Nsight Compute's command line (``ncu``), done right.

The program runs once undisturbed, traced, for true times and the list of its launches; then once
under ncu, which counts all launches or a sample of them. The report is read natively and gone.
"""

from mansard.collect.ncu.collect import Collected, collect_with_ncu
from mansard.collect.ncu.options import (
    Caches,
    Clocks,
    Conditions,
    Graphs,
    NcuOptions,
    NvtxScope,
    Replay,
    Selection,
    Tensor,
    Times,
)

__all__ = [
    "Caches",
    "Clocks",
    "Collected",
    "Conditions",
    "Graphs",
    "NcuOptions",
    "NvtxScope",
    "Replay",
    "Selection",
    "Tensor",
    "Times",
    "collect_with_ncu",
]
