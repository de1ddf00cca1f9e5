"""The kernels on this machine: results, bytes and clock, not speed."""

import dataclasses
import platform

import numpy as np
import pytest

from mansard.bench.cpu import compute, jit, stream
from mansard.bench.cpu.compute_kernels import compute_module
from mansard.bench.cpu.memory import Buffer
from mansard.bench.cpu.processor import read_processor
from mansard.bench.cpu.recipes import PATHS, recipes_for
from mansard.bench.cpu.rig import Rig
from mansard.bench.cpu.stream_kernels import STREAMS
from mansard.bench.cpu.team import Team
from mansard.errors import DeviceError, MachineError

pytestmark = pytest.mark.skipif(platform.system() != "Linux", reason="threads are pinned on Linux")


@pytest.fixture(scope="module")
def rig():
    processor = read_processor()
    with Team(processor.cores[:2]) as team:
        made = Rig(processor, team)
        made.reserve(1 << 20, 2 << 20)
        yield made


@pytest.mark.parametrize("path", PATHS)
def test_every_instruction_of_this_machine_gives_the_recomputed_result(rig, path):
    processor = rig.processor
    recipes = [it for it in recipes_for(processor.architecture, processor.flags) if it.path == path]
    if not recipes:
        pytest.skip(f"this processor has no {path}")
    for recipe in recipes:
        try:
            prepared = rig.compute(recipe)
        except DeviceError as error:
            pytest.skip(str(error))
        assert "to the last bit" in prepared.check()
        assert prepared.evidence["machine_code"]["memory_operands"] == 0


def test_the_vectors_of_a_processor_without_avx512_work_too(rig):
    flags = rig.processor.flags
    older = frozenset(flag for flag in flags if not flag.startswith(("avx512", "amx")))
    recipes = recipes_for(rig.processor.architecture, older)
    if not recipes or recipes == recipes_for(rig.processor.architecture, flags):
        pytest.skip("this processor has only one width of vectors")
    for recipe in recipes:
        assert "to the last bit" in rig.compute(recipe).check()


def test_a_compute_call_counts_its_operations(rig):
    recipe = recipes_for(rig.processor.architecture, rig.processor.flags)[0]
    work, timing = rig.compute(recipe).whole.run(1000)
    threads = len(rig.team.cpus)
    # fp64: lanes x 2 x 80 or 40 instructions x 1000 iterations.
    lanes = recipe.register_bytes // 8
    assert work == 2 * lanes * 4 * recipe.accumulators * 1000 * threads
    assert timing.duration_s > 0


def test_a_wrong_result_is_refused(rig):
    recipe = recipes_for(rig.processor.architecture, rig.processor.flags)[0]
    other = dataclasses.replace(recipe, operation=recipe.operation.replace("{b}", "{a}"))
    text = compute_module(other, rig.processor.architecture)
    kernel = jit.compile_kernel(text, jit.host_target())
    with pytest.raises(MachineError, match="gave a wrong result"):
        compute.check_result(recipe, kernel, rig.team)


def test_a_loop_that_is_not_what_is_counted_is_refused(rig):
    recipe = recipes_for(rig.processor.architecture, rig.processor.flags)[0]
    kernel = jit.Kernel(None, "kernel:\n\tret\n\t.size kernel, 1\n", None)
    with pytest.raises(MachineError, match=r"made 0 fma .* not .* and 0"):
        compute.check_code(recipe, kernel, rig.processor.architecture)
    with pytest.raises(MachineError, match="reads 0 and writes 0 bytes"):
        stream.check_code("copy", kernel, rig.processor.architecture, 16)


@pytest.mark.parametrize("access", STREAMS)
@pytest.mark.parametrize("footprint_kib", [24, 300])
def test_every_access_leaves_the_right_values(rig, access, footprint_kib):
    prepared = rig.stream(access, footprint_kib << 10, footprint_kib << 10)
    moved, timing = prepared.whole.run(1)
    assert "equal to numpy" in prepared.check()
    streams = {"read": 1, "write": 1, "copy": 2, "triad": 3}[access.removesuffix(" nt")]
    assert moved == streams * 16 * rig.vector_bytes * len(rig.team.cpus)
    assert 0 < timing.core_share <= 1


@pytest.mark.parametrize("access", ["copy", "triad", "write"])
def test_a_wrong_value_in_memory_is_found(rig, access):
    prepared = rig.stream(access, 24 << 10, 24 << 10)
    prepared.whole.run(1)
    buffer = prepared.whole.buffers[-1]
    buffer.view(np.float64, 0, 1)[0] += 1
    with pytest.raises(MachineError, match=f"The {access} kernel left wrong values"):
        prepared.check()


def test_long_arrays_are_walked_in_windows_and_start_again_at_the_end(rig):
    workload = rig.stream("read", 16 * 16 * rig.vector_bytes, 0).whole
    starts = []
    for _ in range(4):
        workload.run(6)
        starts.append(workload.last)
        workload.check()
    # Sixteen iterations in all: six, six, and the last four are left out.
    assert starts == [(0, 6), (6, 6), (0, 6), (6, 6)]


def test_short_arrays_are_walked_many_times(rig):
    workload = rig.stream("copy", 2 * 4 * 16 * rig.vector_bytes, 0).whole
    moved, _ = workload.run(40)
    assert workload.last == (0, 4)
    assert moved == 2 * 40 * 16 * rig.vector_bytes * len(rig.team.cpus)


def test_the_clock_is_that_of_a_real_processor(rig):
    recipe = recipes_for(rig.processor.architecture, rig.processor.flags)[0]
    _, timing = rig.compute(recipe).whole.run(10_000)
    assert 0.3e9 < timing.clock_hz < 8e9


def test_a_buffer_is_aligned_and_wholly_written():
    buffer = Buffer(3 << 20)
    buffer.fill(1)
    values = buffer.view(np.float64, 0, (3 << 20) // 8)
    assert buffer.address % (2 << 20) == 0
    assert values.min() >= 0.5
    assert values.max() < 1.0


def test_a_buffer_that_is_no_multiple_of_the_pattern_is_wholly_written():
    buffer = Buffer((1 << 19) + 4096)
    buffer.fill(1)
    assert buffer.view(np.float64, 0, buffer.size_bytes // 8).min() >= 0.5


def test_without_llvmlite_the_remedy_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "llvmlite", None)
    with pytest.raises(DeviceError, match="pip install llvmlite"):
        jit.host_target()
    assert jit.versions() == {}
