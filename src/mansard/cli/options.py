"""Options that several commands share, each defined once."""

from enum import StrEnum
from typing import Annotated

import typer

Sources = Annotated[
    list[str],  # a path would lose a slash of s3://
    typer.Argument(
        help="Runs (Parquet, also at s3://...), .ncu-rep, ncu CSV, or folders; - is stdin.",
        show_default=False,
    ),
]
Counters = Annotated[
    str | None,
    typer.Option("--counters", help="Counter table, e.g. paper-volta; else chosen by the chip."),
]
Chip = Annotated[
    str | None,
    typer.Option("--chip", help="Chip (GH100) or compute capability (9.0) if the file lacks it."),
]


class Weights(StrEnum):
    """What a half-precision instruction of the vector pipe counts."""

    VENDOR = "vendor"
    UNPACKED = "unpacked"


HalfWeights = Annotated[
    Weights | None,
    typer.Option(
        "--half-weights",
        help="vendor: packed half counts 2/2/4; unpacked: 1/1/2 as in the paper. "
        "By default the counter table's own.",
        show_default=False,
    ),
]
