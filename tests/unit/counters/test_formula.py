"""The formula language: what it reads, what it refuses, and that SQL and Python agree."""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mansard.counters.formula import MAX_LENGTH, Formula
from mansard.engine import connect, identifier
from mansard.errors import CounterError

NAMES = ("a__x.sum", "b__y.avg.per_second", "c__z_1.max")


def test_counters_are_named_in_order_and_once():
    formula = Formula.parse("2 * sm__b.sum + max(sm__a.sum, sm__b.sum) / sm__c.avg.per_second")
    assert formula.counters == ("sm__b.sum", "sm__a.sum", "sm__c.avg.per_second")


def test_a_formula_is_evaluated_with_the_usual_precedence():
    values = {"a__x.sum": 3.0, "b__y.sum": 4.0}
    assert Formula.parse("2 * a__x.sum + 4 * b__y.sum").evaluate(values) == 22.0
    assert Formula.parse("2 * (a__x.sum + 4) * b__y.sum").evaluate(values) == 56.0
    assert Formula.parse("a__x.sum - b__y.sum - 1").evaluate(values) == -2.0
    assert Formula.parse("min(a__x.sum, b__y.sum, 0.5)").evaluate(values) == 0.5


def test_lines_and_spaces_of_a_data_file_do_not_matter():
    assert Formula.parse("\n  1 +\n  a__x.sum  \n") == Formula.parse("1+a__x.sum")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a__x.sum - (b__y.sum - 1)", "a__x.sum - (b__y.sum - 1)"),
        ("(a__x.sum - b__y.sum) - 1", "a__x.sum - b__y.sum - 1"),
        ("a__x.sum + (b__y.sum + 1)", "a__x.sum + (b__y.sum + 1)"),
        ("((a__x.sum * 2) / 3) + 1", "a__x.sum * 2 / 3 + 1"),
        ("a__x.sum / (b__y.sum * 2)", "a__x.sum / (b__y.sum * 2)"),
        ("(a__x.sum + 1) * 0.5", "(a__x.sum + 1) * 0.5"),
        ("max((1 + a__x.sum), 2)", "max(1 + a__x.sum, 2)"),
    ],
)
def test_text_keeps_only_the_parentheses_that_matter(text, shown):
    assert Formula.parse(text).text == shown
    assert Formula.parse(shown) == Formula.parse(text)


def test_an_unknown_counter_makes_the_result_unknown():
    formula = Formula.parse("max(a__x.sum, b__y.sum) + 0 * c__z.sum")
    assert formula.evaluate({"a__x.sum": 1.0, "b__y.sum": 2.0, "c__z.sum": None}) is None
    assert formula.evaluate({"a__x.sum": 1.0, "c__z.sum": 2.0}) is None


def test_a_division_by_zero_is_unknown():
    assert Formula.parse("1 / a__x.sum").evaluate({"a__x.sum": 0.0}) is None
    assert Formula.parse("0 / (a__x.sum - 2)").evaluate({"a__x.sum": 2.0}) is None


def test_a_formula_takes_the_place_of_a_counter():
    cycles = Formula.parse("a__t.sum * a__clock.avg")
    whole = Formula.parse("1 / a__x.sum").substitute({"a__x.sum": cycles, "unused": cycles})
    assert whole.text == "1 / (a__t.sum * a__clock.avg)"
    assert whole.evaluate({"a__t.sum": 2.0, "a__clock.avg": 4.0}) == 0.125


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1 +",
        "a__x.sum ** 2",
        "a__x.sum % 2",
        "-a__x.sum",
        "a__x.sum if 1 else 2",
        "a__x.sum > 1",
        "(lambda: 1)()",
        "__import__('os').system('true')",
        "print(1)",
        "a__x.sum()",
        "a__x[0]",
        "max(a__x.sum)",
        "max(*a__x.sum, 1)",
        "max(a__x.sum, 1, key=2)",
        "max + 1",
        "max.sum + 1",
        "'text'",
        "True",
        "1j",
        "1e999",
        "9" * 400,
        "(1).real",
        "a__x.sum; 1",
        "a__x.sum\x00",
        "(" * 300 + "1" + ")" * 300,
        "1+" * (MAX_LENGTH // 2) + "1",
        "# only a comment",
        "\ud800",
    ],
)
def test_anything_else_is_refused(text):
    with pytest.raises(CounterError, match="formula"):
        Formula.parse(text)


def test_a_long_formula_within_the_limit_is_read():
    text = "+".join(["1"] * 400)
    assert Formula.parse(text).evaluate({}) == 400.0


def test_the_message_names_the_part_that_is_wrong():
    with pytest.raises(CounterError, match=r"'print\(1\)' is not allowed"):
        Formula.parse("a__x.sum + print(1)")


def formulas():
    leaves = st.one_of(
        st.sampled_from(NAMES),
        st.integers(0, 600).map(str),
        st.sampled_from(["0.5", "1e-3", "2.5e6"]),
    )

    def grow(inner):
        return st.one_of(
            st.tuples(inner, st.sampled_from("+-*/"), inner).map(
                lambda part: f"({part[0]} {part[1]} {part[2]})"
            ),
            st.tuples(st.sampled_from(["max", "min"]), st.lists(inner, min_size=2, max_size=3)).map(
                lambda part: f"{part[0]}({', '.join(part[1])})"
            ),
        )

    return st.recursive(leaves, grow, max_leaves=8)


VALUES = st.dictionaries(
    st.sampled_from(NAMES),
    st.one_of(st.none(), st.just(0.0), st.floats(-1e9, 1e9)),
)


@pytest.fixture(scope="module")
def engine():
    with connect(threads=1) as connection:
        yield connection


@settings(max_examples=120, deadline=None)
@given(text=formulas(), values=VALUES)
def test_sql_and_python_give_the_same_value(engine, text, values):
    formula = Formula.parse(text)
    columns = ", ".join(f"?::DOUBLE AS {identifier(name)}" for name in NAMES)
    query = f"SELECT {formula.sql(identifier)} FROM (SELECT {columns})"
    found = engine.execute(query, [values.get(name) for name in NAMES]).fetchone()[0]
    expected = formula.evaluate(values)
    if expected is None:
        assert found is None
    else:
        assert found == pytest.approx(expected, rel=1e-12, abs=0.0, nan_ok=True)
        assert math.isfinite(found) == math.isfinite(expected)


@settings(max_examples=100, deadline=None)
@given(text=formulas())
def test_the_shown_text_reads_back_to_the_same_formula(text):
    formula = Formula.parse(text)
    assert Formula.parse(formula.text) == formula


def test_a_constant_is_a_double(engine):
    query = f"SELECT typeof({Formula.parse('0').sql(identifier)})"
    assert engine.execute(query).fetchone() == ("DOUBLE",)
