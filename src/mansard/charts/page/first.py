"""What to do first: the advice of the analysis as sentences, and the ranks side by side."""

import io
from collections.abc import Sequence

from mansard.charts.labels import count_text, known, printable
from mansard.charts.page.summary import Phrase, Sentence
from mansard.charts.ranks_view import fleet_view
from mansard.model.advice import Advice
from mansard.model.analysis import Analysis, quotient
from mansard.units import format_share, format_si

#: Letters of a line of the block on ranks.
_WIDTH = 110


def advice_sentences(analysis: Analysis, given: Sequence[Advice]) -> tuple[Sentence, ...]:
    """Return advice as the terminal words it, each with the kernels that it is about."""
    return tuple(_sentence(analysis, place, advice) for place, advice in enumerate(given, start=1))


def _sentence(analysis: Analysis, place: int, advice: Advice) -> Sentence:
    time = known(advice.recoverable_s)
    part = format_share(quotient(time, known(analysis.totals.duration_s)))
    gain = "" if time is None else f"Up to {format_si(time, 's')} ({part}). "
    words = Phrase(f"{gain}{printable(advice.sentence, 1000)}")
    if not advice.kernels:
        return (words,)
    count = count_text(len(advice.kernels), "kernel")
    return (words, Phrase(" ("), Phrase(count, ("advice", str(place))), Phrase(")"))


def ranks_text(analysis: Analysis) -> str:
    """Return the ranks side by side as the terminal shows them; empty for a single rank."""
    from rich.console import Console  # noqa: PLC0415  (only a page of several ranks pays for it)

    if analysis.fleet is None:
        return ""
    stream = io.StringIO()
    console = Console(file=stream, width=_WIDTH, color_system=None, highlight=False, emoji=False)
    console.print(fleet_view(analysis))
    return stream.getvalue().strip("\n")
