"""What users of such tools reported in public, each as it would meet them here.

The name says what the user saw; the docstring where it was reported.
"""

import csv
import io
import json

import pytest

import mansard
from mansard import readers
from mansard.charts.csv_report import kernels_csv, roofs_csv
from mansard.charts.json_report import report_dict
from mansard.charts.scene import roofline_scene
from mansard.readers import ImportOptions
from mansard.store import load_machine

TIME = "gpu__time_duration.sum"
DRAM = "dram__bytes.sum"
SASS = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum"
TENSOR = "sm__ops_path_tensor_src_{}.sum"
UNITS = {TIME: "ns", DRAM: "byte"}


@pytest.fixture
def look(tmp_path):
    """Write launches as the wide page of ncu and analyse them; each is (name, {metric: value})."""

    def analyse(*launches, cc="9.0", machine="h200-sxm", options=None, noise=()):
        metrics = list(dict.fromkeys(m for _, values in launches for m in values))
        text = io.StringIO()
        writer = csv.writer(text, quoting=csv.QUOTE_ALL)
        head = ["ID", "Process ID", "Kernel Name", "Block Size", "Grid Size", "CC"]
        writer.writerow([*head, *metrics])
        writer.writerow([""] * len(head) + [UNITS.get(m, "") for m in metrics])
        for number, (name, values) in enumerate(launches):
            place = [str(number), "7", name, "(128, 1, 1)", "(264, 1, 1)", cc]
            writer.writerow([*place, *(values.get(m, "") for m in metrics)])
        path = tmp_path / "profile.csv"
        path.write_text("".join(noise) + text.getvalue(), encoding="utf-8")
        run = readers.open(path, options=options)
        return mansard.analyze(run, load_machine(machine) if machine else None)

    return analyse


def codes(analysis):
    return {notice.code for notice in analysis.notices}


def tensor(**work):
    """Counters of every tensor precision of a Hopper, 0 where not given."""
    known = ("fp64", "tf32_dst_fp32", "fp16", "bf16_dst_fp32", "fp8", "int8")
    return {TENSOR.format(name): work.get(name, 0) for name in known}


def vector(**work):
    ops = ("fadd", "fmul", "ffma", "hadd", "hmul", "hfma", "dadd", "dmul", "dfma")
    return {SASS.format(op): work.get(op, 0) for op in ops}


def test_attention_shows_tensor_and_vector_work_and_which_pipe_holds_it(look):
    """flash-attention 1913: a roofline of FP32 and FP64 only for a tensor kernel."""
    found = look(
        ("flash_fwd", {TIME: 10_000, **vector(ffma=10**8), **tensor(bf16_dst_fp32=8 * 10**9)})
    )
    paths = found.kernels[0].flop_by_path
    assert paths["tensor bf16"] == 8e9
    assert paths["vector fp32"] == 2e8
    assert found.kernels[0].floors_s["tensor"] > found.kernels[0].floors_s["vector"]


def test_a_gemm_with_vector_counters_only_is_told_that_tensor_work_is_unseen(look):
    """flash-attention 1913, seen from the other side."""
    assert "tensor-work-unseen" in codes(look(("sgemm_kernel", {TIME: 10_000, **vector()})))


def test_one_mma_instruction_is_counted_by_operations_not_by_a_fixed_factor(look):
    """NVIDIA forum 275450: FLOP of one HMMA. m16n8k8 is 2 x 16 x 8 x 8 per warp."""
    found = look(("mma", {TIME: 2_000, **vector(), **tensor(tf32_dst_fp32=2048)}))
    assert found.totals.flop == 2048


def test_zero_vector_counters_without_tensor_counters_leave_flop_unknown(look):
    """NVIDIA forum 265702: a half GEMM with all add, mul and fma counters zero."""
    found = look(("hgemm", {TIME: 10_000, DRAM: 10**6, **vector()}))
    assert not found.totals.flop_complete
    assert "tensor-not-collected" in codes(found)


