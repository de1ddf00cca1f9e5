import dataclasses

import pytest

from mansard.bench.cpu.limits import Microarchitecture
from mansard.bench.cpu.plan import make_plan
from mansard.bench.cpu.rig import Prepared
from mansard.bench.cpu.sampling import Effort
from mansard.bench.cpu.session import Session
from mansard.errors import DeviceError, MachineError

EFFORT = Effort(
    sample_s=0.001,
    samples=5,
    samples_alone=3,
    samples_sweep=2,
    warm_up_s=0.005,
    rounds=1,
    sweep_factor=4.0,
)
TWO_PIPES = Microarchitecture("test", fma_bits=1024, source="a document")
STREAM_EVIDENCE = {"machine_code": {}, "vector_bytes": 64}


class ScriptedBench:
    """Rates by part; a part whose rate is an exception fails with it."""

    def __init__(self, scripted, rates=None, clock_hz=3e9, loaded_hz=2.5e9):
        self.scripted = scripted
        self.rates = rates or {}
        self.clock_hz = clock_hz
        self.loaded_hz = loaded_hz
        self.reserved = None
        self.after = {}

    def _prepared(self, name, default, evidence):
        rate = self.rates.get(name, default)
        if isinstance(rate, BaseException):
            raise rate
        return Prepared(
            whole=self.scripted([(rate, 1.0)], self.clock_hz),
            alone=self.scripted([(rate / 2, 1.0)], self.clock_hz),
            evidence=evidence,
            check=lambda: self.after.get(name) or "checked",
        )

    def compute(self, recipe):
        return self._prepared(recipe.path, 150e9, {"machine_code": {"spills": 0}})

    def clock(self, recipe, additions):
        self.additions = additions
        return self.scripted([(self.loaded_hz, 1.0)], self.clock_hz)

    def reserve(self, each_bytes, first_bytes):
        self.reserved = (each_bytes, first_bytes)

    def stream(self, access, footprint_bytes, alone_bytes):
        name = (
            f"{access} {footprint_bytes}" if f"{access} {footprint_bytes}" in self.rates else access
        )
        evidence = {**STREAM_EVIDENCE, "footprint_bytes_per_thread": footprint_bytes}
        # The farther, the slower, as a real machine.
        return self._prepared(name, 1e15 / footprint_bytes, evidence)


def run(server, bench, only=(), core=TWO_PIPES, progress=lambda *_: None):
    session = Session(make_plan(server, threads=2, only=only), bench, core=core, effort=EFFORT)
    return session, session.run(progress)


def test_a_ceiling_is_the_median_with_its_evidence(server, scripted):
    session, partial = run(server, ScriptedBench(scripted), only=["vector fp64"])
    (ceiling,) = session.ceilings
    assert not partial
    assert (ceiling.kind, ceiling.path, ceiling.instruction) == (
        "compute",
        "vector fp64",
        "fma 512-bit",
    )
    assert ceiling.value == pytest.approx(150e9)
    assert ceiling.unit == "flop/s"
    assert len(ceiling.samples) == 5
    assert ceiling.evidence["threads"] == 2
    assert ceiling.evidence["result"] == "checked"
    assert ceiling.evidence["one_thread"]["value"] == pytest.approx(75e9)
    assert ceiling.reason is None


def test_the_limit_is_pipes_times_width_times_two_at_the_clock_under_load(server, scripted):
    session, _ = run(server, ScriptedBench(scripted), only=["vector fp64"])
    (ceiling,) = session.ceilings
    # Two 512-bit pipes: 2 x 8 lanes x 2 operations x 2.5 GHz x 2 cores.
    assert ceiling.sm_clock_hz == pytest.approx(2.5e9)
    assert ceiling.limit_at_clock == pytest.approx(160e9)
    assert ceiling.share_of_limit == pytest.approx(150 / 160)
    assert ceiling.evidence["clock_around_hz"] == pytest.approx(3e9)


def test_a_result_above_its_limit_is_said_not_hidden(server, scripted):
    bench = ScriptedBench(scripted, {"vector fp64": 170e9})
    session, _ = run(server, bench, only=["vector fp64"])
    (ceiling,) = session.ceilings
    assert ceiling.value == pytest.approx(170e9)
    assert ceiling.reason.startswith("This is 106.2 % of the documented limit")


def test_without_a_documented_core_there_is_no_limit(server, scripted):
    core = Microarchitecture("unknown", reason="Nobody knows this core.")
    session, _ = run(server, ScriptedBench(scripted), only=["vector fp64"], core=core)
    (ceiling,) = session.ceilings
    assert ceiling.limit_at_clock is None
    assert ceiling.share_of_limit is None
    assert ceiling.evidence["limit"] == "Nobody knows this core."


