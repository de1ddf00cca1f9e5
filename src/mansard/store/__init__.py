"""Files of Mansard itself, in and out: runs as Parquet, machines as JSON."""

from mansard.store.machine_file import load_machine, machine, save_machine, shipped_machines
from mansard.store.run_file import open_run, read_provenance, write_run

__all__ = [
    "load_machine",
    "machine",
    "open_run",
    "read_provenance",
    "save_machine",
    "shipped_machines",
    "write_run",
]
