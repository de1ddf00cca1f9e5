"""Counter definitions against kernels of known work: ``mansard.validate``."""

from mansard.validate.entry import chip_limits, validate
from mansard.validate.result import Finding, Limit, Validation, Verdict
from mansard.validate.stated import beside_ceilings

__all__ = [
    "Finding",
    "Limit",
    "Validation",
    "Verdict",
    "beside_ceilings",
    "chip_limits",
    "validate",
]
