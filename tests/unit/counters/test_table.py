"""Loading and choosing counter tables."""

import pytest

from mansard.counters import table as module
from mansard.counters.table import load_table, table_for, table_names, tables
from mansard.errors import CounterError
from mansard.model.columns import QUANTITY_COLUMNS


def test_parts_of_tables_are_no_tables():
    assert "gh100" in table_names()
    assert not any(name.startswith("_") for name in table_names())
    assert [each.name for each in tables()] == list(table_names())


@pytest.mark.parametrize(
    ("capability", "name"),
    [
        ("7.0", "paper-volta"),
        ("7.5", "tu10x"),
        ("8.0", "ga100"),
        ("8.6", "ga10x"),
        ("8.7", "ga10b"),
        ("8.9", "ad10x"),
        ("9.0", "gh100"),
        ("10.0", "gb100"),
        ("10.3", "gb11x"),
        ("11.0", "gb10b"),
        ("12.0", "gb20x"),
        ("12.1", "gb20b"),
    ],
)
def test_a_compute_capability_has_its_table(capability, name):
    assert table_for(compute_capability=capability).name == name


def test_the_chip_decides_before_the_compute_capability():
    assert table_for(chip="TU116", compute_capability="7.5").name == "tu11x"
    assert table_for(chip="gh100").name == "gh100"


@pytest.mark.parametrize("capability", [None, "6.1", "99.9", "", "9"])
def test_an_unknown_chip_gets_the_generic_table(capability):
    assert table_for(chip="GP102", compute_capability=capability).name == "generic"


def test_a_table_is_refused_for_other_chips():
    with pytest.raises(CounterError, match=r"paper-volta.*GV100.*7\.0.*GH100 9\.0.*'gh100'"):
        table_for(name="paper-volta", chip="GH100", compute_capability="9.0")
    with pytest.raises(CounterError, match=r"not for compute capability 8\.0; "):
        table_for(name="paper-volta", compute_capability="8.0")


def test_a_table_can_be_asked_for_when_the_chip_is_unknown_or_fits():
    assert table_for(name="paper-volta").name == "paper-volta"
    assert table_for(name="tu11x", compute_capability="7.5").name == "tu11x"
    assert table_for(name="generic", chip="GH100", compute_capability="9.0").name == "generic"


@pytest.mark.parametrize("name", ["", "h100", "_levels", "../gh100", "gh100.toml"])
def test_a_name_that_does_not_exist_lists_those_that_do(name):
    with pytest.raises(CounterError, match="ad10x, ga100"):
        load_table(name)


def test_generic_defines_no_tensor_and_no_inner_level():
    table = load_table("generic")
    assert {"duration_s", "sm_clock_hz", "flop_vector_fp64", "bytes_dram"} <= {*table.quantities}
    assert table.unavailable["flop_tensor_bf16"].code == "unknown-chip"
    assert table.unavailable["bytes_l2"].code == "unknown-chip"


def test_a_system_on_chip_has_no_counter_of_device_memory():
    for name in ("ga10b", "gb10b", "gb20b"):
        assert load_table(name).unavailable["bytes_dram"].code == "no-dram-counter"


def test_a_path_that_a_chip_lacks_is_zero_and_says_so():
    (only,) = load_table("ga100").quantities["flop_tensor_fp8"]
    assert only.formula.evaluate({}) == 0.0
    assert only.meaning == "this chip has no fp8 tensor path"


def test_only_an_h200_and_a_v100_verified_anything():
    assert {
        t.name for t in tables() if any(a.verified_on for q in t.quantities.values() for a in q)
    } == {
        "gh100",
        "paper-volta",
    }


@pytest.fixture
def files(monkeypatch):
    """Table files in place of those of the package."""
    texts = {}
    original = module._read

    def read(stem):
        return module._decode(texts[stem], stem) if stem in texts else original(stem)

    monkeypatch.setattr(module, "_read", read)
    return texts


def build(files, text):
    files["mine"] = text
    return module._build("mine", module._merged("mine", ()))


def test_a_table_extends_another_and_replaces_a_column(files):
    text = 'extends = ["gh100"]\n[[quantity.bytes_l1]]\nformula = "a__x.sum"\nmeaning = "m"\nsource = "paper"\n'
    with pytest.raises(CounterError, match="bytes_l1 has no alternative 'tags' to verify"):
        build(files, text)
    made = build(files, text.replace("gh100", "gb100"))
    assert [each.formula.text for each in made.quantities["bytes_l1"]] == ["a__x.sum"]
    assert made.quantities["bytes_l2"] == load_table("gb100").quantities["bytes_l2"]
    assert made.chips == ()


def test_further_alternatives_come_last(files):
    made = build(
        files,
        'extends = ["gb100"]\n[[further.bytes_l1]]\nformula = "a__x.sum"\nmeaning = "m"\nsource = "paper"\n',
    )
    assert made.quantities["bytes_l1"][:-1] == load_table("gb100").quantities["bytes_l1"]
    assert made.quantities["bytes_l1"][-1].formula.text == "a__x.sum"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("extends = [", "mine"),
        ('surprise = 1\nextends = ["gh100"]', "surprise"),
        ('extends = ["nothing"]', "nothing"),
        ('extends = ["mine"]', "mine -> mine"),
        ('extends = ["_base"]', "must be defined or named as unavailable"),
        ('extends = ["gh100"]\n[absent]\nflop_tensor_fp5 = "no"', "no column 'flop_tensor_fp5'"),
        ('extends = ["gh100"]\n[evidence]\n"a__x.sum" = ["bytes_l9"]', "no column 'bytes_l9'"),
        ('extends = ["gh100"]\n[unavailable]\nno-word = ["bytes_link"]', "no sentence"),
        (
            'extends = ["gh100"]\n[[further.bytes_l1]]\nformula = "a__x.sum"\nmeaning = "m"\nsource = "hearsay"',
            "unknown source 'hearsay'",
        ),
        (
            'extends = ["gh100"]\n[[further.bytes_l1]]\nformula = "a__x.sum +"\nmeaning = "m"\nsource = "paper"',
            "formula",
        ),
        ('half_weights = "double"\nextends = ["gh100"]', "half_weights"),
    ],
)
def test_a_wrong_table_is_refused_with_the_reason(files, text, message):
    with pytest.raises(CounterError, match=message):
        build(files, text)


def test_every_table_covers_every_column_once():
    names = {column.name for column in QUANTITY_COLUMNS}
    for table in tables():
        assert {*table.quantities} | {*table.unavailable} == names
        assert not {*table.quantities} & {*table.unavailable}
