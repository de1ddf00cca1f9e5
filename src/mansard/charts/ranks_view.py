"""The ranks of a run side by side: a block of the terminal report, and a key of the JSON report."""

import dataclasses
import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from mansard.charts.labels import count_text, printable
from mansard.charts.plain import plain
from mansard.model.analysis import Analysis, quotient
from mansard.model.fleet import Fleet, Straggler
from mansard.units import format_share, format_si

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType

#: Width of the words on the left.
_WORD = 11
#: From this width on a line has room for the host.
_WIDE = 72
#: Kernels named below a straggler.
_MOST_KERNELS = 2
#: Collectives and nodes that get a line.
_MOST_LINES = 4


def fleet_dict(fleet: Fleet | None) -> dict[str, Any] | None:
    """The ranks side by side as plain values for JSON; None stays None.

    The keys are the names of ``model.fleet.Fleet``: seconds, and ratios without a unit.
    """
    if fleet is None:
        return None
    found: dict[str, Any] = plain(dataclasses.asdict(fleet))
    return found


def fleet_view(analysis: Analysis, *, top: int = 10) -> "FleetView":
    """The ranks side by side as a Rich renderable; empty where the run has one rank.

    Args:
        analysis: with its fleet.
        top: stragglers and phases shown.
    """
    return FleetView(analysis, top=top)


