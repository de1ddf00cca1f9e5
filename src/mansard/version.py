"""The one place of the version number (semantic versioning)."""

__version__ = "0.1.0"
