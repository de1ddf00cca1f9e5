"""Times of whole ranges and graphs: what a trace says of them, and when it is believed."""

import pytest
from ncu_makers import DATA, counted, report_of, traced

from mansard.collect.ncu import Conditions, Graphs, NcuOptions, Replay, Selection
from mansard.collect.ncu.count import Counting
from mansard.collect.ncu.log import Log
from mansard.collect.ncu.merge import read_reports
from mansard.collect.ncu.notices import counting_notices
from mansard.collect.ncu.process import Ended
from mansard.collect.ncu.target import Target
from mansard.collect.ncu.trace import ProgramTrace, Traced
from mansard.collect.ncu.whole import stretches_of, with_times
from mansard.collect.ranks import Rank
from mansard.engine import connect
from mansard.errors import UsageError

RANGE = NcuOptions(conditions=Conditions(replay=Replay.RANGE))
GRAPH = NcuOptions(conditions=Conditions(graphs=Graphs.GRAPH))
REPORTS = DATA / "ncu_rep"


def stretches(options, *launches):
    trace = ProgramTrace(launches=[traced(**each) for each in launches], source="a test")
    return stretches_of(trace, options)


def in_short(found):
    return [(each.kind, each.symbol, len(each.launches)) for each in found]


def test_a_range_is_what_ran_between_start_and_stop_of_the_profiler():
    found = stretches(
        RANGE,
        {"number": 0, "region": 0},
        {"number": 1, "region": 1},
        {"number": 2, "region": 1},
        {"number": 3, "region": 0},
        {"number": 4, "region": 2},
    )
    assert in_short(found) == [("range", "", 2), ("range", "", 1)]


def test_the_time_of_a_stretch_is_that_in_which_something_ran_in_it():
    # 10 us, a gap, then 30 us of which 10 overlap with another launch of 20 us.
    first = {"number": 0, "duration_us": 10}
    second = {"number": 1, "duration_us": 30}
    third = {"start_ns": 1_120_000, "end_ns": 1_140_000}
    (stretch,) = stretches(RANGE, first, second, third)
    assert stretch.busy_ns == 10_000 + 40_000
    assert stretch.start_ns == 1_000_000


def test_named_ranges_are_the_unbroken_stretches_inside_of_them():
    options = NcuOptions(
        conditions=Conditions(replay=Replay.APP_RANGE), selection=Selection(nvtx_include=("step/",))
    )
    inside = {"ranges": ("step",), "region": 0}
    found = stretches(
        options,
        {"number": 0, **inside},
        {"number": 1, **inside},
        {"number": 2, "region": 0},
        {"number": 3, **inside},
    )
    assert in_short(found) == [("range", "", 2), ("range", "", 1)]


def test_the_nodes_of_one_launch_of_a_graph_are_one_stretch_and_copies_are_none():
    node = {"in_graph": True}
    found = stretches(
        GRAPH,
        {"number": 0, "call": 5, **node},
        {"number": 1, "call": 5, **node},
        {"number": 2, "call": 6, "symbol": "mul"},
        {"number": 3, "call": 7, "kind": "memcpy", "symbol": "", "shape": None},
        {"number": 4, "call": 8, **node},
        {"number": 5, "call": 9, **node},
    )
    assert in_short(found) == [
        ("graph", "", 2),
        ("kernel", "mul", 1),
        ("graph", "", 1),
        ("graph", "", 1),
    ]


def test_launches_that_ncu_passes_over_have_no_stretch():
    launches = [{"number": number, "call": number} for number in range(5)]
    options = NcuOptions(
        conditions=Conditions(graphs=Graphs.GRAPH),
        selection=Selection(launch_skip=1, launch_count=2),
    )
    assert [each.start_ns for each in stretches(options, *launches)] == [1_100_000, 1_200_000]


@pytest.fixture
def timed(tmp_path):
    """Rows of a report with the times of stretches: kind, start, time; and how many have none."""

    def read(report, found):
        with connect(threads=1) as connection:
            capture, symbols = read_reports(connection, [report], "t", "no such counter")
            without = with_times(connection, capture, symbols, found)
            rows = connection.execute(
                f'SELECT kind, start_s, duration_s FROM "{capture.table}" ORDER BY row'
            ).fetchall()
        return rows, without

    return read


