"""What the page reads from the launches of a run."""

import pytest

from mansard import engine
from mansard.analysis import analyze
from mansard.charts.page.detail import read_detail
from mansard.model.columns import RUN_COLUMNS
from mansard.model.machine import Ceiling, Machine
from mansard.model.provenance import Provenance
from mansard.model.run import Run
from mansard.store import open_run, write_run

MACHINE = Machine(
    name="round",
    basis="measured",
    ceilings=(
        Ceiling(kind="compute", path="vector fp32", value=1e12, unit="flop/s"),
        Ceiling(kind="bandwidth", level="dram", value=1e10, unit="byte/s"),
    ),
)


@pytest.fixture
def write(tmp_path):
    def made(*rows, name="run.parquet"):
        types = {column.name: column.sql_type for column in RUN_COLUMNS}
        columns = list(dict.fromkeys(key for row in rows for key in row))
        listed = ", ".join(f"unnest(${n}::{types[c]}[]) AS {c}" for n, c in enumerate(columns, 1))
        path = tmp_path / name
        with engine.connect(threads=1) as connection:
            connection.execute(
                f"CREATE TABLE rows AS SELECT {listed}",
                [[row.get(column) for row in rows] for column in columns],
            )
            write_run(connection, "SELECT * FROM rows", Provenance(), path)
        return open_run(path)

    return made


def detail_of(run, machine=MACHINE):
    return read_detail(run, analyze(run, machine))


def launch(name="k", **values):
    return {"name": name, "kind": "kernel", "duration_s": 1e-3, "bytes_dram": 1e6,
            "flop_vector_fp32": 1e6} | values  # fmt: skip


def test_a_run_of_one_phase_and_rank_has_no_parts(write):
    assert detail_of(write(launch(), launch("other"))).parts == ()


def test_kernels_are_summed_by_phase_with_their_floors(write):
    run = write(
        launch(phase="a", duration_s=1e-3, bytes_dram=5e6),
        launch(phase="a", duration_s=2e-3, bytes_dram=10e6),
        launch(phase="b", duration_s=4e-3, bytes_dram=20e6),
        launch(duration_s=8e-3, bytes_dram=40e6),
    )
    found = {part.phase: part.kernel for part in detail_of(run).parts}
    assert {phase: kernel.duration_s for phase, kernel in found.items()} == pytest.approx(
        {"a": 3e-3, "b": 4e-3, None: 8e-3}
    )
    # 15 MB at 10 GB/s take 1.5 ms, far more than 2 MFLOP at 1 TFLOP/s.
    assert found["a"].floor_s == pytest.approx(1.5e-3)
    assert found["a"].bound == "dram"
    assert found["a"].launches == 2
    assert found["a"].duration_min_s == 1e-3
    assert found["a"].duration_max_s == 2e-3


def test_the_parts_of_a_kernel_add_up_to_it(write):
    rows = [
        launch(f"k{number % 3}", phase="ab"[number % 2], rank=number % 4, duration_s=1e-3 * number)
        for number in range(1, 40)
    ]
    run = write(*rows)
    analysis = analyze(run, MACHINE)
    parts = read_detail(run, analysis).parts
    assert {part.by for part in parts} == {"phase", "rank", "phaserank"}
    for kernel in analysis.kernels:
        for by in ("phase", "rank", "phaserank"):
            members = [p.kernel for p in parts if p.by == by and p.kernel.key == kernel.key]
            assert sum(member.launches for member in members) == kernel.launches
            for name in ("duration_s", "flop", "floor_s", "zero_flop_launches"):
                both = sum(getattr(member, name) for member in members)
                assert both == pytest.approx(getattr(kernel, name))
            assert max(m.duration_max_s for m in members) == kernel.duration_max_s


def test_launches_are_counted_by_duration_in_bars_of_a_twentieth_of_a_decade(write):
    run = write(*[launch(duration_s=time) for time in (1.01e-3, 1.05e-3, 1.2e-3, 9e-3)])
    # Bars begin at 1, 1.122 and 8.913 ms.
    assert detail_of(run).spreads == {"k": ((1e-3, 2), (1.122e-3, 1), (8.913e-3, 1))}


