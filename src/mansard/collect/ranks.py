"""Which process of a parallel job this is, from the variables that launchers set."""

import dataclasses
import os
import socket
from collections.abc import Mapping
from pathlib import Path

#: Variables of torchrun, Open MPI, MPICH and Slurm: rank, and number of ranks.
_VARIABLES = (
    ("RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
)


@dataclasses.dataclass(frozen=True, slots=True)
class Rank:
    """This process in its job.

    Attributes:
        rank: number of the process; None outside a job.
        size: processes of the job.
        host: name of the machine.
        process: process id.
    """

    rank: int | None
    size: int
    host: str
    process: int


def this_rank(environment: Mapping[str, str] | None = None) -> Rank:
    """This process, by the first launcher whose variables are set."""
    variables = os.environ if environment is None else environment
    host, process = socket.gethostname(), os.getpid()
    for rank_name, size_name in _VARIABLES:
        rank, size = variables.get(rank_name, ""), variables.get(size_name, "")
        if rank.isdecimal():
            return Rank(int(rank), int(size) if size.isdecimal() else 1, host, process)
    return Rank(None, 1, host, process)


def file_of_rank(path: Path, rank: Rank) -> Path:
    """The file of this process: the path itself, or one file in a folder where there are more.

    ``run.parquet`` of 8 ranks is the folder ``run`` with ``rank0.parquet`` to ``rank7.parquet``;
    no process needs any other, so a rank that dies takes nothing with it.
    """
    if rank.rank is None or rank.size <= 1:
        return path
    folder = path.with_suffix("") if path.suffix == ".parquet" else path
    return folder / f"rank{rank.rank}.parquet"
