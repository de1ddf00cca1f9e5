"""Every GPU of a node, with stand-ins for the GPUs."""

import json
import threading

import pytest
import typer
from typer.testing import CliRunner

from mansard.bench import Options, bench_node, node
from mansard.cli.bench import bench
from mansard.errors import DeviceError, OutputError, UsageError
from mansard.model.machine import Ceiling, Machine
from mansard.store import load_machine


def machine(index, *, partial=False):
    ceiling = Ceiling(kind="bandwidth", value=4e12 + index, unit="byte/s", level="dram")
    return Machine(name="h200", basis="measured", ceilings=(ceiling,), partial=partial)


def values(found):
    return {index: each.ceilings[0].value for index, each in found.machines.items()}


@pytest.mark.parametrize("order", ["in turn", "together"])
def test_every_gpu_is_measured_with_the_same_options(order):
    asked = []

    def measure(index, options, _progress):
        asked.append((index, options.quick))
        return machine(index)

    found = bench_node(options=Options(quick=True), order=order, measure=measure, count=lambda: 3)
    assert sorted(asked) == [(0, True), (1, True), (2, True)]
    assert values(found) == {0: 4e12, 1: 4e12 + 1, 2: 4e12 + 2}
    assert (found.failures, found.interrupted) == ({}, False)


def test_together_all_run_at_the_same_time():
    meet = threading.Barrier(3, timeout=10)

    def measure(index, _options, _progress):
        meet.wait()  # broken unless all three are here at once
        return machine(index)

    found = bench_node(order="together", measure=measure, count=lambda: 3)
    assert sorted(found.machines) == [0, 1, 2]


@pytest.mark.parametrize("order", ["in turn", "together"])
def test_a_gpu_that_fails_leaves_the_others_alone(order):
    def measure(index, _options, _progress):
        if index == 1:
            raise DeviceError("cuda:1 is exclusive to another process")
        return machine(index)

    found = bench_node(order=order, measure=measure, count=lambda: 3)
    assert sorted(found.machines) == [0, 2]
    assert found.failures == {1: "cuda:1 is exclusive to another process"}


def test_an_interrupt_in_turn_keeps_what_is_finished_and_starts_no_other():
    asked = []

    def measure(index, _options, _progress):
        asked.append(index)
        return machine(index, partial=index == 1)

    found = bench_node(measure=measure, count=lambda: 4)
    assert asked == [0, 1]
    assert sorted(found.machines) == [0, 1]
    assert found.interrupted


def test_an_interrupt_together_ends_each_at_its_next_part(monkeypatch):
    started, waited = threading.Barrier(3, timeout=10), []

    def measure(index, _options, progress):
        progress("first", 0.1)
        started.wait()
        try:
            for _ in range(1000):
                progress("next", 0.2)
                threading.Event().wait(0.005)
        except KeyboardInterrupt:
            return machine(index, partial=True)
        pytest.fail("was not ended")

    def wait(futures):
        if not waited:
            waited.append(True)
            started.wait()
            raise KeyboardInterrupt
        for future in futures:
            future.exception()

    monkeypatch.setattr(node.concurrent.futures, "wait", wait)
    found = bench_node(order="together", measure=measure, count=lambda: 2)
    assert found.interrupted
    assert [each.partial for each in found.machines.values()] == [True, True]


def test_progress_names_the_gpu_and_counts_all_of_them():
    told = []

    def measure(index, _options, progress):
        progress("dram read", 0.0)
        progress("done", 1.0)
        return machine(index)

    bench_node(
        measure=measure, count=lambda: 2, progress=lambda what, share: told.append((what, share))
    )
    assert told == [
        ("cuda:0 dram read", 0.0),
        ("cuda:0 done", 0.5),
        ("cuda:1 dram read", 0.5),
        ("cuda:1 done", 1.0),
    ]


def run(*arguments):
    app = typer.Typer()
    app.command()(bench)
    return CliRunner().invoke(app, list(arguments))


@pytest.fixture
def two_gpus(monkeypatch):
    """GPU 1 can be broken."""
    state = {"broken": False}

    def measure(index, _options, _progress):
        if index == 1 and state["broken"]:
            raise DeviceError("no memory\nis left")
        return machine(index)

    monkeypatch.setattr(node, "_measure", measure)
    monkeypatch.setattr(node, "_count", lambda: 2)
    monkeypatch.setattr("socket.gethostname", lambda: "node7.cluster")
    return state


def test_each_gpu_gets_a_machine_file_named_after_the_host(two_gpus, tmp_path):
    result = run("--all", "-o", str(tmp_path / "fleet"))
    assert result.exit_code == 0
    assert sorted(path.name for path in (tmp_path / "fleet").iterdir()) == [
        "node7-gpu0.json",
        "node7-gpu1.json",
    ]
    loaded = load_machine(tmp_path / "fleet" / "node7-gpu1.json")
    assert loaded.name == "node7-gpu1"
    assert loaded.provenance["gpus_measured"] == "alone"


def test_one_broken_gpu_is_named_and_the_exit_code_is_partial(two_gpus, tmp_path):
    two_gpus["broken"] = True
    result = run("--all", "--together", "-o", str(tmp_path))
    assert result.exit_code == 3
    assert "cuda:1 was left out: no memory is left" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["node7-gpu0.json"]


def test_json_is_a_list_of_machines(two_gpus):
    result = run("--all", "--json")
    assert [each["name"] for each in json.loads(result.stdout)] == ["node7-gpu0", "node7-gpu1"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--together"], "give both"),
        (["--all", "--device", "cuda:1"], "leave out --device"),
        (["--all", "--chart", "x.png"], "leave out --chart"),
        (["--all", "-o", "-"], "give a folder"),
    ],
)
def test_options_that_do_not_go_together_are_refused(two_gpus, arguments, message):
    result = run(*arguments)
    assert isinstance(result.exception, UsageError)
    assert message in str(result.exception)


def test_a_file_in_place_of_the_folder_is_refused_before_the_measurement(two_gpus, tmp_path):
    (tmp_path / "m.json").touch()
    result = run("--all", "-o", str(tmp_path / "m.json"))
    assert isinstance(result.exception, OutputError)
