import ctypes
import os
import threading

import pytest

from mansard.bench.cpu import jit
from mansard.bench.cpu.compute_kernels import compute_module
from mansard.bench.cpu.jit import Kernel
from mansard.bench.cpu.processor import read_processor
from mansard.bench.cpu.recipes import recipes_for
from mansard.bench.cpu.team import Team, timing_of

CYCLES = 64 * 2400  # additions of the clock chain


def stamps(*, chain_s=50e-6, start=0, end=2_000_000, of_thread=2_000_000):
    """Times of one thread in nanoseconds after 100 s, as pairs (seconds, nanoseconds)."""
    chain = round(chain_s * 1e9)
    rows = [0, chain, None, chain + start, chain + end, None, chain + end, 2 * chain + end]
    flat = []
    for row in rows:
        flat += [100, row] if row is not None else [0, 0]
    flat[4:6] = [7, 0]
    flat[10:12] = [7, of_thread]
    return flat


def test_a_sample_lasts_from_the_first_start_to_the_last_end():
    timing = timing_of([stamps(start=0, end=2_000_000), stamps(start=500_000, end=2_700_000)])
    assert timing.duration_s == pytest.approx(2.7e-3)


def test_the_clock_is_additions_per_second_of_the_chain():
    assert timing_of([stamps(chain_s=51.2e-6)]).clock_hz == pytest.approx(CYCLES / 51.2e-6)


def test_an_interrupted_chain_does_not_lower_the_clock():
    row = stamps(chain_s=51.2e-6)
    row[15] += 3_000_000  # the second chain was interrupted for 3 ms
    assert timing_of([row]).clock_hz == pytest.approx(3e9)


def test_the_least_served_thread_gives_the_share_of_the_core():
    timing = timing_of([stamps(), stamps(of_thread=500_000)])
    assert timing.core_share == pytest.approx(0.25)


def test_a_thread_that_started_late_had_no_core_until_then():
    late = stamps(start=2_000_000, end=4_000_000, of_thread=2_000_000)
    assert timing_of([stamps(), late]).core_share == pytest.approx(0.5)


def test_times_are_exact_across_a_change_of_second_long_after_boot():
    row = stamps()
    for place in range(0, 16, 2):
        if place not in (4, 10):
            row[place] = 40_000_000
    row[8:10] = [40_000_001, 50_000]
    row[6:8] = [40_000_000, 999_950_000]
    assert timing_of([row]).duration_s == pytest.approx(100e-6, abs=1e-12)


def allowed():
    return sorted(os.sched_getaffinity(0))


def test_each_thread_is_pinned_to_its_own_processor_and_the_caller_is_not():
    before = os.sched_getaffinity(0)
    cpus = allowed()
    with Team(cpus) as team:
        assert team.each(lambda _place: os.sched_getaffinity(0)) == [{cpu} for cpu in cpus]
    assert os.sched_getaffinity(0) == before


def test_threads_end_with_the_team():
    before = threading.active_count()
    with Team(allowed()) as team:
        team.each(lambda place: place)
    assert threading.active_count() == before


def test_a_failing_thread_raises_in_the_caller():
    with Team(allowed()[:1]) as team, pytest.raises(ZeroDivisionError):
        team.each(lambda place: 1 // place)


class Late:
    """A thread that never comes: its start is interrupted once another waits at the gate."""

    def __init__(self, waited):
        self.waited = waited

    def submit(self, *_arguments):
        self.waited.wait(5)
        raise KeyboardInterrupt

    def shutdown(self):
        pass


def test_an_interrupt_between_two_starts_opens_the_gate_for_who_waits():
    waited = threading.Event()

    def waits_at_the_gate(gate, threads, *_rest):
        counter = ctypes.c_int64.from_address(gate)
        waited.set()
        while counter.value < threads:
            pass

    with Team(allowed()[:1]) as team:
        team._pools.append(Late(waited))
        with pytest.raises(KeyboardInterrupt):
            team.run(Kernel(waits_at_the_gate, "", None), [(0,), (0,)])


def test_threads_that_are_not_there_together_try_again():
    calls = []

    def gives_up_twice(_gate, _threads, patience, _links, times, _args):
        calls.append(patience)
        if len(calls) <= 2:
            return 0
        ctypes.memmove(times, (ctypes.c_int64 * 16)(*stamps()), 128)
        return 1

    with Team(allowed()[:1]) as team:
        timing = team.run(Kernel(gives_up_twice, "", None), [(0,)])
    assert len(calls) == 3
    assert timing.duration_s == pytest.approx(2e-3)


def test_after_many_attempts_threads_wait_as_long_as_it_takes():
    calls = []

    def gives_up_unless_patient(_gate, _threads, patience, _links, times, _args):
        calls.append(patience)
        if patience < 1 << 60:
            return 0
        ctypes.memmove(times, (ctypes.c_int64 * 16)(*stamps()), 128)
        return 1

    with Team(allowed()[:1]) as team:
        team.run(Kernel(gives_up_unless_patient, "", None), [(0,)])
    assert len(calls) == 21


def test_a_native_thread_that_waits_in_vain_closes_the_gate_for_all():
    processor = read_processor()
    recipe = recipes_for(processor.architecture, processor.flags)[0]
    text = compute_module(recipe, processor.architecture)
    kernel = jit.compile_kernel(text, jit.host_target())
    gate, times, args = ((ctypes.c_int64 * 16)() for _ in range(3))
    shared = (ctypes.addressof(gate), 2, 100, 1, ctypes.addressof(times), ctypes.addressof(args))
    # Two threads are wanted, one comes, gives up, and so does the other that comes later.
    assert kernel.measure(*shared) == 0
    assert gate[0] < 0
    assert kernel.measure(*shared) == 0
    assert times[6:10] == [0, 0, 0, 0]
