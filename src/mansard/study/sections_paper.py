"""The paper's conclusions, each beside what this study finds in its runs."""

import functools
from collections.abc import Callable, Iterator
from importlib.resources import files
from typing import Literal

import msgspec

from mansard.charts.labels import printable
from mansard.model.analysis import Analysis, Group, Kernel, quotient
from mansard.study.blocks import Block, Heading, Paragraph, Table
from mansard.study.gather import Entry, Study
from mansard.study.sections_census import workless
from mansard.study.sections_flop import outside_the_named
from mansard.study.words import (
    NOT_MEASURED,
    UNKNOWN,
    change,
    count,
    ratio,
    share,
    si,
    tensor_flop,
    with_share,
)
from mansard.units import format_share

#: What is found, and whether the conclusion still holds; None where that is open.
_Found = tuple[str, bool | None]

#: A kernel with less of the time is no example of what is possible.
_WORTH_A_LOOK = 0.01
_TENSOR = "tensor"


class Conclusion(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One conclusion of the paper.

    Attributes:
        key: names what is computed here.
        source: ``paper`` where its authors conclude it, ``data`` where their counters show it.
        says: the conclusion.
        there: its number in the paper.
    """

    key: str
    source: Literal["paper", "data"]
    says: str
    there: str


class _Conclusions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    conclusion: tuple[Conclusion, ...]


@functools.cache
def conclusions() -> tuple[Conclusion, ...]:
    """What the paper concludes."""
    data = files("mansard.study").joinpath("conclusions.toml").read_bytes()
    return msgspec.toml.decode(data, type=_Conclusions).conclusion


def against_conclusions(study: Study) -> Iterator[Block]:
    """Each conclusion with its number there and here."""
    yield Heading("What of the paper still holds")
    yield Paragraph(
        "What the paper concludes on DeepCAM, or the counters show that its authors published "
        "(data), with its numbers (PyTorch on a V100, unless said otherwise), beside what the runs "
        "of this study say of the same. The paper's own network is taken where it was measured "
        "here. The verdict follows from the numbers by a fixed rule (docs/study.md)."
    )
    rows = []
    for each in conclusions():
        found = _RULES[each.key](study)
        if found is None:
            rows.append((each.says, each.source, each.there, NOT_MEASURED, "", ""))
            continue
        (text, holds), cell = found
        verdict = UNKNOWN if holds is None else "yes" if holds else "no"
        rows.append((each.says, each.source, each.there, text, printable(cell, 160), verdict))
    head = ("conclusion", "source", "there", "here", "cell", "still so")
    yield Table(head, tuple(rows), words=6)


def _named(study: Study, part: str) -> Entry | None:
    """The cell with a name like this, if it was recorded."""
    found = (e for e in study.entries if part in e.cell.name and e.analysis is not None)
    return next(found, None)


def _mixed(study: Study) -> Entry | None:
    """Mixed precision in the paper's network, or else in the other."""
    return _named(study, "xception_torch_amp-fp16_nchw") or _named(study, "amp-bf16_nchw")


def _of_phase(
    phase: str, look: Callable[[Entry, Group], _Found | None]
) -> Callable[[Study], tuple[_Found, str] | None]:
    """A finding on one phase of the step in mixed precision."""

    def find(study: Study) -> tuple[_Found, str] | None:
        entry = _mixed(study)
        group = None if entry is None else entry.phase(phase)
        found = None if entry is None or group is None else look(entry, group)
        return None if entry is None or found is None else (found, entry.cell.title)

    return find


def _zero_launches(entry: Entry, _forward: Group) -> _Found | None:
    """By the paper's rule, with what is added by kernels that do next to nothing."""
    none, nearly, parts = [], [], []
    for key in ("forward", "backward"):
        phase, part = entry.phase(key), entry.part(key)
        if phase is None or part is None:
            return None
        parts.append(quotient(phase.zero_flop_launches, phase.launches))
        none.append(f"{with_share(phase.zero_flop_launches, phase.launches)} {key}")
        found = workless(part)
        nearly.append(f"{with_share(found.launches, found.of_launches)} {key}")
    text = f"{', '.join(none)}; with those next to none {', '.join(nearly)}"
    return text, _least(parts[0], 1 / 3)


def _zero_time(entry: Entry, forward: Group) -> _Found | None:
    part = entry.part("forward")
    if part is None:
        return None
    time = quotient(forward.zero_flop_duration_s, forward.duration_s)
    launches = quotient(forward.zero_flop_launches, forward.launches)
    holds = None if time is None or launches is None else 2 * time < launches
    nearly = workless(part)
    text = (
        f"{share(forward.zero_flop_duration_s, forward.duration_s)}; with those next to none "
        f"{share(nearly.duration_s, nearly.of_duration_s)}"
    )
    return text, holds


def _short(entry: Entry, forward: Group) -> _Found:
    backward = entry.phase("backward")
    groups = [forward] if backward is None else [forward, backward]
    parts = [quotient(each.short_launches, each.launches) for each in groups]
    words = [f"{share(g.short_launches, g.launches)} {g.key}" for g in groups]
    return ", ".join(words), _least(min((p for p in parts if p is not None), default=None), 1 / 4)


def _longest_backward(entry: Entry, _backward: Group) -> _Found | None:
    part = entry.part("backward")
    if part is None or not part.kernels:
        return None
    longest = part.kernels[0]
    tensor = tensor_flop(longest)
    text = (
        f"{printable(longest.short_name, 60)}, "
        f"{share(longest.duration_s, part.totals.duration_s)} of the time, "
        f"{si(longest.flop_per_s, 'FLOP/s')}"
    )
    return text, None if tensor is None else tensor == 0


def _tensor_roof(study: Study) -> tuple[_Found, str] | None:
    """The highest part of the tensor floor in the time of a kernel that counts."""
    best: tuple[float, Entry, Kernel] | None = None
    for entry in study.measured:
        if entry.analysis is None or not entry.cell.configuration.model.startswith("deeplab"):
            continue
        for kernel in entry.analysis.kernels:
            part = quotient(kernel.floors_s.get(_TENSOR), kernel.duration_s)
            time = quotient(kernel.duration_s, entry.analysis.totals.duration_s)
            if part is None or time is None or time < _WORTH_A_LOOK:
                continue
            if best is None or part > best[0]:
                best = (part, entry, kernel)
    if best is None:
        return None
    part, entry, kernel = best
    text = f"{format_share(part)}: {printable(kernel.short_name, 60)}"
    return (text, part >= 0.8), entry.cell.title


def _tensor_share(_entry: Entry, forward: Group) -> _Found | None:
    """The rate of a phase, all of its work, against the roof that its tensor work has."""
    tensor, floor = tensor_flop(forward), forward.floors_s.get(_TENSOR)
    roof, rate = quotient(tensor, floor), forward.flop_per_s
    part = quotient(rate, roof)
    if part is None:
        return None
    return f"{si(rate, 'FLOP/s')}, {format_share(part)} of {si(roof, 'FLOP/s')}", part < 0.5


def _reuse(_entry: Entry, forward: Group) -> _Found:
    dram, near = forward.intensity.get("dram"), forward.intensity.get("l1")
    value = quotient(dram, near)
    if value is None or dram is None or near is None:
        return UNKNOWN, None
    return f"{dram:.0f} / {near:.0f} = {value:.1f}", 1.5 <= value <= 6


def _both(study: Study) -> tuple[Entry, Entry] | None:
    """fp32 and mixed precision, all else equal."""
    for full, mixed in (
        ("xception_torch_fp32_nchw", "xception_torch_amp-fp16_nchw"),
        ("resnet50_torch_fp32_nchw", "resnet50_torch_amp-bf16_nchw"),
    ):
        one, other = _named(study, full), _named(study, mixed)
        if one is not None and other is not None:
            return one, other
    return None


def _by_phase(
    study: Study, tell: Callable[[Group, Group], str], judge: Callable[[Group, Group], bool | None]
) -> tuple[_Found, str] | None:
    """Forward and backward of fp32 beside those of mixed precision."""
    both = _both(study)
    if both is None:
        return None
    words, verdicts = [], []
    for phase in ("forward", "backward"):
        full, mixed = (entry.phase(phase) for entry in both)
        if full is None or mixed is None:
            return None
        words.append(f"{tell(full, mixed)} {phase}")
        verdicts.append(judge(full, mixed))
    holds = None if None in verdicts else all(verdicts)
    return (", ".join(words), holds), " to ".join(entry.cell.title for entry in both)


def _precision(study: Study) -> tuple[_Found, str] | None:
    return _by_phase(
        study,
        lambda full, mixed: ratio(full.duration_s, mixed.duration_s),
        lambda full, mixed: _least(quotient(full.duration_s, mixed.duration_s), 1.5),
    )


def _executed(study: Study) -> tuple[_Found, str] | None:
    return _by_phase(
        study,
        lambda full, mixed: change(mixed.flop, full.flop),
        lambda full, mixed: _least(quotient(mixed.flop, full.flop), 1.05),
    )


def _optimizer_zero(study: Study) -> tuple[_Found, str] | None:
    entry = _named(study, "adam-loop")
    group = None if entry is None else entry.phase("optimizer")
    if entry is None or group is None:
        return None
    zero = group.zero_flop_launches
    text = f"{count(zero)} of {group.launches} launches of Adam"
    return (text, None if zero is None else zero == 0), entry.cell.title


def _optimizer_fused(study: Study) -> tuple[_Found, str] | None:
    loop, fused = _named(study, "bf16_nhwc_adam-loop"), _named(study, "bf16_nhwc_adam-fused_eager")
    if loop is None or fused is None:
        return None
    slow, quick = loop.phase("optimizer"), fused.phase("optimizer")
    if slow is None or quick is None:
        return None
    text = (
        f"{slow.launches} launches in {si(slow.duration_s, 's')}; fused Adam: {quick.launches} in "
        f"{si(quick.duration_s, 's')}"
    )
    return (text, _least(quotient(slow.duration_s, quick.duration_s), 2.0)), fused.cell.title


def _two_frameworks(study: Study) -> tuple[Analysis, Analysis, str] | None:
    xla, torch = (
        _named(study, "keras-jax_amp-bf16_nhwc_keras-adam_xla_"),
        _named(study, "resnet50_torch_amp-bf16_nhwc_adam-fused_eager"),
    )
    if xla is None or torch is None or xla.analysis is None or torch.analysis is None:
        return None
    title = f"{xla.cell.title} and {torch.cell.title}"
    return xla.analysis, torch.analysis, title


def _frameworks(study: Study) -> tuple[_Found, str] | None:
    found = _two_frameworks(study)
    if found is None:
        return None
    xla, torch, title = found
    two = (xla.totals.launches, torch.totals.launches)
    value = quotient(max(two), min(two))
    text = f"step: XLA {two[0]}, PyTorch {two[1]} ({change(two[0], two[1])})"
    return (text, None if value is None else value < 1.5), title


def _frameworks_zero(study: Study) -> tuple[_Found, str] | None:
    found = _two_frameworks(study)
    if found is None:
        return None
    *both, title = found
    names = ("XLA", "PyTorch")
    none = [
        f"{name} {share(each.totals.zero_flop_launches, each.totals.launches)}"
        for name, each in zip(names, both, strict=True)
    ]
    nearly = [
        f"{name} {share(part.launches, part.of_launches)}"
        for name, part in zip(names, map(workless, both), strict=True)
    ]
    parts = [quotient(each.totals.zero_flop_launches, each.totals.launches) for each in both]
    known = [part for part in parts if part is not None]
    holds = abs(known[0] - known[1]) < 0.1 if len(known) == 2 else None
    text = f"step: {', '.join(none)}; with those next to none {', '.join(nearly)}"
    return (text, holds), title


def _analytic(study: Study) -> tuple[_Found, str] | None:
    """Products beside their layers, but for those that padded channels explain."""
    for entry in study.measured:
        parts = outside_the_named(entry)
        if parts:
            words = ", ".join(f"{change(1 + value, 1)} {phase}" for phase, value in parts)
            text = f"{words}, layers left out of which padding or a mask is named"
            return (text, all(abs(value) < 0.02 for _, value in parts)), entry.cell.title
    return None


def _least(value: float | None, least: float) -> bool | None:
    return None if value is None else value >= least


_RULES: dict[str, Callable[[Study], tuple[_Found, str] | None]] = {
    "zero-launches": _of_phase("forward", _zero_launches),
    "zero-time": _of_phase("forward", _zero_time),
    "short-launches": _of_phase("forward", _short),
    "precision": _precision,
    "executed-flop": _executed,
    "longest-backward": _of_phase("backward", _longest_backward),
    "tensor-roof": _tensor_roof,
    "tensor-share": _of_phase("forward", _tensor_share),
    "reuse": _of_phase("forward", _reuse),
    "optimizer-zero": _optimizer_zero,
    "optimizer-fused": _optimizer_fused,
    "frameworks": _frameworks,
    "frameworks-zero": _frameworks_zero,
    "analytic": _analytic,
}
