"""``python -m mansard`` is the command line."""

from mansard.cli import main

main()
