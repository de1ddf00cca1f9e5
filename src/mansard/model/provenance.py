"""Where a run comes from: written into its file, shown under every picture."""

import msgspec

from mansard.model.device import DeviceFacts
from mansard.model.notice import Notice

#: Version of the run format.
#: 1: first (columns of model/columns.py, provenance under the key ``mansard``).
RUN_FORMAT = "mansard-run/1"


class Definition(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a column of the run was made.

    Attributes:
        formula: expression over counters, as evaluated.
        meaning: one sentence.
        source: document or measurement that the formula comes from.
        derived: made from rates x time, not from counts.
    """

    formula: str
    meaning: str = ""
    source: str = ""
    derived: bool = False


class Provenance(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The origin of a run and the conditions under which it was recorded.

    Attributes:
        format: version of the run format.
        created: ISO 8601 time of writing, UTC.
        mansard_version: version that wrote it.
        sources: names (without folders) of the files it was read from.
        collector: tool that recorded it, e.g. ``Nsight Compute``.
        collector_version: its version.
        driver_version: of the display driver.
        cuda_version: of the driver's CUDA.
        devices: the GPUs, in order of their index.
        clock_control: ``base``, ``none``, ... as far as recorded.
        cache_control: ``all``, ``none``, ... as far as recorded.
        replay: ``kernel``, ``application``, ``none``, ... as far as recorded.
        counter_table: name of the table in use.
        definitions: per column, how it was made.
        missing: per column that is null throughout, the counters that would make it.
        join: how several files were put together.
        notices: what the reader warned of.
        lost_launches: launches known to be missing (truncated files); None if unknown.
        extra: further facts of the collector.
    """

    format: str = RUN_FORMAT
    created: str = ""
    mansard_version: str = ""
    sources: tuple[str, ...] = ()
    collector: str | None = None
    collector_version: str | None = None
    driver_version: str | None = None
    cuda_version: str | None = None
    devices: tuple[DeviceFacts, ...] = ()
    clock_control: str | None = None
    cache_control: str | None = None
    replay: str | None = None
    counter_table: str | None = None
    definitions: dict[str, Definition] = {}
    missing: dict[str, tuple[str, ...]] = {}
    join: str | None = None
    notices: tuple[Notice, ...] = ()
    lost_launches: int | None = 0
    extra: dict[str, str] = {}
