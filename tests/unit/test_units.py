import pytest

from mansard.units import PREFIXES, format_share, format_si, unit_factor


@pytest.mark.parametrize(
    ("unit", "factor", "base"),
    [
        ("byte", 1.0, "byte"),
        ("Kbyte", 1e3, "byte"),
        ("Mbyte", 1e6, "byte"),
        ("Gbyte", 1e9, "byte"),
        ("Tbyte", 1e12, "byte"),
        ("byte/second", 1.0, "byte/s"),
        ("Gbyte/second", 1e9, "byte/s"),
        ("Gbyte/s", 1e9, "byte/s"),
        ("nsecond", 1e-9, "s"),
        ("ns", 1e-9, "s"),
        ("usecond", 1e-6, "s"),
        ("us", 1e-6, "s"),
        ("msecond", 1e-3, "s"),
        ("ms", 1e-3, "s"),
        ("second", 1.0, "s"),
        ("s", 1.0, "s"),
        ("hz", 1.0, "Hz"),
        ("Khz", 1e3, "Hz"),
        ("Mhz", 1e6, "Hz"),
        ("Ghz", 1e9, "Hz"),
        ("cycle/second", 1.0, "Hz"),
        ("cycle/nsecond", 1e9, "Hz"),
        ("cycle/usecond", 1e6, "Hz"),
        ("inst/cycle", 1.0, "inst/cycle"),
        ("Kbyte/block", 1e3, "byte/block"),
        ("byte/cycle", 1.0, "byte/cycle"),
        ("%", 1.0, "%"),
        ("register/thread", 1.0, "register/thread"),
        ("", 1.0, ""),
    ],
)
def test_every_unit_spelling_of_the_profiler_is_read_exactly(unit, factor, base):
    assert unit_factor(unit) == (factor, base)


@pytest.mark.parametrize(("prefix", "factor"), PREFIXES)
def test_each_prefix_scales_by_its_power_of_ten(prefix, factor):
    assert format_si(2 * factor, "B") == f"2.00 {prefix}B"


def test_rounding_up_to_a_thousand_moves_to_the_next_prefix():
    assert format_si(999.6e9, "FLOP/s") == "1.00 TFLOP/s"


def test_an_unknown_value_is_a_dash():
    assert format_si(None, "B") == "-"
    assert format_si(float("nan"), "B") == "-"
    assert format_share(None) == "-"


def test_zero_is_zero_and_not_unknown():
    assert format_si(0, "B") == "0 B"
    assert format_share(0.0) == "0.0 %"


def test_a_share_never_shows_0_or_100_percent_unless_it_is_exactly_so():
    assert format_share(0.99999) == "99.9 %"
    assert format_share(0.00001) == "<0.1 %"
    assert format_share(1.0) == "100.0 %"
