"""Filters of ncu, applied to a trace."""

import pytest
from ncu_makers import in_order, traced

from mansard.collect.ncu.choose import chosen_launches, function_name, range_filter
from mansard.collect.ncu.options import Selection
from mansard.errors import UsageError


@pytest.mark.parametrize(
    ("demangled", "name"),
    [
        ("nvjet_sm90_tst_256x128", "nvjet_sm90_tst_256x128"),
        ("void at::native::reduce_kernel<512, 1, Op<float> >(Op<float>)", "reduce_kernel"),
        ("void (anonymous namespace)::softmax<(int)4>(float *)", "softmax"),
        ("vectorAdd(float const*, float*, int)", "vectorAdd"),
        ("", ""),
    ],
)
def test_the_name_of_the_function_is_what_ncu_filters_by(demangled, name):
    assert function_name(demangled) == name


def test_a_kernel_filter_keeps_its_kernels_and_no_copies():
    launches = [
        *in_order({"symbol": "add"}, {"symbol": "addmul"}),
        traced(kind="memcpy", name="memcpy HtoD"),
    ]
    exact = chosen_launches(launches, Selection(kernel_name="add"))
    assert [each.symbol for each in exact] == ["add"]
    found = chosen_launches(launches, Selection(kernel_name="regex:^add"))
    assert [each.symbol for each in found] == ["add", "addmul"]
    assert len(chosen_launches(launches, Selection())) == 3


def test_only_launches_between_profiler_start_and_stop_count_when_asked():
    launches = in_order({"region": 0}, {"region": 1})
    assert len(chosen_launches(launches, Selection(from_start=False))) == 1
    assert len(chosen_launches(launches, Selection())) == 2


def test_ranges_are_included_and_excluded():
    launches = in_order(
        {"ranges": ("step", "forward")}, {"ranges": ("step", "backward")}, {"ranges": ()}
    )
    step = chosen_launches(launches, Selection(nvtx_include=("step/",)))
    assert len(step) == 2
    forward = chosen_launches(
        launches, Selection(nvtx_include=("step/forward/",), nvtx_exclude=("warmup/",))
    )
    assert forward == launches[:1]
    rest = chosen_launches(launches, Selection(nvtx_exclude=("regex:^for/",)))
    assert rest == launches[1:]


def test_a_domain_in_front_of_a_range_is_allowed():
    assert range_filter("net@step/")(("step",))
    assert not range_filter("net@step/")(("other",))


@pytest.mark.parametrize("expression", ["step/*", "[step", "a/+", "A,B"])
def test_quantifiers_of_ncu_are_refused_with_the_way_out(expression):
    with pytest.raises(UsageError, match="--times ncu"):
        range_filter(expression)


def test_a_wrong_expression_is_told_before_anything_runs():
    with pytest.raises(UsageError, match="regex:\\( is no regular expression"):
        chosen_launches((), Selection(kernel_name="regex:("))
