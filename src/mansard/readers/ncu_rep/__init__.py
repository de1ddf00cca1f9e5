"""Nsight Compute reports (.ncu-rep, .ncu-repz, .nsight-cuprof-report), read without its tools.

The container is documented in NVIDIA's Nsight Compute Customization Guide, chapter "Report File
Format": little-endian lengths around ordinary protobuf messages.
"""

from mansard.readers.ncu_rep.read import read_ncu_rep

__all__ = ["read_ncu_rep"]
