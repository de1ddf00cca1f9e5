"""A table applied to the counters of a file: values, definitions, what is missing, notices."""

import csv
import itertools
import json
from pathlib import Path

import pytest

from mansard.counters.apply import apply
from mansard.counters.table import load_table, tables
from mansard.engine import connect, identifier
from mansard.errors import CounterError
from mansard.model.columns import COUNTER_PREFIX, QUANTITY_COLUMNS

DATA = Path(__file__).parents[2] / "data" / "counters"
OPS = "sm__ops_path_tensor_"
THREADS = "sm__sass_thread_inst_executed_op_{}_pred_on.sum"
EVIDENCE = "sm__inst_executed_pipe_tensor.sum"
VECTOR = [THREADS.format(p + o) for p in "dfh" for o in ("add", "mul", "fma")]


@pytest.fixture(scope="module")
def engine():
    with connect(threads=1) as connection:
        yield connection


def made(engine, applied, values):
    """Run the SQL of a table over one launch."""
    row = ", ".join(f"?::DOUBLE AS {identifier(COUNTER_PREFIX + name)}" for name in values)
    columns = ", ".join(f"{sql} AS {identifier(name)}" for name, sql in applied.columns)
    source = f"(SELECT {row})" if values else "(SELECT 1)"
    found = engine.execute(f"SELECT {columns} FROM {source}", list(values.values()))
    return dict(zip((d[0] for d in found.description), found.fetchone(), strict=True))


def run(engine, name, values, **options):
    return made(engine, apply(load_table(name), values, **options), values)


def codes(applied):
    return [notice.code for notice in applied.notices]


def test_every_column_appears_in_order_with_a_double(engine):
    for table, available in itertools.product(tables(), ((), VECTOR)):
        applied = apply(table, available)
        assert [name for name, _ in applied.columns] == [c.name for c in QUANTITY_COLUMNS]
        values = dict.fromkeys(available, 1.0)
        row = ", ".join(
            f"{v}::DOUBLE AS {identifier(COUNTER_PREFIX + n)}" for n, v in values.items()
        )
        types = ", ".join(f"typeof({sql})" for _, sql in applied.columns)
        found = engine.execute(f"SELECT {types} FROM (SELECT {row or 1})").fetchone()
        assert set(found) == {"DOUBLE"}


def test_nothing_collected_is_unknown_and_says_what_to_collect(engine):
    applied = apply(load_table("gh100"), ())
    found = made(engine, applied, {})
    assert found["bytes_l2"] is None
    assert found["flop_vector_fp32"] is None
    assert applied.missing["bytes_l2"] == ("lts__t_sectors_srcunit_tex.sum",)
    assert codes(applied) == [
        "time-not-collected",
        "clock-not-collected",
        "vector-not-collected",
        "tensor-not-collected",
        "shared-not-collected",
        "l1-not-collected",
        "l2-not-collected",
        "dram-not-collected",
    ]
    l2 = next(n for n in applied.notices if n.code == "l2-not-collected")
    assert "--metrics lts__t_sectors_srcunit_tex.sum" in l2.message


def test_a_path_that_the_chip_lacks_is_zero_even_when_nothing_was_collected(engine):
    assert run(engine, "ga100", {})["flop_tensor_fp8"] == 0.0
    assert "flop_tensor_fp8" not in apply(load_table("ga100"), ()).missing


def test_zero_vector_counters_leave_the_tensor_work_unknown(engine):
    found = run(engine, "gh100", dict.fromkeys(VECTOR, 0.0))
    assert found["flop_vector_fp32"] == 0.0
    assert found["flop_tensor_bf16"] is None
    assert found["flop_tensor_fp16"] is None