def test_the_chain_is_longer_than_the_work_it_runs_beside(server, scripted):
    bench = ScriptedBench(scripted)
    run(server, bench, only=["vector fp64"])
    # 80 instructions x 16 FLOP x 2 threads / 150 GFLOP/s = 17.07 ns = 51.2 cycles; times 1.4.
    assert bench.additions == 72


@pytest.mark.parametrize("loaded_hz", [3.4e9, 1.0e9])
def test_a_clock_under_load_that_cannot_be_is_not_used(server, scripted, loaded_hz):
    session, _ = run(server, ScriptedBench(scripted, loaded_hz=loaded_hz), only=["vector fp64"])
    (ceiling,) = session.ceilings
    assert ceiling.sm_clock_hz == pytest.approx(3e9)
    assert ceiling.evidence["clock_under_load_hz"] is None


def test_a_missing_instruction_set_is_refused_with_its_name(server, scripted):
    session, _ = run(server, ScriptedBench(scripted), only=["vector bf16"])
    (ceiling,) = session.ceilings
    assert ceiling.status == "refused"
    assert ceiling.value is None
    assert ceiling.reason == "The processor does not have avx512_bf16."


def test_wrong_machine_code_or_a_missing_compiler_refuses_one_ceiling_not_all(server, scripted):
    rates = {"vector fp32": MachineError("wrong code"), "copy": DeviceError("no compiler")}
    session, _ = run(
        server, ScriptedBench(scripted, rates), only=["vector fp64", "vector fp32", "l1"]
    )
    status = {ceiling.path or ceiling.access: ceiling.status for ceiling in session.ceilings}
    assert status == {
        "vector fp64": "measured",
        "vector fp32": "refused",
        "read": "measured",
        "write": "measured",
        "copy": "refused",
        "triad": "measured",
    }
    assert {ceiling.reason for ceiling in session.ceilings} == {None, "wrong code", "no compiler"}


def test_a_wrong_result_after_the_samples_refuses_the_ceiling(server, scripted):
    bench = ScriptedBench(scripted)

    class Failing(ScriptedBench):
        def stream(self, *arguments):
            prepared = super().stream(*arguments)

            def fail():
                raise MachineError("wrong values")

            return dataclasses.replace(prepared, check=fail)

    bench = Failing(scripted)
    session, _ = run(server, bench, only=["l1 copy"])
    (ceiling,) = session.ceilings
    assert (ceiling.status, ceiling.reason) == ("refused", "wrong values")


def test_an_interrupt_keeps_what_is_finished_and_says_partial(server, scripted):
    rates = {"vector fp32": KeyboardInterrupt()}
    session, partial = run(
        server, ScriptedBench(scripted, rates), only=["vector fp64", "vector fp32"]
    )
    assert partial
    assert [ceiling.path for ceiling in session.ceilings] == ["vector fp64"]


def test_bandwidth_says_level_access_and_instruction(server, scripted):
    session, _ = run(server, ScriptedBench(scripted), only=["dram copy nt", "l2 read"])
    found = [(it.level, it.access, it.instruction) for it in session.ceilings]
    assert found == [
        ("l2", "read", "512-bit loads"),
        ("dram", "copy nt", "512-bit non-temporal loads and stores"),
    ]
    assert all(it.unit == "byte/s" and it.kind == "bandwidth" for it in session.ceilings)


def test_memory_is_reserved_once_for_all_and_for_one_alone(server, scripted):
    bench = ScriptedBench(scripted)
    run(server, bench)
    # Main memory: four times 64 MiB, shared by two threads, and once for one alone.
    assert bench.reserved == (128 * 1024**2, 256 * 1024**2)


def test_compute_alone_takes_no_memory_and_sweeps_nothing(server, scripted):
    bench = ScriptedBench(scripted)
    session, _ = run(server, bench, only=["compute"])
    assert bench.reserved is None
    assert session.curves == {}


def test_the_sweep_is_kept_as_a_curve_with_named_columns(server, scripted):
    session, _ = run(server, ScriptedBench(scripted), only=["l1", "l2"])
    curve = session.curves["read sweep"]
    assert curve["columns"] == ["bytes_per_thread", "byte_per_s", "spread", "disturbed_kept"]
    sizes = [row[0] for row in curve["rows"]]
    assert sizes == sorted(sizes)
    assert sizes[0] == 12 * 1024


def test_progress_names_each_part_and_ends_at_one(server, scripted):
    seen = []
    run(
        server,
        ScriptedBench(scripted),
        only=["vector fp64", "l1 read"],
        progress=lambda label, share: seen.append((label, round(share, 2))),
    )
    assert seen == [
        ("vector fp64 (fma 512-bit)", 0.0),
        ("writing memory", 0.25),
        ("sweep of sizes", 0.5),
        ("l1 read", 0.75),
        ("done", 1.0),
    ]