def test_a_single_launch_has_no_spread(write):
    assert detail_of(write(launch())).spreads == {}


def test_operators_and_modules_are_named_longest_first(write):
    run = write(
        launch(op="aten::add", module="m", duration_s=1e-3),
        launch(op="aten::mul", duration_s=5e-3),
        launch(op="aten::add", module="m", duration_s=1e-3),
        launch("plain"),
    )
    callers = detail_of(run).callers
    assert [(c.op, c.module, c.launches) for c in callers["k"]] == [
        ("aten::mul", None, 1),
        ("aten::add", "m", 2),
    ]
    assert "plain" not in callers


def test_gaps_lie_where_no_stream_is_busy(write):
    run = write(
        launch("a", start_s=0.0, duration_s=2.0, stream=1, launch=0),
        launch("b", start_s=1.0, duration_s=3.0, stream=2, launch=1),
        # Until 4 the GPU is busy; then nothing runs for 1 s, and for 2 s before the last.
        launch("c", start_s=5.0, duration_s=1.0, stream=1, launch=2),
        launch("d", start_s=8.0, duration_s=1.0, stream=1, launch=3),
    )
    strip = detail_of(run).strip
    assert (strip.span_s, strip.busy_s, strip.launches) == (9.0, 6.0, 4)
    assert [(g.start_s, g.duration_s, g.after, g.before) for g in strip.gaps] == [
        (6.0, 2.0, "c", "d"),
        (4.0, 1.0, "b", "c"),
    ]
    assert strip.drawn[1] == (1.0, 3.0, "b", 2)


def test_the_strip_shows_the_first_rank_and_step(write):
    run = write(
        launch("late", rank=1, step=3, start_s=0.0, launch=0),
        launch("first", rank=0, step=3, start_s=7.0, launch=1),
        launch("next", rank=0, step=4, start_s=9.0, launch=2),
    )
    strip = detail_of(run).strip
    assert (strip.rank, strip.step, strip.launches) == (0, 3, 1)
    assert strip.drawn == ((0.0, 1e-3, "first", None),)


def test_times_go_into_the_page_in_nanoseconds_from_start_to_start(write):
    run = write(
        launch("a", start_s=1.0, duration_s=5e-9, launch=0),
        launch("b", start_s=1.000001, duration_s=7e-9, launch=1),
    )
    columns = detail_of(run).strip.columns({"a": 0})
    assert columns["start_ns"] == [0, 1000]
    assert columns["duration_ns"] == [5, 7]
    assert columns["kernel"] == [0, None]


def test_without_start_times_there_is_no_strip(write):
    assert detail_of(write(launch())).strip is None


def test_a_run_without_files_has_no_detail():
    run = Run(files=(), provenance=())
    found = detail_of(run, None)
    assert (found.parts, found.spreads, found.callers, found.strip) == ((), {}, {}, None)


def test_names_of_any_letters_are_matched(write):
    name = 'it\'s a "kernel" -- </script>\n漢字'
    run = write(launch(name, start_s=0.0, op="o'p"), launch(name, start_s=1.0))
    found = detail_of(run)
    assert list(found.spreads) == [name]
    assert found.callers[name][0].op == "o'p"
    assert found.strip.drawn[0][2] == name


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), -1.0, 1e300])
def test_impossible_times_reach_neither_the_strip_nor_the_callers(write, wrong):
    fine = launch(start_s=0.0, duration_s=1.0, launch=0, op="mm")
    run = write(fine, launch(start_s=2.0, duration_s=wrong, launch=1, op="mm"))
    found = detail_of(run)
    assert found.callers["k"][0].duration_s == 1.0
    assert found.strip.columns({})["duration_ns"] == [1_000_000_000]
    assert (
        detail_of(write(fine, launch(start_s=1e300, duration_s=1.0, launch=1))).strip.launches == 1
    )
