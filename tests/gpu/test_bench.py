"""The ceilings of the GPU at hand: believable, checked, in the right order."""

import itertools

import pytest

from mansard.bench import Options, bench

pytestmark = pytest.mark.gpu


def no_gpu():
    try:
        from cuda.bindings import driver

        (status,) = driver.cuInit(0)
        if status != driver.CUresult.CUDA_SUCCESS:
            return f"the driver does not start: {status}"
        status, count = driver.cuDeviceGetCount()
    except Exception as error:  # noqa: BLE001  (cuda.pathfinder has its own)
        return f"no NVIDIA driver: {type(error).__name__}"
    return None if count else "no GPU"


@pytest.fixture(scope="module")
def machine():
    reason = no_gpu()
    if reason:
        pytest.skip(reason)
    return bench("cuda:0", options=Options(quick=True))


def best(machine, **fields):
    values = [
        ceiling.value
        for ceiling in machine.ceilings
        if ceiling.value is not None
        and all(getattr(ceiling, name) == value for name, value in fields.items())
    ]
    return max(values, default=None)


def test_no_ceiling_is_above_its_limit(machine):
    shares = [c.share_of_limit for c in machine.ceilings if c.share_of_limit is not None]
    assert shares
    assert max(shares) <= 1.005


def test_every_refusal_is_a_statement_about_machine_code_or_a_missing_library(machine):
    reasons = [c.reason for c in machine.ceilings if c.status == "refused"]
    assert all("machine code" in reason or "installed" in reason for reason in reasons), reasons


def test_every_compute_kernel_was_compared_with_the_cpu(machine):
    kernels = [c for c in machine.ceilings if c.kind == "compute" and c.status == "measured"]
    assert kernels
    assert all("equals the CPU's" in c.evidence["result"] for c in kernels)


def test_no_memory_level_is_slower_than_one_further_from_the_sm(machine):
    rates = [
        best(machine, kind="bandwidth", level=level, access="read")
        for level in ("l1", "l2", "dram", "link")
    ]
    known = [rate for rate in rates if rate is not None]
    assert all(near > far for near, far in itertools.pairwise(known))


def test_latency_grows_with_distance(machine):
    times = [
        next(c.value for c in machine.ceilings if c.kind == "latency" and c.level == level)
        for level in ("l1", "l2", "dram")
    ]
    assert times == sorted(times)


def test_the_latency_of_l2_is_that_of_lines_that_were_read_before(machine):
    (l2,) = (c for c in machine.ceilings if c.kind == "latency" and c.level == "l2")
    assert l2.evidence["cycles"] <= 1.02 * l2.evidence["first_pass_cycles"]
    # The first pass over the set is not among the samples, so they agree from the first on.
    assert max(l2.samples) < 1.1 * min(l2.samples)


def test_a_chain_of_graph_nodes_is_cheaper_than_launches_and_these_than_waiting(machine):
    node, stream, wait = (
        machine.launch_cost(access).value for access in ("graph node", "stream", "synchronize")
    )
    assert node < stream < wait


def test_a_library_does_not_beat_the_roof_of_its_path(machine):
    for ceiling in machine.ceilings:
        if ceiling.instruction == "library" and ceiling.value is not None:
            others = [
                c.value
                for c in machine.ceilings
                if c.path == ceiling.path and c.instruction != "library" and c.value is not None
            ]
            assert ceiling.value <= max(others) * 1.005, ceiling.path


def test_on_hopper_the_ceilings_reach_what_the_chip_can_do(machine):
    if machine.device.compute_capability != "9.0":
        pytest.skip(f"rates are for 9.0, this is {machine.device.compute_capability}")
    wanted = {
        ("vector fp64", "fma"): 0.985,
        ("vector fp32", "fma"): 0.985,
        ("vector fp16", "fma f16x2"): 0.985,
        ("tensor fp64", "mma.sync"): 0.99,
        ("tensor bf16", "wgmma"): 0.98,
        ("tensor fp8", "wgmma"): 0.98,
        ("tensor int8", "wgmma"): 0.98,
    }
    found = {
        key: max(
            c.share_of_limit
            for c in machine.ceilings
            if (c.path, c.instruction) == key and c.share_of_limit is not None
        )
        for key in wanted
    }
    assert {key: share for key, share in found.items() if share < wanted[key]} == {}


def test_on_hopper_an_emulated_fp8_instruction_is_refused(machine):
    if machine.device.compute_capability != "9.0":
        pytest.skip("FP8 mma.sync is emulated on 9.0")
    emulated = [
        c for c in machine.ceilings if c.path == "tensor fp8" and c.instruction == "mma.sync"
    ]
    assert {c.status for c in emulated} == {"refused"}
