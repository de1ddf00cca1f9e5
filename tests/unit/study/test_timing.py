"""Times and energy of steps that nothing disturbs."""

import dataclasses
import gc
import sys
import types

import pytest

from mansard.bench.cuda.sensors import Sensors
from mansard.study import timing
from mansard.study.energy import EnergyMeter
from mansard.study.plan import deepcam
from mansard.study.timing import number_of_steps, time_steps

CPU, GPU = deepcam("cpu", "tiny")[0].configuration, deepcam("cuda:0")[0].configuration


class Sensor:
    def __init__(self, *readings):
        self.readings = list(readings)

    def energy_j(self):
        return self.readings.pop(0)


def quiet():
    return EnergyMeter(None)


@pytest.mark.parametrize(
    ("step_s", "steps"),
    [
        (0.001, 2000),  # two seconds of them
        (0.05, 40),
        (0.5, 20),  # never fewer than twenty ...
        (6.0, 10),  # ... unless they take more than a minute
        (100.0, 5),
        (0.0, 20),
        (1e-6, 2000),
    ],
)
def test_the_number_of_steps_follows_their_time(step_s, steps):
    assert number_of_steps(step_s) == steps


def test_each_step_is_waited_for_where_there_are_no_events(workload_of, step_of):
    step = step_of(0.5)
    timed = time_steps(workload_of(CPU, step), quiet(), clock=step.clock)
    assert timed.step_s == (0.5,) * 20
    assert timed.timed_by == timing.WAITING
    assert timed.queued_step_s == 0.5


def test_a_cpu_has_no_energy_counter_to_wait_for(workload_of, step_of):
    step = step_of(0.001)
    timed = time_steps(workload_of(CPU, step), quiet(), clock=step.clock)
    assert len(timed.step_s) == 20


def test_one_slow_step_does_not_decide_how_many_are_timed(workload_of, step_of):
    step = step_of(50.0)
    workload = workload_of(CPU, step)

    def faster_each_time():
        workload.step()
        step.duration_s = 0.5

    slow_first = dataclasses.replace(workload, step=faster_each_time)
    assert len(time_steps(slow_first, quiet(), clock=step.clock).step_s) == 20


def test_events_stand_between_the_steps_of_pytorch(monkeypatch, workload_of, step_of):
    step = step_of(0.5)

    class Event:
        def __init__(self, *, enable_timing):
            assert enable_timing

        def record(self, stream):
            assert stream == "stream of cuda:0"
            self.at_s = step.now_s

        def elapsed_time(self, other):  # in ms, as PyTorch's
            return (other.at_s - self.at_s) * 1000

    torch = types.SimpleNamespace(
        cuda=types.SimpleNamespace(Event=Event, current_stream=lambda of: f"stream of {of}")
    )
    monkeypatch.setitem(sys.modules, "torch", torch)
    timed = time_steps(workload_of(GPU, step), quiet(), clock=step.clock)
    assert timed.step_s == pytest.approx((0.5,) * 20)
    assert timed.timed_by == timing.EVENTS


def test_the_garbage_collector_waits_and_comes_back(workload_of):
    seen = []
    workload = workload_of(CPU)

    def watched():
        seen.append(gc.isenabled())
        workload.step()

    time_steps(dataclasses.replace(workload, step=watched), quiet())
    assert seen[2:] == [False] * 20
    assert gc.isenabled()


def test_energy_is_what_the_counter_moved_for_each_step():
    meter = EnergyMeter(Sensor(1000.0, 1500.0))
    meter.start()
    meter.stop(50)
    assert (meter.energy_j, meter.steps, meter.reason) == (10.0, 50, None)


@pytest.mark.parametrize(
    ("sensor", "why"),
    [
        (None, "not measured on a CPU"),
        (Sensor(None, None), "NVML gives no energy counter here"),
        (Sensor(5.0, None), "NVML gives no energy counter here"),
        (Sensor(5.0, 5.0), "the energy counter did not move while the steps ran"),
    ],
    ids=["cpu", "no-counter", "lost-counter", "still"],
)
def test_energy_that_is_not_known_has_a_reason(sensor, why):
    meter = EnergyMeter(sensor)
    meter.start()
    meter.stop(10)
    assert (meter.energy_j, meter.reason) == (None, why)


@pytest.mark.parametrize(("millijoules", "joules"), [(1234500, 1234.5), (None, None)])
def test_nvml_counts_energy_in_millijoules(monkeypatch, millijoules, joules):
    sensors = Sensors("no such GPU")
    monkeypatch.setattr(sensors, "read", {"TotalEnergyConsumption": millijoules}.get)
    assert sensors.energy_j() == joules
