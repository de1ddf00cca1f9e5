"""What hardware counters mean: formulas as data, one table per chip, and how to apply them."""
