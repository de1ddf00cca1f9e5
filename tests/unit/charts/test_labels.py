"""Words and short texts of tables and pictures."""

import math

import pytest

from mansard.charts import labels
from mansard.model.device import DeviceFacts
from mansard.model.machine import Ceiling, Machine
from mansard.model.paths import PATHS
from mansard.model.provenance import Provenance


def test_a_name_keeps_both_ends_when_it_is_shortened():
    name = "volta_fp16_s884cudnn_fp16_256x128_ldg8_relu_interior_nhwc_tn_v1"
    short = labels.printable(name, 24)
    assert len(short) == 24
    assert short == "volta_fp16_s88...c_tn_v1"


@pytest.mark.parametrize(
    "hostile", ["\x1b[31mred", "a\nb", "tab\tbed", "\u202egnp.exe", "lone \ud800", "\x00"]
)
def test_control_characters_never_reach_a_terminal_or_a_picture(hostile):
    shown = labels.printable(hostile)
    assert "\N{REPLACEMENT CHARACTER}" in shown
    assert shown.isprintable()


def test_a_name_of_megabytes_is_shortened_without_reading_it_all():
    assert len(labels.printable("x\x1b" * 5_000_000, 50)) == 50


def test_an_unknown_name_is_a_dash():
    assert labels.printable(None) == "-"


def test_a_limit_too_small_for_dots_still_holds():
    assert labels.printable("abcdefgh", 3) == "abc"


def test_a_bound_that_cannot_be_decided_is_a_question_mark(make_kernel):
    assert labels.bound_label(make_kernel("k", bound="unknown among l2, dram")) == "?"
    assert labels.bound_label(make_kernel("k", bound="dram")) == "DRAM"
    assert labels.bound_label(make_kernel("k", bound=None)) == "-"


def test_a_number_above_its_roof_is_never_shown_as_an_efficiency(make_kernel):
    # 3.69 times the peak is a fault of the number, not good use of the machine.
    kernel = make_kernel("k", duration_s=1.0, floor_s=3.69)
    assert labels.efficiency_label(kernel) == "> roof"


def test_two_percent_above_the_roof_is_still_noise(make_kernel):
    assert labels.efficiency_label(make_kernel("k", duration_s=1.0, floor_s=1.02)) == "102.0 %"


def test_a_tiny_kernel_is_marked(make_kernel):
    kernel = make_kernel("k", duration_s=1.0, floor_s=0.5, tiny=True)
    assert labels.efficiency_label(kernel) == "~50.0%"


@pytest.mark.parametrize("value", [None, math.nan, math.inf, -math.inf, -1.0])
def test_what_is_no_quantity_is_unknown(value):
    assert labels.known(value) is None
    assert labels.positive(value) is None


def test_zero_is_known_but_has_no_place_on_a_logarithmic_axis():
    assert labels.known(0.0) == 0.0
    assert labels.positive(0.0) is None


def test_the_origin_line_names_gpu_driver_collector_controls_and_roofs(h200):
    line = labels.origin_line(h200)
    for fact in (
        "NVIDIA H200",
        "driver 580.159.04",
        "Nsight Compute 2025.3.1",
        "clock control none",
        "cache control all",
        "counter table gh100",
        "h200-sxm, measured at 1.54 GHz to 1.98 GHz",
    ):
        assert fact in line


def test_the_origin_line_names_what_was_not_recorded(v100):
    assert "not recorded: driver" in labels.origin_line(v100)


def test_an_analysis_without_a_machine_says_that_there_are_no_roofs(make_analysis, make_kernel):
    assert "Roofs: none" in labels.origin_line(make_analysis([make_kernel("k")]))


def test_several_parts_are_counted_by_their_identity_only():
    def rank(uuid):
        return Provenance(devices=(DeviceFacts(name="NVIDIA H200", uuid=uuid),))

    eight = dict(labels.run_facts([rank(f"GPU-{n}") for n in range(8)]))
    assert eight["GPU"] == "8 x NVIDIA H200"
    unknown = dict(labels.run_facts([rank(None), rank(None)]))
    assert unknown["GPU"] == "NVIDIA H200"


def test_files_that_disagree_show_both_values():
    facts = dict(
        labels.run_facts([Provenance(clock_control="base"), Provenance(clock_control="none")])
    )
    assert facts["clock control"] == "base / none"


def test_a_roof_of_another_status_than_its_machine_says_so(v100_machine):
    l1 = v100_machine.bandwidth("l1")
    assert labels.ceiling_label(l1, v100_machine) == "L1 14.3 TB/s (theoretical)"
    l2 = v100_machine.bandwidth("l2")
    assert labels.ceiling_label(l2, v100_machine) == "L2 3.00 TB/s"


def test_a_partial_machine_says_so():
    assert "partial" in labels.machine_facts(Machine(name="m", basis="measured", partial=True))


def test_the_clock_of_a_refused_ceiling_is_not_quoted():
    machine = Machine(
        name="m",
        basis="measured",
        ceilings=(
            Ceiling(kind="compute", value=None, unit="flop/s", status="refused", sm_clock_hz=1.0e9),
        ),
    )
    assert labels.machine_facts(machine) == "m, measured"


def test_links_and_shared_memory_are_shown_only_where_known(make_kernel):
    kernel = make_kernel(
        "k", moved={"shared": None, "l1": None, "l2": 1.0, "dram": 2.0, "link": None}
    )
    assert labels.level_names([kernel]) == ["l1", "l2", "dram"]


def test_a_link_that_only_copies_used_has_no_intensity_to_show(make_kernel):
    copy = make_kernel("[CUDA memcpy HtoD]", flop={"vector fp32": 0.0}, moved={"link": 1e6})
    assert labels.level_names([copy]) == ["link"]
    assert labels.intensity_names([copy], [copy]) == []
    worked = make_kernel("allreduce", flop={"vector fp32": 1e6}, moved={"link": 1e6})
    assert labels.intensity_names([copy], [copy, worked]) == ["link"]


def test_clocks_are_those_of_the_roofs_that_the_run_used(h200_machine, make_kernel):
    # The library's BF16 product ran at 1.32 GHz and is no roof; the FP8 roof at 1.545 GHz is.
    assert labels.machine_facts(h200_machine) == "h200-sxm, measured at 1.54 GHz to 1.98 GHz"
    paths = dict.fromkeys((path.name for path in PATHS), 0.0)
    used = make_kernel("k", flop=paths | {"tensor tf32": 1.0}, moved={"dram": 1.0, "l2": 0.0})
    said = labels.machine_facts(h200_machine, used)
    assert said == "h200-sxm, measured at 1.68 GHz to 1.98 GHz"


def test_the_main_path_is_the_one_with_the_most_operations(make_kernel):
    flop = {"tensor bf16": 9.0, "vector fp32": 10.0, "tensor fp8": None, "vector fp64": math.nan}
    assert labels.main_path(make_kernel("k", flop=flop)) == "vector fp32"
    assert labels.main_path(make_kernel("k", flop={"tensor bf16": 0.0})) is None


def test_one_launch_is_singular():
    assert labels.count_text(1, "launch") == "1 launch"
    assert labels.count_text(2, "launch") == "2 launches"
    assert labels.count_text(0, "kernel") == "0 kernels"
