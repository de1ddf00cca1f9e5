"""Placing a run under its roofs: floors, bounds, sums, notices. Reads tables, draws nothing."""

from mansard.analysis.analyze import analyze
from mansard.analysis.options import AnalysisOptions
from mansard.analysis.theoretical import theoretical

__all__ = ["AnalysisOptions", "analyze", "theoretical"]
