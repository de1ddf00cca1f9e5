"""Facts of the GPUs, from the attributes that Nsight Compute writes beside the counters."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from mansard.model.device import DeviceFacts
from mansard.readers.ncu_csv.vocabulary import vocabulary as columns
from mansard.readers.ncu_rep.vocabulary import si_factor, vocabulary

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_WHOLE = re.compile(r"\d{1,18}|\d{1,3}([.,' \u00a0\u2009\u202f]\d{3}){1,5}")
_CAPABILITY = re.compile(r"(\d{1,3})[.,](\d{1,2})")


def attribute_names() -> tuple[str, ...]:
    """The attributes that ``device_facts`` uses."""
    names = (name for names in vocabulary().device.values() for name in names)
    return (*dict.fromkeys(names), columns().display_name)


def devices_of(
    connection: "DuckDBPyConnection", source: str, attributes: Mapping[str, str]
) -> tuple[DeviceFacts, ...]:
    """The GPUs of a page, in the order of their index.

    Args:
        connection: of the engine.
        source: a sub-select with the columns ``host``, ``process``, ``device``, ``capability``.
        attributes: SQL of the text by attribute, over the columns of the source.
    """
    values = "".join(f", any_value({value})" for value in attributes.values())
    rows = connection.execute(
        f"SELECT any_value(capability){values} FROM {source} "
        "GROUP BY host, process, device ORDER BY try_cast(device AS BIGINT), host, process"
    ).fetchall()
    found = [device_facts(dict(zip(attributes, row[1:], strict=True)), row[0]) for row in rows]
    return tuple(dict.fromkeys(facts for facts in found if facts != DeviceFacts()))


def device_facts(attributes: Mapping[str, str | None], capability: str | None) -> DeviceFacts:
    """Build the facts of one GPU.

    Args:
        attributes: text by attribute, as in the file.
        capability: text of the column of the compute capability.
    """
    facts = vocabulary().device

    def whole(fact: str) -> int | None:
        values = (_whole(attributes.get(name)) for name in facts[fact])
        return next((value for value in values if value is not None), None)

    def hertz(fact: str) -> float | None:
        for name in facts[fact]:
            value = _whole(attributes.get(name))
            if value is not None:
                return value * si_factor(name)
        return None

    major, minor = whole("capability_major"), whole("capability_minor")
    written = _CAPABILITY.fullmatch((capability or "").strip())
    if major is not None and minor is not None:
        shown: str | None = f"{major}.{minor}"
    else:
        shown = f"{written.group(1)}.{written.group(2)}" if written else None
    chip = whole("chip")
    return DeviceFacts(
        name=attributes.get(columns().display_name) or None,
        chip=None if chip is None else vocabulary().chips.get(chip),
        compute_capability=shown,
        sm_count=whole("sm_count"),
        sm_clock_max_hz=hertz("sm_clock_max_hz"),
        dram_clock_hz=hertz("dram_clock_hz"),
        dram_bus_bits=whole("dram_bus_bits"),
        l2_bytes=whole("l2_bytes"),
        dram_bytes=whole("dram_bytes"),
    )


def _whole(text: str | None) -> int | None:
    text = (text or "").strip()
    if not _WHOLE.fullmatch(text):
        return None
    return int(re.sub(r"\D", "", text))
