"""Power, temperature, clocks and throttling while samples run, through NVML."""

import contextlib
import dataclasses
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

from mansard.units import unit_factor

_PERIOD_S = 0.005
_MHZ = unit_factor("mhz")[0]
_MILLI = unit_factor("msecond")[0]

#: Reasons for which a clock is held down that mean something for a ceiling; bits of NVML.
_REASONS = {
    0x0000000000000004: "power cap",
    0x0000000000000008: "hardware slowdown",
    0x0000000000000020: "thermal slowdown (software)",
    0x0000000000000040: "thermal slowdown (hardware)",
    0x0000000000000080: "power brake",
    0x0000000000000002: "application clocks",
    0x0000000000000010: "sync boost",
    0x0000000000000100: "display clocks",
}
#: Those that say that the part is not in order, beyond its power limit.
ALARMS = frozenset(
    {
        "hardware slowdown",
        "thermal slowdown (software)",
        "thermal slowdown (hardware)",
        "power brake",
    }
)
_POWER_INSTANT = 186

_GHZ = unit_factor("ghz")[0]
#: Payload bits per second and lane: transfers times the share of payload in the line code.
_PCIE_HZ = {
    1: 2.5 * _GHZ * 0.8,
    2: 5.0 * _GHZ * 0.8,
    3: 8.0 * _GHZ * 128 / 130,
    4: 16.0 * _GHZ * 128 / 130,
    5: 32.0 * _GHZ * 128 / 130,
    6: 64.0 * _GHZ * 242 / 256,
}


@dataclasses.dataclass(slots=True)
class Conditions:
    """What the sensors showed while samples ran; None where a sensor is missing.

    Attributes:
        power_w: highest.
        temperature_c: highest.
        sm_clock_hz: as NVML gives it: lowest and highest.
        memory_clock_hz: last.
        reasons: why the clock was held down.
    """

    power_w: float | None = None
    temperature_c: float | None = None
    sm_clock_hz: tuple[float, float] | None = None
    memory_clock_hz: float | None = None
    reasons: tuple[str, ...] = ()

    def evidence(self) -> dict[str, Any]:
        """For the evidence of a ceiling."""
        found = {
            "power_w": self.power_w,
            "temperature_c": self.temperature_c,
            "sm_clock_nvml_hz": list(self.sm_clock_hz) if self.sm_clock_hz else None,
            "memory_clock_hz": self.memory_clock_hz,
            "clock_held_by": list(self.reasons),
        }
        return {name: value for name, value in found.items() if value is not None}


def reason_names(bits: int) -> tuple[str, ...]:
    """Names of the clock event reasons in an NVML bit set; idle is none."""
    return tuple(name for bit, name in _REASONS.items() if bits & bit)