class FleetView:
    """A block that lays itself out for the width of its console."""

    def __init__(self, analysis: Analysis, *, top: int) -> None:
        self._fleet = analysis.fleet
        self._names = {kernel.key: kernel.short_name for kernel in analysis.kernels}
        self._top = max(1, top)

    def __rich_console__(
        self, console: "Console", options: "ConsoleOptions"
    ) -> Iterator["RenderableType"]:
        """Yield the lines of the block."""
        from rich.text import Text  # noqa: PLC0415  (only who prints pays for it)

        fleet, width = self._fleet, max(40, options.max_width)
        if fleet is None:
            return
        yield Text()
        yield Text("Ranks side by side (collectives left out of compute)", style="bold")
        for word, text in self._summary(fleet):
            for line in _wrapped(text, width, f"{word:<{_WORD}}"):
                yield Text(line)
        if fleet.stragglers:
            yield Text()
            yield Text("Stragglers", style="bold")
            for line in self._stragglers(fleet.stragglers, fleet, width):
                yield Text(line, no_wrap=True, overflow="crop")
        if fleet.phases:
            yield Text()
            yield Text("Imbalance by phase (slowest rank over the mean, less 1)", style="bold")
            for line in self._phases(fleet, width):
                yield Text(line, no_wrap=True, overflow="crop")

    def _summary(self, fleet: Fleet) -> Iterator[tuple[str, str]]:
        compute = fleet.compute
        usual = format_share(quotient(compute.deviation, compute.median))
        yield (
            "compute",
            (
                f"{count_text(compute.count, 'rank')}, median {format_si(compute.median, 's')}, "
                f"from {format_si(compute.least, 's')} to {format_si(compute.most, 's')}, "
                f"usual spread {usual}"
            ),
        )
        total = sum(rank.duration_s for rank in fleet.ranks)
        if fleet.exposed_s is not None:
            yield (
                "exposed",
                (
                    f"{format_si(fleet.exposed_s, 's')} of all ranks together, in which nothing "
                    "but collectives ran"
                ),
            )
        for collective in fleet.collectives[:_MOST_LINES]:
            name = printable(self._names.get(collective.key, collective.key), 48)
            time = collective.moving_s + collective.waiting_s
            parts = [
                f"{count_text(collective.calls, 'call')} of {count_text(collective.ranks, 'rank')}",
                f"moving {format_si(collective.moving_s, 's')}",
                (
                    f"waiting {format_si(collective.waiting_s, 's')} "
                    f"({format_share(quotient(collective.waiting_s, time))} of it, "
                    f"{format_share(quotient(collective.waiting_s, total))} of all time)"
                ),
            ]
            if collective.unmatched_s:
                parts.append(f"not matched {format_si(collective.unmatched_s, 's')}")
            yield "collective", f"{name}: {', '.join(parts)}"
        slow = [node for node in fleet.nodes if node.slow]
        for node in slow[:_MOST_LINES]:
            yield (
                "slow node",
                (
                    f"{printable(node.host, 40)}: {_percent(node.ratio)} over "
                    f"{count_text(node.ranks, 'rank')}, {node.stragglers} of them stragglers"
                ),
            )
        if len(slow) > _MOST_LINES:
            yield "slow node", f"and {len(slow) - _MOST_LINES} more"
        if fleet.nodes and not slow:
            yield "nodes", f"{len(fleet.nodes)}, none is slow as a whole"
        if fleet.unjudged:
            yield "stragglers", f"not judged: {fleet.unjudged}"
        elif not fleet.stragglers:
            yield "stragglers", "none: no rank is slower than the usual spread explains"
        for gap in fleet.gaps:
            yield "", f"({printable(gap, 200)})"

    def _stragglers(self, found: Sequence[Straggler], fleet: Fleet, width: int) -> Iterator[str]:
        by_rank = {rank.rank: rank for rank in fleet.ranks}
        # The cause says more than the host where there is no room for both.
        host = 16 if width >= _WIDE else 0
        words = "".join(f"{word:>9}" for word in ("compute", "slower", "last in"))
        yield f"{'rank':>6}  {'host':<{host}.{host}}{words}  cause"
        for straggler in found[: self._top]:
            rank = by_rank[straggler.rank]
            yield (
                f"{straggler.rank:>6}  {printable(straggler.host, 15):<{host}.{host}}"
                f"{format_si(rank.compute_s, 's'):>9}{_percent(straggler.ratio):>9}"
                f"{format_share(rank.last_share):>9}  {straggler.cause}{_counts(straggler)}"
            )[:width]
            for kernel in straggler.kernels[:_MOST_KERNELS]:
                ratio = "" if kernel.ratio is None else f", x{kernel.ratio:.2f} a launch"
                tail = f" +{format_si(kernel.excess_s, 's')}{ratio}"
                tail += "" if kernel.bound is None else f", bound by {kernel.bound}"
                name = printable(self._names.get(kernel.key, kernel.key), width - 8 - len(tail))
                yield f"        {name}{tail}"
        if len(found) > self._top:
            yield f"and {len(found) - self._top} more (see --json)"

    def _phases(self, fleet: Fleet, width: int) -> Iterator[str]:
        room = width - 42
        words = "".join(f"{word:>9}" for word in ("mean", "slowest", "(rank)", "above"))
        yield f"{'phase':<{room}}{'ranks':>6}{words}"
        for phase in fleet.phases[: self._top]:
            name = "(none)" if phase.phase is None else printable(phase.phase, room - 1)
            yield (
                f"{name:<{room}}{phase.ranks:>6}{format_si(phase.mean_s, 's'):>9}"
                f"{format_si(phase.most_s, 's'):>9}{f'({phase.slowest})':>9}"
                f"{format_share(phase.share):>9}"
            )
        if len(fleet.phases) > self._top:
            yield f"and {len(fleet.phases) - self._top} more (see --json)"


def _counts(straggler: Straggler) -> str:
    """What speaks for the cause, as far as one number does."""
    if straggler.cause == "lower clock":
        return f" ({_percent(straggler.counts['sm_clock_hz'])})"
    if straggler.cause == "more work":
        name = max(
            (key for key in straggler.counts if key != "sm_clock_hz"),
            key=lambda key: straggler.counts[key],
        )
        return f" ({name} {_percent(straggler.counts[name])})"
    return ""


def _percent(ratio: float | None) -> str:
    return "-" if ratio is None else f"{100 * (ratio - 1):+.1f} %"


def _wrapped(text: str, width: int, first: str) -> list[str]:
    lines = textwrap.wrap(
        text, width, initial_indent=first, subsequent_indent=" " * _WORD, break_on_hyphens=False
    )
    return lines or [first]