@pytest.mark.parametrize(("executed", "bf16"), [(0.0, 0.0), (262144.0, None), (None, None)])
def test_an_idle_tensor_pipe_shows_that_there_was_no_tensor_work(engine, executed, bf16):
    values = {EVIDENCE: executed}
    applied = apply(load_table("gh100"), values)
    found = made(engine, applied, values)
    assert found["flop_tensor_bf16"] == bf16
    assert found["flop_tensor_fp64"] == bf16
    assert "flop_tensor_bf16" in applied.missing
    assert (
        applied.definitions["flop_tensor_bf16"].formula == f"0 where {EVIDENCE} = 0, else unknown"
    )
    notice = next(n for n in applied.notices if n.code == "tensor-not-collected")
    assert "tensor bf16" in notice.message
    assert "does not tell their work" in notice.message


def test_one_idle_kind_of_tensor_instruction_decides_its_precisions_alone(engine):
    values = {EVIDENCE: 8.0, "sm__inst_executed_pipe_tensor_op_dmma.sum": 0.0}
    found = run(engine, "gh100", values)
    assert found["flop_tensor_fp64"] == 0.0
    assert found["flop_tensor_bf16"] is None


def test_narrow_integers_that_nobody_collects_are_no_notice():
    everything = [
        c for ways in load_table("gh100").quantities.values() for c in ways[0].formula.counters
    ]
    applied = apply(load_table("gh100"), [c for c in everything if "int1" not in c])
    assert "op_tensor_int1" in applied.missing
    assert applied.notices == ()


def test_the_number_of_tensor_instructions_gives_work_on_volta_alone(engine):
    values = {EVIDENCE: 1000.0}
    assert run(engine, "paper-volta", values)["flop_tensor_fp16"] == 512_000.0
    for table in tables():
        if table.name != "paper-volta":
            found = made(engine, apply(table, values), values)
            assert [v for c, v in found.items() if "tensor" in c and v not in (None, 0.0)] == []


def test_totals_and_parts_are_counted_once(engine):
    total = {f"{OPS}src_bf16_dst_fp32.sum": 3e12}
    parts = {
        f"{OPS}op_{kind}_src_bf16_dst_fp32{sparsity}.sum": value
        for kind, value in (("hgmma", 2e12), ("hmma", 1e12))
        for sparsity in ("", "_sparsity_off")
    } | {f"{OPS}op_{kind}_src_bf16_dst_fp32_sparsity_on.sum": 0.0 for kind in ("hgmma", "hmma")}
    assert run(engine, "gh100", total | parts)["flop_tensor_bf16"] == 3e12
    assert run(engine, "gh100", parts)["flop_tensor_bf16"] == 3e12


def test_parts_alone_are_summed(engine):
    leaves = {
        f"{OPS}op_{kind}_src_bf16_dst_fp32_sparsity_{state}.sum": value
        for (kind, state), value in zip(
            itertools.product(("hgmma", "hmma"), ("off", "on")), (4.0, 3.0, 2.0, 1.0), strict=True
        )
    }
    assert run(engine, "gh100", leaves)["flop_tensor_bf16"] == 10.0


def test_dense_parts_alone_are_taken_with_a_caveat(engine):
    dense = {
        f"{OPS}op_{kind}_src_bf16_dst_fp32_sparsity_off.sum": 5.0 for kind in ("hgmma", "hmma")
    }
    applied = apply(load_table("gh100"), dense)
    assert made(engine, applied, dense)["flop_tensor_bf16"] == 10.0
    assert "sparse-not-counted" in codes(applied)


def test_one_missing_part_leaves_the_sum_unknown(engine):
    one = {f"{OPS}op_hgmma_src_bf16_dst_fp32.sum": 5.0}
    assert run(engine, "gh100", one)["flop_tensor_bf16"] is None


