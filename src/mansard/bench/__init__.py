"""What a machine can do: measured ceilings of a GPU or CPU, with evidence."""
