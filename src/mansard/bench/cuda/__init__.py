"""Ceilings of an NVIDIA GPU: kernels compiled at run time, checked, and measured in a child process."""