# Ten instructions of each kind: add + mul + fma.
@pytest.mark.parametrize(
    ("table", "option", "flop"),
    [
        ("gh100", {}, 10 * (2 + 2 + 4)),
        ("gh100", {"half_weights": "unpacked"}, 10 * (1 + 1 + 2)),
        ("paper-volta", {}, 10 * (1 + 1 + 2)),
        ("paper-volta", {"half_weights": "vendor"}, 10 * (2 + 2 + 4)),
    ],
)
def test_the_convention_for_half_precision_is_an_option(engine, table, option, flop):
    values = {THREADS.format(f"h{op}"): 10.0 for op in ("add", "mul", "fma")}
    assert run(engine, table, values, **option)["flop_vector_fp16"] == flop


def test_the_convention_for_half_precision_stands_in_the_definition():
    halves = [THREADS.format(f"h{op}") for op in ("add", "mul", "fma")]
    applied = apply(load_table("gh100"), halves, half_weights="unpacked")
    assert "add 1, mul 1, fma 2" in applied.definitions["flop_vector_fp16"].meaning


def test_another_convention_is_refused():
    with pytest.raises(CounterError, match="vendor or unpacked"):
        apply(load_table("gh100"), (), half_weights="double")


def test_packed_single_precision_counts_pairs(engine):
    scalar = {THREADS.format(f"f{op}"): 1.0 for op in ("add", "mul", "fma")}
    packed = {THREADS.format(f"f{op}2"): 100.0 for op in ("add", "mul", "fma")}
    assert run(engine, "gb100", scalar | packed)["flop_vector_fp32"] == 4 + 100 * (2 + 2 + 4)
    applied = apply(load_table("gb100"), scalar)
    assert made(engine, applied, scalar)["flop_vector_fp32"] == 4.0
    assert "packed-fp32-not-counted" in codes(applied)


# The vector addition of 2^26 fp32 values on an H200 (ideal 805,306,368 bytes): what each counter
# showed there.
STREAM = {
    "lts__t_sectors_srcunit_tex.sum": 805_306_368 / 32,
    "l1tex__m_xbar2l1tex_read_bytes.sum": 536_870_912.0,
    "l1tex__m_l1tex2xbar_write_bytes.sum": 268_435_456.0,
    "lts__t_bytes.sum": 1.222e9,
    "lts__lts2xbar_cycles_active.sum": 0.667 * 805_306_368 / 32,
}


@pytest.mark.parametrize(
    ("left_out", "bytes_l2", "caveat"),
    [
        (0, 805_306_368, None),
        (1, 805_306_368, None),
        (3, 1.222e9, "l2-counts-other-traffic"),
        (4, 0.667 * 805_306_368, "l2-counts-reads-only"),
    ],
)
def test_the_best_l2_counter_of_the_file_is_taken(engine, left_out, bytes_l2, caveat):
    values = dict(list(STREAM.items())[left_out:])
    applied = apply(load_table("gh100"), values)
    assert made(engine, applied, values)["bytes_l2"] == pytest.approx(bytes_l2)
    assert [c for c in codes(applied) if c.startswith("l2-")] == ([caveat] if caveat else [])


def test_tags_alone_do_not_see_tma_and_say_so(engine):
    tags = {"l1tex__t_bytes.sum": 12_288.0}
    received = {"l1tex__m_xbar2l1tex_read_bytes.sum": 2.01e8}
    assert "l1-blind-to-tma" in codes(apply(load_table("gh100"), tags))
    applied = apply(load_table("gh100"), tags | received)
    assert made(engine, applied, tags | received)["bytes_l1"] == 2.01e8
    assert "l1-blind-to-tma" not in codes(applied)
    assert "l1-blind-to-tma" not in codes(apply(load_table("ga100"), tags))


def test_a_caveat_of_several_columns_is_one_notice():
    available = [f"{OPS}src_{t}_sparsity_off.sum" for t in ("bf16_dst_fp32", "tf32_dst_fp32")]
    assert codes(apply(load_table("ga100"), available)).count("sparse-not-counted") == 1


def test_no_device_memory_counter_is_a_notice_and_nothing_to_collect():
    applied = apply(load_table("ga10b"), ())
    assert "no-dram-counter" in codes(applied)
    assert "dram-not-collected" not in codes(applied)
    assert "bytes_dram" not in applied.missing


