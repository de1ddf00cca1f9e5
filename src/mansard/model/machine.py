"""A machine: its measured (or computed, and labelled) ceilings, as read from a JSON file."""

from typing import Any, Literal

import msgspec

from mansard.model.device import DeviceFacts
from mansard.units import format_si

#: Version of the machine format.
#: 1: first.
MACHINE_FORMAT = "mansard-machine/1"

#: A ceiling may be above the limit at its clock by so much, by rounding and the reading of a clock.
ROOM_ABOVE_LIMIT = 0.005
#: The clock of a CPU is not read, but told from a loop that runs at it.
ROOM_ABOVE_LIMIT_CPU = 0.02

#: How the bench names links between GPUs; others lead to the host.
_BETWEEN_GPUS = ("NVLink", "peer")
#: Letters of a word of the file in a line.
_WORD = 60


def printed_unit(unit: str, path: str | None = None) -> str:
    """The unit of a ceiling as people write it: FLOP/s, OP/s for integer paths, B/s or s."""
    if unit == "flop/s":
        return "OP/s" if " int" in f" {path}" else "FLOP/s"
    return "B/s" if unit == "byte/s" else unit


class Ceiling(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One limit of a machine, with what makes it believable.

    Attributes:
        kind: what is limited.
        value: the limit in ``unit``; None when refused.
        unit: FLOP/s (operations/s for integer paths), byte/s or s.
        status: ``refused`` ceilings are shown with their reason and never drawn.
        path: compute path, e.g. ``tensor bf16``.
        instruction: how it was reached, e.g. ``wgmma``, ``mma.sync``, ``fma``, ``library``.
        level: memory level of a bandwidth or latency.
        access: ``read``, ``write``, ``copy``, ``triad``; of a launch: ``stream``,
            ``graph node``, ``synchronize``.
        arm: data: ``low-toggle`` (architectural) or ``random`` (sustained under the power limit).
        sm_clock_hz: SM clock while the samples ran.
        limit_at_clock: theory at that clock, in ``unit``.
        share_of_limit: value / limit_at_clock.
        samples: raw values, in ``unit``.
        evidence: what was checked (result, machine code, intensity, counters) and how.
        reason: why refused, or a remark that belongs to the number.
        source: where a value that was not measured here comes from.
    """

    kind: Literal["compute", "bandwidth", "latency", "launch"]
    value: float | None
    unit: Literal["flop/s", "byte/s", "s"]
    status: Literal["measured", "theoretical", "published", "refused"] = "measured"
    path: str | None = None
    instruction: str | None = None
    level: str | None = None
    access: str | None = None
    arm: Literal["random", "low-toggle"] | None = None
    sm_clock_hz: float | None = None
    limit_at_clock: float | None = None
    share_of_limit: float | None = None
    samples: tuple[float, ...] = ()
    evidence: dict[str, Any] = {}
    reason: str | None = None
    source: str | None = None

    def __repr__(self) -> str:
        """The limit in a line; samples and evidence are long."""
        words = (self.kind, self.path, self.level, self.access, self.instruction, self.arm)
        name = " ".join(word[:_WORD] for word in words if word)
        unit = printed_unit(self.unit, self.path)
        return f"<Ceiling {name!r}: {self.status}, {format_si(self.value, unit)}>"


class Machine(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The ceilings of one device.

    Attributes:
        name: short name, e.g. ``h200-sxm``; also the stem of its file.
        basis: how the ceilings were obtained.
        device: the part.
        ceilings: all limits, refused ones included.
        caveats: what a reader of a chart must know.
        partial: whether the measurement was cut short.
        provenance: driver, versions, date, host conditions.
        curves: further measured series (sweeps), by name; rows of numbers with named columns.
    """

    schema: str = MACHINE_FORMAT
    name: str
    basis: Literal["measured", "theoretical", "published"]
    device: DeviceFacts = DeviceFacts()
    ceilings: tuple[Ceiling, ...] = ()
    caveats: tuple[str, ...] = ()
    partial: bool = False
    provenance: dict[str, Any] = {}
    curves: dict[str, Any] = {}

    def __repr__(self) -> str:
        """What it is of, in a line; all samples of a measured one have a hundred kilobytes."""
        usable = sum(ceiling.status != "refused" for ceiling in self.ceilings)
        device = repr(self.device.name[:_WORD]) if self.device.name else "unknown device"
        partial = ", partial" if self.partial else ""
        ceilings = f"{usable} ceiling{'' if usable == 1 else 's'}"
        return f"<Machine {self.name[:_WORD]!r} of {device}: {self.basis}, {ceilings}{partial}>"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        """The same for Rich, which would else show every field."""
        return [
            ("name", self.name),
            ("device", self.device.name),
            ("basis", self.basis),
            ("ceilings", len(self.ceilings)),
        ]

    @property
    def is_cpu(self) -> bool:
        """Whether it was measured on a CPU: its provenance then names the processors."""
        return self.device.compute_capability is None and "cpus" in self.provenance

    def compute(self, path: str) -> Ceiling | None:
        """The roof of a compute path: its highest ceiling that was not refused.

        The highest is right for a floor: a least time must not be beaten by better code.
        """
        return self._best("compute", lambda ceiling: ceiling.path == path)

    def bandwidth(self, level: str) -> Ceiling | None:
        """The roof of a memory level: its highest bandwidth of any access."""
        return self._best("bandwidth", lambda ceiling: ceiling.level == level)

    def host_link(self) -> Ceiling | None:
        """The roof of the link to the host; ``bandwidth("link")`` may be of one between GPUs."""
        return self._best(
            "bandwidth",
            lambda ceiling: (
                ceiling.level == "link"
                and not (ceiling.instruction or "").startswith(_BETWEEN_GPUS)
            ),
        )

    def launch_cost(self, access: str) -> Ceiling | None:
        """The least time of one launch by ``access`` (``stream`` or ``graph node``)."""
        usable = [
            ceiling
            for ceiling in self.ceilings
            if ceiling.kind == "launch" and ceiling.access == access and ceiling.value is not None
        ]
        return min(usable, key=lambda ceiling: ceiling.value or 0.0, default=None)

    def _best(self, kind: str, matches: Any) -> Ceiling | None:
        usable = [
            ceiling
            for ceiling in self.ceilings
            if ceiling.kind == kind
            and ceiling.status != "refused"
            and ceiling.value is not None
            and matches(ceiling)
        ]
        return max(usable, key=lambda ceiling: ceiling.value or 0.0, default=None)
