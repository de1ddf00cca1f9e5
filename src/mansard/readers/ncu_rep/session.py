"""Facts of the recording as a whole: tool and driver, conditions, the GPUs.

The session message is spread over the blocks of a file, one or two fields each. Of the command
line only five options are kept: it holds paths and the arguments of the user's program.
"""

import dataclasses
import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime

from mansard.errors import FormatError
from mansard.model.device import DeviceFacts
from mansard.readers.ncu_rep.vocabulary import si_factor, vocabulary
from mansard.readers.ncu_rep.wire import Message

_DEFAULTS = {
    "clock-control": "base",
    "cache-control": "all",
    "replay-mode": "kernel",
    "graph-profiling": "node",
    "nvtx-push-pop-scope": "thread",
}
_OPTIONS = {
    name: re.compile(rf"(?:^|\s)--{name}(?:=|\s+)[\"']?([a-z][a-z-]{{0,30}})") for name in _DEFAULTS
}
#: GPUs of one machine, with room; a larger index is damage.
_MOST_DEVICES = 1024
#: The wire has no wider integers; a double that is larger, or not a number, is damage.
_LARGEST_ATTRIBUTE = 2**64 - 1


@dataclasses.dataclass(slots=True)
class Session:
    """What the blocks read so far say of the recording; grows by ``add``.

    Attributes:
        created: unix time of the recording, in s.
        versions: by provider, e.g. ``"CUDA Version"``.
        options: the options above, as far as recorded.
        devices: the GPUs by their index.
    """

    created: int | None = None
    versions: dict[str, str] = dataclasses.field(default_factory=dict)
    options: dict[str, str] = dataclasses.field(default_factory=dict)
    devices: dict[int, DeviceFacts] = dataclasses.field(default_factory=dict)

    def add(self, details: Message) -> None:
        """Take over one block's part of the session. Parts that are damaged are left out."""
        self.created = details.integer(2) or self.created
        for chunk in details.chunks(6):
            try:
                index, facts = _device(Message(chunk))
            except FormatError:
                continue
            if 0 <= index < _MOST_DEVICES:
                self.devices.setdefault(index, facts)
        for chunk in details.chunks(8):
            try:
                row = Message(chunk)
            except FormatError:
                continue
            provider, version = row.text(1), row.text(2)
            if provider and version:
                self.versions[provider] = version
        # The settings of the graphical interface, and the command line of ncu.
        try:
            settings = details.message(10)
        except FormatError:
            settings = None
        clock = settings.text(8) if settings is not None else None
        if clock:
            self.options["clock-control"] = clock.lower()
        command = details.text(11)
        if command:
            self.options.update(command_options(command))

    @property
    def collector_version(self) -> str | None:
        """Version of Nsight Compute, without the build: ``2025.3.1.0``; None before 2020."""
        version = self.versions.get("Nsight Compute Target", "").split()
        return version[0] if version else None

    @property
    def created_text(self) -> str | None:
        """Time of the recording, ISO 8601 in UTC."""
        try:
            return datetime.fromtimestamp(self.created or math.nan, UTC).isoformat()
        except (ValueError, OverflowError, OSError):
            return None

    def device_list(self) -> tuple[DeviceFacts, ...]:
        """The GPUs in order of their index; one that the file leaves out is an empty entry."""
        last = max(self.devices, default=-1)
        return tuple(self.devices.get(index, DeviceFacts()) for index in range(last + 1))


def command_options(command: str) -> Mapping[str, str]:
    """The conditions of a recording as the command line of ncu gives them.

    An option that is not given has ncu's default. The options of ncu come before the program, so
    the first mention counts.
    """
    found = {name: pattern.search(command) for name, pattern in _OPTIONS.items()}
    return {
        name: match[1] if match is not None else _DEFAULTS[name] for name, match in found.items()
    }


def _device(message: Message) -> tuple[int, DeviceFacts]:
    """The index of a GPU and what its attributes say."""
    attributes: dict[str, float] = {}
    for entry in message.messages(3):
        name, value = entry.text(1), entry.message(2)
        if name is None or value is None:
            continue
        for number in (value.float64(3), value.integer(5), value.integer(4), value.float32(2)):
            if number is not None and 0 <= number <= _LARGEST_ATTRIBUTE:
                attributes[name] = number * si_factor(name)
                break

    def fact(what: str) -> float | None:
        names = vocabulary().device[what]
        return next((attributes[name] for name in names if name in attributes), None)

    major, minor = _whole(fact("capability_major")), _whole(fact("capability_minor"))
    chip = _whole(fact("chip"))
    facts = DeviceFacts(
        name=message.text(2) or None,
        chip=None if chip is None else vocabulary().chips.get(chip),
        compute_capability=None if major is None or minor is None else f"{major}.{minor}",
        sm_count=_whole(fact("sm_count")),
        sm_clock_max_hz=fact("sm_clock_max_hz"),
        dram_clock_hz=fact("dram_clock_hz"),
        dram_bus_bits=_whole(fact("dram_bus_bits")),
        l2_bytes=_whole(fact("l2_bytes")),
        dram_bytes=_whole(fact("dram_bytes")),
    )
    return message.integer(1) or 0, facts


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)
