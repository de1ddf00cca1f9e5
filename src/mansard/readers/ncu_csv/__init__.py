"""The CSV that Nsight Compute prints: any page, version, locale and unit mode, noise included."""

from mansard.readers.ncu_csv.read import read_ncu_csv

__all__ = ["read_ncu_csv"]