def test_an_unknown_chip_is_one_notice(engine):
    values = dict.fromkeys([*VECTOR, "gpu__time_duration.sum", "dram__bytes.sum"], 2.0)
    applied = apply(load_table("generic"), values)
    assert codes(applied) == ["clock-not-collected", "unknown-chip"]
    found = made(engine, applied, values)
    assert (found["flop_vector_fp64"], found["bytes_dram"]) == (8.0, 2.0)
    assert (found["flop_tensor_bf16"], found["bytes_l2"]) == (None, None)


def test_counts_rebuilt_from_rates_are_marked(engine):
    launches = json.loads((DATA / "h200_rates.json").read_text())
    values = next(each["counters"] for each in launches if each["operation"] == "gemm_fp32")
    applied = apply(load_table("gh100"), values)
    found = made(engine, applied, values)
    # 2 M N K fused, and one multiplication by alpha for each element of the result.
    assert found["flop_vector_fp32"] == pytest.approx(2 * 2048**3 + 2048**2, rel=1e-9)
    assert found["duration_s"] == 0.000344096
    assert applied.definitions["flop_vector_fp32"].derived
    assert not applied.definitions["duration_s"].derived
    (notice,) = (n for n in applied.notices if n.code == "derived-from-rates")
    assert "flop_vector_fp32" in notice.message
    assert "duration_s" not in notice.message


def test_fp8_of_nsight_computes_roofline_set_is_found(engine):
    launches = json.loads((DATA / "h200_rates.json").read_text())
    values = next(each["counters"] for each in launches if each["operation"] == "gemm_fp8")
    assert run(engine, "gh100", values)["flop_tensor_fp8"] == pytest.approx(2 * 2048**3, rel=1e-9)


def test_time_is_taken_from_cycles_where_nothing_else_is_there(engine):
    values = {"sm__cycles_elapsed.avg": 1.3e6, "sm__cycles_elapsed.avg.per_second": 1.3e9}
    assert run(engine, "ga100", values)["duration_s"] == pytest.approx(1e-3)
    assert run(engine, "ga100", dict.fromkeys(values, 0.0))["duration_s"] is None


def authors_rows():
    with (DATA / "authors_deepcam_forward.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("row", authors_rows(), ids=lambda row: row["Kernel Name"][-24:])
def test_the_paper_table_gives_the_authors_own_numbers(engine, row):
    values = {name: float(value) for name, value in row.items() if "__" in name and ".sum" in name}
    clock = "sm__cycles_elapsed.avg"
    values |= {name: float(row[name]) for name in (clock, f"{clock}.per_second")}
    found = run(engine, "paper-volta", values)
    vector = found["flop_vector_fp32"] + found["flop_vector_fp16"]
    flop = vector + found["flop_tensor_fp16"]
    assert vector == float(row["CC FLOPs"])
    assert found["flop_tensor_fp16"] == float(row["TC FLOPs"])
    for level, column in (("AI L1", "bytes_l1"), ("AI L2", "bytes_l2"), ("AI HBM", "bytes_dram")):
        assert flop / found[column] == pytest.approx(float(row[level]), rel=1e-12)
    # Their time of a kernel is the sum of cycles over the mean clock of its launches.
    assert found["duration_s"] * float(row["Count"]) == pytest.approx(float(row["Time"]), rel=1e-12)


def test_double_precision_was_not_collected_by_the_authors():
    names = [name for name in authors_rows()[0] if "__" in name]
    applied = apply(load_table("paper-volta"), names)
    notice = next(n for n in applied.notices if n.code == "vector-not-collected")
    assert "(vector fp64)" in notice.message


def test_hostile_counter_names_stay_quoted(engine):
    values = {'x"; DROP TABLE t; --.sum': 1.0, "dram__bytes.sum": 2.0}
    assert run(engine, "gh100", values)["bytes_dram"] == 2.0
