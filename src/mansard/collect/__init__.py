"""Counters and traces of a running program: ``mansard.profile``."""

from mansard.collect.marks import phase
from mansard.collect.session import Profile, profile, profile_callable

__all__ = ["Profile", "phase", "profile", "profile_callable"]
