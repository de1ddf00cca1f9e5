"""Tool, conditions and GPUs of a recording."""

import math

import pytest
import report_writer as w

from mansard.model.device import DeviceFacts
from mansard.readers.ncu_rep.session import Session, command_options
from mansard.readers.ncu_rep.wire import Message


def _session(*parts: bytes) -> Session:
    session = Session()
    for part in parts:
        session.add(Message(part))
    return session


@pytest.mark.parametrize(
    ("command", "clock", "cache", "replay"),
    [
        ("ncu ./app", "base", "all", "kernel"),
        ("ncu --clock-control none --cache-control none ./app", "none", "none", "kernel"),
        ("ncu --clock-control=boost --replay-mode=application app", "boost", "all", "application"),
        ('ncu --cache-control "none" --replay-mode app-range app', "base", "none", "app-range"),
        # The first mention is ncu's own; what follows belongs to the program.
        ("ncu --clock-control none python x.py --clock-control base", "none", "all", "kernel"),
        ("ncu --set full -o x--clock-control app", "base", "all", "kernel"),
        ("ncu --clock-control", "base", "all", "kernel"),
    ],
)
def test_conditions_are_read_from_the_command_or_are_the_defaults(command, clock, cache, replay):
    options = command_options(command)
    assert options["clock-control"] == clock
    assert options["cache-control"] == cache
    assert options["replay-mode"] == replay


def test_without_a_command_line_the_conditions_are_unknown():
    assert _session(w.message((8, w.TOOL))).options == {}


def test_the_graphical_interface_stores_the_clock_control_in_words():
    settings = w.message((8, "Base"))
    assert _session(w.message((10, settings))).options == {"clock-control": "base"}


def test_the_parts_of_several_blocks_are_put_together():
    session = _session(
        w.message((2, 1_700_000_000)),
        w.message((8, w.version("CUDA Version", "13.0"))),
        w.message((8, w.TOOL)),
        w.message((8, w.version("Display Driver Version", "535.104.05"))),
    )
    assert session.collector_version == "2025.3.1.0"
    assert session.versions["CUDA Version"] == "13.0"
    assert session.versions["Display Driver Version"] == "535.104.05"
    # 1.7e9 s after 1970 is 2023-11-14 22:13:20 UTC.
    assert session.created_text == "2023-11-14T22:13:20+00:00"


def test_a_time_that_is_none_is_left_out():
    assert _session(w.message((2, 2**62))).created_text is None
    assert Session().created_text is None


def test_attributes_of_a_gpu_become_facts_in_si_units():
    attributes = [
        ("device__attribute_multiprocessor_count", 84),
        ("device__attribute_clock_rate", 1_740_000),
        ("device__attribute_memory_clock_rate", 7_251_000),
        ("device__attribute_global_memory_bus_width", 384),
        ("device__attribute_l2_cache_size", 6_291_456),
        ("device__attribute_compute_capability_major", 8),
        ("device__attribute_compute_capability_minor", 6),
        ("device__attribute_chip", 370),
        ("device__attribute_total_memory", math.nan),
        ("device__attribute_confidential_computing_mode", "No-CC"),
    ]
    (facts,) = _session(w.message((6, w.device(0, "NVIDIA A40", attributes)))).device_list()
    assert facts == DeviceFacts(
        name="NVIDIA A40",
        chip="GA102",
        compute_capability="8.6",
        sm_count=84,
        sm_clock_max_hz=1.74e9,
        dram_clock_hz=7.251e9,
        dram_bus_bits=384,
        l2_bytes=6_291_456,
    )


def test_a_chip_that_is_not_known_is_none():
    part = w.device(0, "GPU", [("device__attribute_chip", 9999)])
    assert _session(w.message((6, part))).device_list()[0].chip is None


def test_gpus_stand_at_their_index_and_gaps_are_empty():
    session = _session(w.message((6, [w.device(2, "third"), w.device(0, "first")])))
    assert [facts.name for facts in session.device_list()] == ["first", None, "third"]


def test_a_gpu_listed_by_several_processes_counts_once():
    part = w.message((6, w.device(0, "first")))
    assert len(_session(part, part).device_list()) == 1


def test_an_index_beyond_any_machine_is_ignored():
    assert _session(w.message((6, w.device(2**31, "ghost")))).device_list() == ()


def test_damaged_parts_are_left_out():
    session = _session(
        w.message((6, b"\xff"), (8, b"\xff"), (10, b"\xff"), (8, w.version("CUDA Version", "12.4")))
    )
    assert session.versions == {"CUDA Version": "12.4"}
    assert session.devices == {}


@pytest.mark.parametrize("khz", [1e308, -1.98e6, math.inf, math.nan])
def test_an_attribute_that_no_gpu_has_is_unknown(khz):
    attributes = [
        ("device__attribute_max_gpu_frequency_khz", khz),
        ("device__attribute_multiprocessor_count", 132),
    ]
    (facts,) = _session(w.message((6, w.device(0, "GPU", attributes)))).device_list()
    assert (facts.sm_clock_max_hz, facts.sm_count) == (None, 132)