def test_half_instructions_are_packed_pairs_unless_asked_otherwise(look):
    """Half weights: Nsight Compute 2/2/4; LIKWID, HTA and the paper 1/1/2."""
    work = {TIME: 10_000, **vector(hadd=10, hmul=100, hfma=1000), **tensor()}
    assert look(("k", work)).totals.flop == 2 * 10 + 2 * 100 + 4 * 1000
    unpacked = ImportOptions(half_weights="unpacked")
    assert look(("k", work), options=unpacked).totals.flop == 10 + 100 + 2 * 1000


def test_application_output_inside_the_csv_loses_nothing(look):
    """accel-sim 421: logs of the program landed inside the CSV."""
    noise = ("==PROF== Connected to process 7\n", 'epoch 1, loss "0.3", lr 1e-3\n', "no newline ")
    found = look(("k", {TIME: 10_000}), ("k", {TIME: 20_000}), noise=noise)
    assert found.totals.duration_s == pytest.approx(30e-6)


def test_units_of_the_second_row_are_applied(look, monkeypatch):
    """A public script ignored the units row and took the DRAM figure as it stood."""
    monkeypatch.setitem(UNITS, DRAM, "Mbyte")
    monkeypatch.setitem(UNITS, TIME, "us")
    found = look(("k", {TIME: "1.5", DRAM: "2.5"}))
    assert found.totals.bytes_by_level["dram"] == pytest.approx(2.5e6)
    assert found.totals.duration_s == pytest.approx(1.5e-6)


def test_a_copy_kernel_without_flop_goes_through_and_has_a_floor(look):
    """kerncraft 85: an error for zero FLOP."""
    found = look(("copy", {TIME: 100_000, DRAM: 4 * 10**8, **vector(), **tensor()}))
    assert found.totals.flop == 0
    assert found.kernels[0].intensity["dram"] == 0
    assert found.kernels[0].floors_s["dram"] > 0
    assert found.totals.zero_flop_launches == 1


def test_a_missing_level_leaves_the_bound_unknown_and_never_counts_as_zero(look):
    """AiDotNet.Tensors 891: missing counters were 0, the largest of the rest the limiter."""
    found = look(("k", {TIME: 100_000, DRAM: 10**6, **vector(ffma=10), **tensor()}))
    assert found.totals.bytes_by_level["l2"] is None
    assert found.kernels[0].bound.startswith("unknown among")


def test_totals_and_parts_of_one_prefix_are_counted_once(look):
    """Summing everything that begins with sm__ops_path_tensor counts two or three times."""
    total = 2 * 2048**3
    work = {TIME: 30_000, **vector(), **tensor(bf16_dst_fp32=total)}
    work |= {
        "sm__ops_path_tensor_src_bf16_dst_fp32_sparsity_off.sum": total,
        "sm__ops_path_tensor_op_hgmma_src_bf16_dst_fp32_sparsity_off.sum": total,
    }
    assert look(("gemm", work)).totals.flop == total


def test_512_flop_a_tensor_instruction_is_used_on_volta_only(look):
    """NERSC-style factor on A100 and H100."""
    work = {TIME: 30_000, **vector(), "sm__inst_executed_pipe_tensor.sum": 1000}
    hopper = look(("gemm", work))
    assert hopper.totals.flop_by_path["tensor bf16"] is None
    volta = look(("gemm", work), cc="7.0", machine="v100-paper")
    assert volta.totals.flop_by_path["tensor fp16"] == 512 * 1000


def test_an_fp8_gemm_of_4096_cubed_counts_137438953472(look):
    """DCGM 251 and others: the tcgen05 FP8 counter of a B300 gave exactly 2MNK."""
    counter = "sm__ops_path_tensor_src_fp8_dst_fp32.sum"
    found = look(("gemm", {TIME: 100_000, counter: 2 * 4096**3}), cc="10.3", machine=None)
    assert found.totals.flop_by_path["tensor fp8"] == 137_438_953_472


