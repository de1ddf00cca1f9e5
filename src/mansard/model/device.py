"""What is known of the processor that a run or a machine belongs to."""

import msgspec


class DeviceFacts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Facts of one device; ``None`` where the source does not say.

    Attributes:
        name: product name, e.g. ``NVIDIA H200``.
        chip: chip name of the counter library, e.g. ``GH100``.
        compute_capability: e.g. ``"9.0"``.
        sm_count: multiprocessors (cores on a CPU).
        sm_clock_max_hz: highest SM clock.
        dram_clock_hz: highest memory clock as the driver gives it (half of the data rate).
        dram_bus_bits: width of the memory bus.
        l2_bytes: size of the L2 cache (last-level cache on a CPU).
        dram_bytes: size of device memory.
        uuid: identity of the very part.
    """

    name: str | None = None
    chip: str | None = None
    compute_capability: str | None = None
    sm_count: int | None = None
    sm_clock_max_hz: float | None = None
    dram_clock_hz: float | None = None
    dram_bus_bits: int | None = None
    l2_bytes: int | None = None
    dram_bytes: int | None = None
    uuid: str | None = None
