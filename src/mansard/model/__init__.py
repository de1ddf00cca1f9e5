"""The values that pass between the layers: frozen, in SI units, valid once built."""
