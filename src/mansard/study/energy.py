"""Energy of a step: what NVML's counter of the whole GPU moved while undisturbed steps ran."""

from typing import Protocol


class EnergySensor(Protocol):
    """``bench.cuda.sensors.Sensors``, as far as it is needed here."""

    def energy_j(self) -> float | None:
        """Energy since the driver was loaded."""


class EnergyMeter:
    """Reads the counter around a window of steps.

    Args:
        sensor: of the GPU; None on a CPU.

    Attributes:
        energy_j: of one step; None where it is not known.
        steps: over which it was taken.
        reason: why it is not known.
    """

    def __init__(self, sensor: EnergySensor | None) -> None:
        self._sensor = sensor
        self._before: float | None = None
        self.energy_j: float | None = None
        self.steps: int | None = None
        self.reason: str | None = None

    def start(self) -> None:
        """Read at the begin; the device is idle."""
        self._before = None if self._sensor is None else self._sensor.energy_j()

    def stop(self, steps: int) -> None:
        """Read at the end; the device is idle."""
        if self._sensor is None:
            self.reason = "not measured on a CPU"
            return
        after = self._sensor.energy_j()
        if self._before is None or after is None:
            self.reason = "NVML gives no energy counter here"
        elif after <= self._before:
            self.reason = "the energy counter did not move while the steps ran"
        else:
            self.energy_j, self.steps = (after - self._before) / steps, steps
