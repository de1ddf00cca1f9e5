"""Jobs made of the launches of a real run, with slow ranks put in: all are found, and only they."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest
from rich.console import Console

from mansard import readers
from mansard.analysis import analyze
from mansard.charts.ranks_view import fleet_dict, fleet_view
from mansard.store import machine

MAKER = Path(__file__).parents[3] / "benchmarks" / "synthetic_runs.py"


@pytest.fixture(scope="module")
def maker():
    spec = importlib.util.spec_from_file_location("synthetic_runs", MAKER)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


@pytest.fixture(scope="module")
def analyzed(maker, tmp_path_factory):
    folder = tmp_path_factory.mktemp("job")
    slow = [
        maker.Slow(3, 1.15),
        maker.Slow(9, 1.2, "dram"),
        maker.Slow(14, 1.12, "clock"),
        maker.Slow(20, 1.2, "work"),
    ]
    maker.write_job(folder, maker.Job(ranks=32, launches=1700, slow=slow))
    return analyze(readers.open(folder), machine("v100-paper"))


def _text(analysis, width=80):
    console = Console(width=width, record=True, file=open("/dev/null", "w"))  # noqa: PTH123, SIM115
    console.print(fleet_view(analysis))
    console.file.close()
    return console.export_text()


def test_every_slow_rank_is_found_with_its_cause_and_no_other(analyzed):
    assert {s.rank: s.cause for s in analyzed.fleet.stragglers} == {
        3: "slower",
        9: "slower at dram",
        14: "lower clock",
        20: "more work",
    }


def test_the_data_of_an_all_reduce_take_what_was_put_in(analyzed, maker):
    (reduce,) = analyzed.fleet.collectives
    assert reduce.moving_s == pytest.approx(reduce.calls * 32 * maker.MOVING_S)
    assert reduce.unmatched_s == 0


def test_the_slowest_rank_enters_every_collective_last(analyzed):
    slowest = max(analyzed.fleet.ranks, key=lambda rank: rank.last_share)
    assert (slowest.rank, slowest.last_share) == (20, 1.0)


def test_a_clean_job_has_no_straggler_and_no_slow_node(maker, tmp_path):
    maker.write_job(tmp_path / "job", maker.Job(ranks=16, launches=900, seed=5))
    found = analyze(readers.open(tmp_path / "job")).fleet
    assert found.stragglers == ()
    assert not any(node.slow for node in found.nodes)


@pytest.mark.parametrize("width", [60, 80, 160])
def test_the_block_fits_its_console_and_names_rank_and_cause(analyzed, width):
    text = _text(analyzed, width)
    assert max(map(len, text.splitlines())) <= width
    assert "Stragglers" in text
    assert "lower clock" in " ".join(text.split())


def test_a_run_of_one_rank_has_no_block(maker, tmp_path):
    maker.write_job(tmp_path / "job", maker.Job(ranks=1, launches=10))
    found = analyze(readers.open(tmp_path / "job"))
    assert _text(found).strip() == ""
    assert fleet_dict(found.fleet) is None


def test_the_json_of_the_ranks_holds_plain_values_only(analyzed):
    told = json.loads(json.dumps(fleet_dict(analyzed.fleet), allow_nan=False))
    assert told["stragglers"][0]["rank"] == 20
    assert len(told["ranks"]) == 32
    assert set(told) >= {"compute", "nodes", "phases", "collectives", "exposed_s", "gaps"}