def test_counts_beyond_63_bits_survive_and_negative_ones_are_named(look):
    """ROCm/ATOM 449, Proton: int32 products and negative bytes."""
    found = look(("k", {TIME: 10_000, DRAM: 2**63 + 2**40}), ("k", {TIME: 10_000, DRAM: -5}))
    assert found.totals.bytes_by_level["dram"] == float(2**63 + 2**40)
    assert "counts-absurd" in codes(found)


def test_above_the_roof_is_a_diagnosis_and_never_a_good_result(look):
    """nsys-ai 385: 3.7x of peak, reported as good throughput."""
    work = {TIME: 1_000, **vector(), **tensor(bf16_dst_fp32=4 * 10**12)}
    found = look(("gemm", work))
    assert "above-roof" in codes(found)
    assert found.totals.recoverable_s == 0
    assert mansard.advise(found)[0].rule.startswith("above")


def test_axes_come_from_the_machine_so_two_runs_lie_side_by_side(look):
    """rocm-systems 11103: axes from data put a 10x faster kernel at the same place."""
    slow = look(("k", {TIME: 10**6, DRAM: 10**7, **vector(ffma=10**7), **tensor()}))
    fast = look(("k", {TIME: 10**4, DRAM: 10**5, **vector(ffma=10**8), **tensor()}))
    assert roofline_scene(slow).frame == roofline_scene(fast).frame


def test_the_plotted_points_and_roofs_can_be_had_as_csv(look):
    """rocprofiler-compute 281: give the numbers of the plot."""
    found = look(("k", {TIME: 10_000, DRAM: 10**6, **vector(ffma=10**6), **tensor()}))
    (point,) = csv.DictReader(io.StringIO(kernels_csv(found)))
    assert float(point["flop"]) == 2e6
    assert "dram" in roofs_csv(found)


def test_each_level_stands_beside_the_verdict(look):
    """kerncraft 84: the roof value and the table of levels beside the verdict."""
    found = look(("k", {TIME: 10_000, DRAM: 10**6, **vector(ffma=10**6), **tensor()}))
    told = report_dict(found)["kernels"][0]
    assert set(told["floors_s"]) >= {"vector", "tensor", "dram"}
    assert told["bound"]


def test_equal_ids_of_two_processes_stay_apart(tmp_path):
    """srt-slurm 142: ranks with equal ids merged."""
    head = '"ID","Process ID","Kernel Name","CC","Metric Name","Metric Unit","Metric Value"\n'
    for process in (1, 2):
        row = f'"0","{process}","k","9.0","{TIME}","ns","1000"\n'
        (tmp_path / f"rank{process}.csv").write_text(head + row)
    found = mansard.analyze(readers.open(tmp_path))
    assert found.totals.launches == 2
    assert len(found.ranks) == 2


def test_a_permission_error_is_explained_and_is_no_success(tmp_path):
    """ThunderKittens 73 and many: ERR_NVGPUCTRPERM on rented GPUs."""
    path = tmp_path / "log"
    path.write_text("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission\n")
    with pytest.raises(mansard.MansardError, match="administrator"):
        readers.open(path)


def test_no_kernels_profiled_gives_the_hint_about_autograds_thread(tmp_path):
    """tritonbench 87, 114, 116: a range around backward captured nothing."""
    path = tmp_path / "log"
    path.write_text("==PROF== Connected to process 7\n==WARNING== No kernels were profiled.\n")
    with pytest.raises(mansard.MansardError, match="another thread"):
        readers.open(path)


def test_hostile_names_are_text_everywhere(look):
    """600 characters with commas, quotes, newlines, markup and control sequences."""
    name = '<script>alert(1)</script>,"\n[red]\x1b[31m\N{SNOWMAN}' + "x" * 560
    found = look((name, {TIME: 10_000, DRAM: 10**6, **vector(), **tensor()}))
    assert found.kernels[0].key == name
    text = json.dumps(report_dict(found))
    assert json.loads(text)["kernels"][0]["name"].startswith("<script>")
