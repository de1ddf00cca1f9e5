"""Ceilings of an NVIDIA GPU: kernels compiled at run time, checked, measured in a child process."""
