"""Ceilings of a CPU, measured with kernels that llvmlite compiles for it."""

from mansard.bench.cpu.measure import CpuOptions, measure_cpu

__all__ = ["CpuOptions", "measure_cpu"]
