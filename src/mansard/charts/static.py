"""Pictures for paper and slides: the one owner of matplotlib. PNG, SVG and PDF.

Figures are made through matplotlib's objects, never through pyplot, so no global state, window
or setting of the user is touched.
"""

import contextlib
import functools
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

from mansard.charts.changes_chart import changes_size, draw_changes
from mansard.charts.changes_scene import changes_scene
from mansard.charts.floors_chart import draw_floors, floors_size
from mansard.charts.floors_scene import floors_scene
from mansard.charts.frame import Frame, machine_frame
from mansard.charts.machine_chart import SIZE as MACHINE_SIZE
from mansard.charts.machine_chart import draw_machine, draw_machines, machines_size
from mansard.charts.machine_scene import machine_scene
from mansard.charts.roofline_chart import SIZE as ROOFLINE_SIZE
from mansard.charts.roofline_chart import draw_roofline
from mansard.charts.scene import roofline_scene
from mansard.charts.time_chart import SIZE as TIME_SIZE
from mansard.charts.time_chart import draw_time
from mansard.charts.time_scene import time_scene
from mansard.errors import UsageError
from mansard.model.analysis import Analysis
from mansard.model.comparison import Comparison
from mansard.model.machine import Machine
from mansard.version import __version__

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Formats of a picture, and the entries of its metadata that would change with the date.
FORMATS = {
    "png": {"Software": f"Mansard {__version__}"},
    "svg": {"Creator": f"Mansard {__version__}", "Date": None},
    "pdf": {"Creator": f"Mansard {__version__}", "Producer": None, "CreationDate": None},
}

DOTS_PER_INCH = 200

#: Machines that fit side by side.
MOST_MACHINES = 4


def roofline_figure(analysis: Analysis) -> "Figure":
    """Draw the hierarchical Roofline chart of an analysis (arXiv 2009.05257).

    One hollow marker per kernel and memory level; its area is the kernel's share of the time.
    """
    with _style():
        figure = _figure(ROOFLINE_SIZE)
        draw_roofline(figure, roofline_scene(analysis))
        _replace_missing_glyphs(figure)
    return figure


def floors_figure(analysis: Analysis) -> "Figure":
    """Draw the least time of every resource against the measured time of the longest kernels.

    Kernels without FLOP, which the Roofline chart cannot show, appear here.
    """
    scene = floors_scene(analysis)
    with _style():
        figure = _figure(floors_size(scene))
        draw_floors(figure, scene)
        _replace_missing_glyphs(figure)
    return figure


def time_figure(analysis: Analysis) -> "Figure":
    """Draw FLOP time against byte time with the launch box (after arXiv 2009.04598)."""
    with _style():
        figure = _figure(TIME_SIZE)
        draw_time(figure, time_scene(analysis))
        _replace_missing_glyphs(figure)
    return figure


def changes_figure(comparison: Comparison) -> "Figure":
    """Draw what took longer from one run to another and what shorter, with its noise."""
    scene = changes_scene(comparison)
    with _style():
        figure = _figure(changes_size(scene))
        draw_changes(figure, scene)
        _replace_missing_glyphs(figure)
    return figure


def machine_figure(machine: Machine) -> "Figure":
    """Draw the roofs of one machine, its measured sweep, and the table of its ceilings."""
    with _style():
        figure = _figure(MACHINE_SIZE)
        draw_machine(figure, machine_scene(machine))
        _replace_missing_glyphs(figure)
    return figure


def machines_figure(machines: Sequence[Machine]) -> "Figure":
    """Draw the roofs of several machines side by side on the same axes.

    Raises:
        UsageError: no machine, or more than MOST_MACHINES.
    """
    if not 1 <= len(machines) <= MOST_MACHINES:
        raise UsageError(
            f"cannot draw {len(machines)} machines side by side: give 1 to {MOST_MACHINES}"
        )
    frames = [frame for frame in map(machine_frame, machines) if frame]
    common = functools.reduce(Frame.union, frames) if frames else None
    scenes = [machine_scene(machine, common) for machine in machines]
    with _style():
        figure = _figure(machines_size(len(scenes)))
        draw_machines(figure, scenes)
        _replace_missing_glyphs(figure)
    return figure


def save_figure(figure: "Figure", target: str | Path | IO[bytes], format: str) -> None:  # noqa: A002
    """Write a figure; the same figure gives the same bytes.

    Args:
        figure: made by one of the functions here.
        target: file name or binary stream.
        format: ``png``, ``svg`` (text stays text) or ``pdf`` (fonts embedded as TrueType).

    Raises:
        UsageError: the format is none of these.
    """
    wanted = format.lower().lstrip(".")
    if wanted not in FORMATS:
        raise UsageError(f"no picture format '{format}': choose one of {', '.join(FORMATS)}")
    with _style():
        figure.savefig(target, format=wanted, dpi=DOTS_PER_INCH, metadata=FORMATS[wanted])


@contextlib.contextmanager
def _style() -> Iterator[None]:
    """Draw with matplotlib's defaults and a few of ours; the user's settings come back after."""
    import matplotlib as mpl  # noqa: PLC0415  (heavy: only who draws pays for it)

    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(
            {
                "font.family": "DejaVu Sans",  # ships with matplotlib: the same everywhere
                "text.parse_math": False,  # kernel names are no formulas
                "pdf.fonttype": 42,
                "svg.fonttype": "none",
                "svg.hashsalt": "mansard",
                "hatch.linewidth": 0.6,
                "axes.unicode_minus": False,
            }
        )
        yield


def _figure(size: tuple[float, float]) -> "Figure":
    from matplotlib.figure import Figure  # noqa: PLC0415

    return Figure(figsize=size, dpi=DOTS_PER_INCH, facecolor="white")


def _replace_missing_glyphs(figure: "Figure") -> None:
    """Show a box for letters that the font lacks (matplotlib would warn about each of them)."""
    from matplotlib.font_manager import FontProperties, findfont, get_font  # noqa: PLC0415
    from matplotlib.text import Text  # noqa: PLC0415

    font = get_font(findfont(FontProperties(family="DejaVu Sans Mono")))
    for text in figure.findobj(Text):
        written = text.get_text()
        if not written.isascii():
            text.set_text(
                "".join(
                    letter if font.get_char_index(ord(letter)) else "\N{REPLACEMENT CHARACTER}"
                    for letter in written
                )
            )
