"""``mansard demo``: the main job on data that comes with Mansard, no GPU needed."""

from pathlib import Path
from typing import Annotated

import typer


def demo(
    folder: Annotated[
        Path, typer.Option("--folder", "-o", help="Where to write charts and tables.")
    ] = Path("mansard-demo"),
) -> None:
    """Report on a small H200 run and on the paper's DeepCAM, and measure this CPU."""