class Sensors:
    """NVML for one device; every reading is None where NVML does not give it."""

    def __init__(self, uuid: str) -> None:
        self._nvml: Any = None
        self._handle: Any = None
        with contextlib.suppress(Exception):  # NVML is a help, not a need
            import pynvml  # noqa: PLC0415

            pynvml.nvmlInit()
            self._handle = pynvml.nvmlDeviceGetHandleByUUID(uuid)
            self._nvml = pynvml

    def ask(self, name: str, *arguments: Any) -> tuple[Any, str]:
        """One NVML query of the device: its answer, or None and why there is none."""
        if self._nvml is None:
            return None, "no NVML"
        try:
            return getattr(self._nvml, f"nvmlDeviceGet{name}")(self._handle, *arguments), ""
        except Exception as error:  # noqa: BLE001  (NVML is a help, not a need)
            return None, str(error).strip().rstrip(".").lower() or type(error).__name__

    def read(self, name: str, *arguments: Any) -> Any:
        """One NVML query of the device, or None."""
        return self.ask(name, *arguments)[0]

    def other(self, uuid: str) -> tuple[Any, str]:
        """NVML's handle of another device, or None and why there is none."""
        if self._nvml is None:
            return None, "no NVML"
        try:
            return self._nvml.nvmlDeviceGetHandleByUUID(uuid), ""
        except Exception as error:  # noqa: BLE001
            return None, f"the other GPU is not known to NVML ({error})"

    def library(self, name: str) -> Any:
        """A type of the NVML binding, or None where it does not have it."""
        return getattr(self._nvml, name, None)

    def power_w(self) -> float | None:
        """Power now; the running average of a second where the part has nothing quicker."""
        values = self.read("FieldValues", [_POWER_INSTANT])
        if values and values[0].nvmlReturn == 0 and values[0].value.uiVal:
            return float(values[0].value.uiVal * _MILLI)
        milliwatts = self.read("PowerUsage")
        return None if milliwatts is None else milliwatts * _MILLI

    def energy_j(self) -> float | None:
        """Energy that the whole part has taken since the driver was loaded."""
        millijoules = self.read("TotalEnergyConsumption")
        return None if millijoules is None else millijoules * _MILLI

    def clock_hz(self, kind: int) -> float | None:
        """Clock now: 1 SM, 2 memory."""
        megahertz = self.read("ClockInfo", kind)
        return None if not megahertz else megahertz * _MHZ

    def max_clock_hz(self, kind: int) -> float | None:
        """Highest clock: 1 SM, 2 memory."""
        megahertz = self.read("MaxClockInfo", kind)
        return None if not megahertz else megahertz * _MHZ

    def power_limit_w(self) -> float | None:
        """The limit in force."""
        milliwatts = self.read("EnforcedPowerLimit")
        return None if milliwatts is None else milliwatts * _MILLI

    def pcie_peak(self) -> tuple[float, float, float] | None:
        """Bytes per second and direction of the PCIe link at its best; generation; lanes."""
        generation = self.read("MaxPcieLinkGeneration")
        width = self.read("MaxPcieLinkWidth")
        if generation not in _PCIE_HZ or not width:
            return None
        return _PCIE_HZ[generation] * width / 8, float(generation), float(width)

    def others(self) -> tuple[str, ...]:
        """Processes that compute on the device besides this one, as far as they can be seen."""
        found = self.read("ComputeRunningProcesses") or []
        return tuple(f"process {one.pid}" for one in found if one.pid != os.getpid())

    def busy_percent(self) -> float | None:
        """Share of the last sampling period in which a kernel ran."""
        rates = self.read("UtilizationRates")
        return None if rates is None else float(rates.gpu)

    def driver(self) -> str | None:
        """Version of the display driver."""
        if self._nvml is None:
            return None
        with contextlib.suppress(Exception):
            version = self._nvml.nvmlSystemGetDriverVersion()
            return version.decode() if isinstance(version, bytes) else str(version)
        return None

    def watch(self, done: Callable[[], bool], limit_s: float = 10.0) -> Conditions:
        """Read everything again and again until the work is done."""
        seen = list(self._readings(done, limit_s))
        powers = [power for power, *_ in seen if power is not None]
        degrees = [degree for _, degree, *_ in seen if degree is not None]
        clocks = [clock for _, _, clock, *_ in seen if clock is not None]
        memory = [clock for *_, clock, _ in seen if clock is not None]
        bits = 0
        for *_, reasons in seen:
            bits |= reasons or 0
        return Conditions(
            power_w=max(powers, default=None),
            temperature_c=max(degrees, default=None),
            sm_clock_hz=(min(clocks), max(clocks)) if clocks else None,
            memory_clock_hz=memory[-1] if memory else None,
            reasons=reason_names(bits),
        )

    def _readings(
        self, done: Callable[[], bool], limit_s: float
    ) -> Iterator[tuple[float | None, float | None, float | None, float | None, int | None]]:
        end = time.monotonic() + limit_s
        while self._nvml is not None:
            reasons = self.read("CurrentClocksEventReasons")
            if reasons is None:
                reasons = self.read("CurrentClocksThrottleReasons")
            yield (
                self.power_w(),
                self.read("Temperature", 0),
                self.clock_hz(1),
                self.clock_hz(2),
                reasons,
            )
            if done() or time.monotonic() > end:
                return
            time.sleep(_PERIOD_S)
