"""Measuring a GPU with fake children: order, crashes, interrupts, refusals."""

import pytest

from mansard.bench.gpu import NoGpuError, machine_name, measure_gpu
from mansard.bench.messages import Built, Outcome, Reply
from mansard.bench.plan import Choice
from mansard.errors import UsageError

ONLY_FP64 = Choice(only=("vector fp64 fma",))


def by_name(machine):
    return {(c.path or c.level, c.instruction, c.arm): c for c in machine.ceilings}


def test_every_test_of_the_plan_becomes_a_ceiling_or_a_curve(workers):
    machine = measure_gpu(make_worker=workers())
    assert machine.device.name == "NVIDIA H200"
    assert machine.name == "h200"
    assert not machine.partial
    assert {c.kind for c in machine.ceilings} == {"compute", "bandwidth", "latency", "launch"}
    assert "intensity vector fp64 dram" in machine.curves
    assert {c.arm for c in machine.ceilings if c.kind == "compute"} == {"low-toggle", "random"}


def test_a_crashed_kernel_is_refused_and_the_rest_goes_on(workers):
    def script(test):
        if test.name == "vector fp64 fma low-toggle":
            return workers.died("the process was ended by SIGSEGV")
        return workers.rate_of(test)

    factory = workers(script=script)
    machine = measure_gpu(choice=ONLY_FP64, make_worker=factory)
    broken = by_name(machine)["vector fp64", "fma", "low-toggle"]
    assert broken.status == "refused"
    assert broken.value is None
    assert "SIGSEGV" in broken.reason
    assert by_name(machine)["vector fp64", "fma", "random"].status == "measured"
    assert factory.made[0].opens == 2  # the device is opened again in a new process


def test_a_compiler_that_crashes_refuses_only_its_kernels(workers):
    def built(variant):
        return workers.died("SIGSEGV") if variant.source == "wgmma.cu" else Built()

    machine = measure_gpu(
        choice=Choice(only=("tensor bf16 *m*",)), make_worker=workers(built=built)
    )
    ceilings = by_name(machine)
    assert ceilings["tensor bf16", "wgmma", "random"].status == "refused"
    assert "compiler failed" in ceilings["tensor bf16", "wgmma", "random"].reason
    assert ceilings["tensor bf16", "mma.sync", "random"].status == "measured"


def test_machine_code_without_the_instruction_is_never_run(workers):
    def built(variant):
        return Built(problem="machine code: 0 of 64 QMMA") if "e4m3" in str(variant) else Built()

    factory = workers(built=built)
    machine = measure_gpu(choice=Choice(only=("tensor fp8 mma",)), make_worker=factory)
    assert [c.status for c in machine.ceilings] == ["refused", "refused"]
    assert factory.made[0].asked == []


def test_only_variants_that_compiled_are_measured(workers):
    seen = []

    def built(variant):
        return Built(problem="spills") if variant.defines.get("ILP") == "16" else Built()

    def script(test):
        seen.extend(variant.defines["ILP"] for variant in test.variants)
        return workers.rate_of(test)

    measure_gpu(choice=ONLY_FP64, make_worker=workers(script=script, built=built))
    assert seen
    assert "16" not in seen


def test_the_machine_code_belongs_to_the_variant_also_when_an_earlier_one_was_dropped(workers):
    def built(variant):
        if variant.defines["STEPS"] == "128":
            return Built(problem="spills")
        return Built(evidence={"machine_code": f"ILP {variant.defines['ILP']}"})

    machine = measure_gpu(choice=ONLY_FP64, make_worker=workers(built=built))
    assert {c.evidence["machine_code"] for c in machine.ceilings} == {"ILP 16"}


def test_the_machine_code_of_the_variant_that_was_measured_stands_in_the_evidence(workers):
    def built(variant):
        return Built(evidence={"machine_code": f"ILP {variant.defines['ILP']}"})

    def script(test):
        outcome = workers.rate_of(test)
        return Outcome(
            values=outcome.values,
            clocks_hz=outcome.clocks_hz,
            evidence={**outcome.evidence, "variant": 1},
        )

    machine = measure_gpu(choice=ONLY_FP64, make_worker=workers(script=script, built=built))
    assert {c.evidence["machine_code"] for c in machine.ceilings} == {"ILP 16"}
    assert all("variant" not in c.evidence for c in machine.ceilings)


def test_an_interrupt_keeps_what_is_finished(workers):
    count = 0

    def script(test):
        nonlocal count
        count += 1
        return KeyboardInterrupt() if count == 4 else workers.rate_of(test)

    machine = measure_gpu(make_worker=workers(script=script))
    assert machine.partial
    assert len(machine.ceilings) == 3
    assert any("Interrupted" in caveat for caveat in machine.caveats)


def test_an_error_of_the_child_is_the_reason_of_the_refusal(workers):
    script = lambda test: Reply(error=f"CUDA_ERROR_X in {test.name}")  # noqa: E731
    machine = measure_gpu(choice=ONLY_FP64, make_worker=workers(script=script))
    assert all("CUDA_ERROR_X" in c.reason for c in machine.ceilings)


def test_after_an_error_that_loses_the_context_a_new_child_is_started(workers):
    script = lambda _: Reply(error="CUDA_ERROR_ILLEGAL_ADDRESS: x")  # noqa: E731
    factory = workers(script=script)
    machine = measure_gpu(choice=ONLY_FP64, make_worker=factory)
    assert factory.made[0].opens == 1 + len(machine.ceilings)


def test_no_driver_is_said_before_anything_is_measured(workers):
    factory = workers(opened=Reply(error="there is no NVIDIA driver on this machine"))
    with pytest.raises(NoGpuError, match="no NVIDIA driver"):
        measure_gpu(make_worker=factory)


def test_a_pattern_that_matches_nothing_lists_the_names(workers):
    with pytest.raises(UsageError, match="vector fp64 fma random"):
        measure_gpu(choice=Choice(only=("fp65",)), make_worker=workers())


def test_progress_rises_from_0_to_1(workers):
    seen = []
    measure_gpu(
        choice=ONLY_FP64,
        progress=lambda name, share: seen.append((name, share)),
        make_worker=workers(),
    )
    shares = [share for _, share in seen]
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (0.0, 1.0)


def test_paths_that_the_gpu_lacks_are_named(workers):
    machine = measure_gpu(choice=ONLY_FP64, make_worker=workers())
    assert "This GPU does not have: tensor fp4, tensor fp6." in machine.caveats


def test_an_unknown_chip_of_a_known_generation_runs_on_compatible_code_and_says_so(workers, opened):
    import msgspec

    facts = msgspec.structs.replace(opened().facts, compute_capability="9.9")
    factory = workers(opened=opened(facts=facts))
    machine = measure_gpu(choice=ONLY_FP64, make_worker=factory)
    assert any("compiled for sm_90" in caveat for caveat in machine.caveats)
    assert all(c.status == "measured" for c in machine.ceilings)
    assert all(c.limit_at_clock is None for c in machine.ceilings)  # no rate is known: no share


@pytest.mark.parametrize(
    ("product", "name"),
    [
        ("NVIDIA H200", "h200"),
        ("Tesla V100-SXM2-16GB", "v100-sxm2-16gb"),
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", "h100-80gb-hbm3-mig-1g.10gb"),
        ("../../etc/passwd", "etc-passwd"),
        ("", "gpu"),
    ],
)
def test_a_product_name_becomes_a_safe_short_name(product, name):
    assert machine_name(product) == name
