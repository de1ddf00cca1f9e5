"""CUPTI through ctypes: counters and activity records of this very process.

Only this package speaks to libcupti, libnvperf and libcuda. It knows nothing of runs or tables.
"""
