"""Limits for programs that check: what they mean, and what is refused."""

import math

import pytest

from mansard.analysis.limits import parse_limit
from mansard.errors import UsageError
from mansard.model.comparison import Change, Comparison, Difference


def comparison(metric, a, b, **more):
    change = Change(metric=metric, a=a, b=b, **more)
    return Comparison(
        label_a="a",
        label_b="b",
        by="kernel",
        totals=Difference(key=None, changes={metric: change}),
        rows=(),
        repeats_a=1,
        repeats_b=1,
        provenance_a=(),
        provenance_b=(),
    )


@pytest.mark.parametrize(
    ("text", "metric", "sign", "share"),
    [
        ("gpu_time > +3%", "gpu_time", ">", 0.03),
        ("  step_time>=2.5 % ", "step_time", ">=", 0.025),
        ("flop < -1%", "flop", "<", -0.01),
        ("zero_flop_launches <= 0%", "zero_flop_launches", "<=", 0.0),
        ("bytes_dram > +0%", "bytes_dram", ">", 0.0),
    ],
)
def test_the_grammar(text, metric, sign, share):
    limit = parse_limit(text)
    assert (limit.metric, limit.sign, limit.share) == (metric, sign, pytest.approx(share))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "gpu_time",
        "gpu_time > 3",
        "gpu_time == 3%",
        "3% < gpu_time",
        "gpu_time > 3% and flop > 1%",
        "gpu_time > 1e3%",
        "gpu_time > nan%",
        "__import__('os') > 3%",
        "gpu_time > +3%" + " " * 500,
        "gpu_time > 9999999999%",
    ],
)
def test_nothing_else_is_a_limit(text):
    with pytest.raises(UsageError, match="is no limit"):
        parse_limit(text)


def test_a_metric_that_does_not_exist_is_told_with_those_that_do():
    with pytest.raises(
        UsageError, match=r"no metric 'speed'.*step_time_untraced, step_time, gpu_time, flop"
    ):
        parse_limit("speed > 3%")


def test_a_change_beyond_the_limit_breaks_it():
    limit = parse_limit("gpu_time > +3%")
    found = limit.broken_by(comparison("gpu_time", 1.0, 1.05, noise=0.01, verdict="changed"))
    assert found == "gpu_time changed by +5.0 % (noise 1.0 %): gpu_time > +3%"


@pytest.mark.parametrize(
    ("text", "b", "broken"),
    [
        ("gpu_time > +25%", 1.25, False),
        ("gpu_time >= +25%", 1.25, True),
        ("gpu_time < -25%", 0.75, False),
        ("gpu_time <= -25%", 0.75, True),
        ("gpu_time > +3%", 0.5, False),
        ("gpu_time >= 0%", 1.0, True),
    ],
)
def test_the_signs(text, b, broken):
    found = comparison("gpu_time", 1.0, b, verdict="same" if b == 1 else "changed")
    assert bool(parse_limit(text).broken_by(found)) is broken


def test_a_change_within_the_noise_breaks_none():
    found = comparison("gpu_time", 1.0, 1.05, noise=0.06, verdict="within noise")
    assert parse_limit("gpu_time > +3%").broken_by(found) is None


def test_where_the_noise_is_unknown_the_numbers_decide_and_it_is_said():
    found = comparison("gpu_time", 1.0, 1.05, verdict="noise unknown")
    assert "noise unknown" in parse_limit("gpu_time > +3%").broken_by(found)


def test_something_from_nothing_is_beyond_every_limit():
    found = comparison("zero_flop_launches", 0, 3, verdict="changed")
    assert found.totals.changes["zero_flop_launches"].relative == math.inf
    assert parse_limit("zero_flop_launches > +500%").broken_by(found)


def test_what_is_unknown_cannot_be_checked():
    found = comparison("step_time", None, 1.0)
    with pytest.raises(UsageError, match="start times"):
        parse_limit("step_time > +3%").broken_by(found)
    found = comparison("step_time_untraced", None, 1.0)
    with pytest.raises(UsageError, match="a phase has none"):
        parse_limit("step_time_untraced > +3%").broken_by(found)