def test_a_recorded_range_gets_the_time_of_its_kernels(timed):
    launches = [{"number": n, "symbol": "_Z4addsPfi", "duration_us": 2} for n in (3, 4)]
    rows, without = timed(REPORTS / "kind-range.ncu-rep.gz", stretches(RANGE, *launches))
    assert rows == [("range", 0.0, pytest.approx(4e-6))]
    assert without == 0


def test_graphs_and_kernels_beside_them_get_their_times_of_the_trace(timed):
    node = {"symbol": "_Z4addsPfi", "in_graph": True, "duration_us": 2}
    nodes = [{**node, "number": n, "call": n // 3} for n in range(6)]
    beside = [{"number": n, "symbol": "_Z4addsPfi", "duration_us": n, "call": n} for n in (6, 7)]
    report = REPORTS / "kind-graph.ncu-rep.gz"
    rows, without = timed(report, stretches(GRAPH, *nodes, *beside))
    assert [row[0] for row in rows] == ["graph", "graph", "kernel", "kernel"]
    assert [row[2] for row in rows] == pytest.approx([6e-6, 6e-6, 6e-6, 7e-6])
    assert [row[1] for row in rows] == pytest.approx([0, 3e-4, 6e-4, 7e-4])
    assert without == 0
    # Another kernel beside them: then nothing of the trace is believed.
    other = [{**each, "symbol": "_Z4mulsPfi"} for each in beside]
    rows, without = timed(report, stretches(GRAPH, *nodes, *other))
    assert ([row[2] for row in rows], without) == ([None] * 4, 4)


@pytest.mark.parametrize("regions", [(), (1, 2)], ids=["none", "two"])
def test_a_trace_with_other_ranges_gives_no_times(timed, regions):
    launches = [{"number": n, "region": region} for n, region in enumerate(regions)]
    rows, without = timed(REPORTS / "kind-range.ncu-rep.gz", stretches(RANGE, *launches))
    assert (rows, without) == ([("range", None, None)], 1)


def test_processes_are_paired_in_their_order_and_one_that_differs_spoils_only_itself(
    timed, tmp_path
):
    import report_writer as writer

    one = report_of(tmp_path / "a", counted("add")).read_bytes()
    block = writer.block(results=[counted("mul")], process=(9999, "node17"))
    (tmp_path / "b").write_bytes(one + block)
    found = stretches(
        GRAPH,
        {"process": 5, "symbol": "add", "number": 0, "duration_us": 7},
        {"process": 6, "symbol": "other", "number": 1},
    )
    rows, without = timed(tmp_path / "b", found)
    assert rows == [("kernel", 0.0, pytest.approx(7e-6)), ("kernel", None, None)]
    assert without == 1


def test_a_sample_is_made_of_kernels():
    with pytest.raises(UsageError, match="--replay range counts whole ranges, and a sample"):
        NcuOptions(conditions=Conditions(replay=Replay.RANGE), selection=Selection(sample=1))
    with pytest.raises(UsageError, match="--graphs graph counts whole graphs, and a sample"):
        NcuOptions(conditions=Conditions(graphs=Graphs.GRAPH), selection=Selection(sample=1))


@pytest.mark.parametrize(
    ("replay", "told"),
    [
        # Nothing is left out of a range; and a program that runs once a pass is one process.
        (Replay.APP_RANGE, False),
        (Replay.APPLICATION, False),
        (Replay.KERNEL, True),
    ],
)
def test_collectives_are_said_to_be_left_out_only_where_they_are(tmp_path, replay, told):
    log = Log()
    log.feed("==PROF== Connected to process 1 (/app)\n==PROF== Connected to process 2 (/app)\n")
    counting = Counting(
        folder=tmp_path, reports=(), ended=Ended(0, 1.0, None), log=log, target=Target()
    )
    options = NcuOptions(conditions=Conditions(replay=replay))
    said = counting_notices(
        counting, Traced(), options, Rank(rank=None, size=1, host="node", process=1)
    )
    assert ("collectives-excluded" in {notice.code for notice in said}) == told
