"""What a program runs on the GPU when nobody counts: its launches with true times.

Three ways give the same trace: a small library that the CUDA driver loads into any program, the
same from inside a Python program where there is no C compiler, and Nsight Systems.
"""

from mansard.collect.ncu.trace.run import Traced, trace_program
from mansard.collect.ncu.trace.trace import ProgramTrace

__all__ = ["ProgramTrace", "Traced", "trace_program"]
