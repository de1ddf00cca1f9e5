"""The report says what the files of a folder say, and no more."""

import dataclasses
import re
import sys
from pathlib import Path

import msgspec
import pytest

from mansard.errors import InputError
from mansard.study import (
    figures,
    sections_changes,
    sections_flop,
    sections_kernels,
    sections_steps,
    sections_ways,
    words,
)
from mansard.study.blocks import Heading, Items, Paragraph, Table
from mansard.study.cell import Flop
from mansard.study.gather import gather
from mansard.study.markdown import markdown
from mansard.study.measure import blank
from mansard.study.plan import deepcam
from mansard.study.report import document, write_report
from mansard.study.sections_changes import verdict

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "studies" / "deepcam" / "report.md"


@pytest.fixture
def by_title(cells):
    return {cell.title: cell for cell in cells}


def rows(blocks, title=""):
    """Rows of the first table as {column: text}, those of one cell."""
    table = next(block for block in blocks if isinstance(block, Table))
    found = [dict(zip(table.head, row, strict=True)) for row in table.rows]
    first = table.head[0]
    return [row for row in found if title in row[first]]


BASE = "ResNet-50 PyTorch amp-bf16 nhwc adam-fused eager"
NCHW = "ResNet-50 PyTorch amp-bf16 nchw adam-fused eager"
FP32 = "ResNet-50 PyTorch fp32 nchw adam-fused eager"
GRAPH = "ResNet-50 PyTorch amp-bf16 nhwc adam-fused graph"


def test_every_cell_of_the_plan_has_a_row_measured_or_not(folder, by_title, keep):
    keep(by_title[BASE])
    found = rows(sections_steps.cells(gather(folder.path)))
    assert [row["cell"] for row in found] == list(by_title)
    assert [row["step"] for row in found[1:]] == ["not measured yet"] * (len(by_title) - 1)


def test_the_time_of_a_step_is_its_median_with_its_spread(folder, by_title, keep):
    keep(by_title[BASE], step_s=(0.030, 0.040, 0.041, 0.042, 0.900))
    (row,) = rows(sections_steps.cells(gather(folder.path)), BASE)
    assert row["step"] == "41.0 ms ± 1.00 ms"
    assert row["steps"] == "5"


def test_the_rate_is_analytic_work_over_the_median(folder, by_title, keep):
    keep(by_title[BASE], analytic=(Flop(phase="forward", kind="conv", flop=4e12),))
    (row,) = rows(sections_steps.cells(gather(folder.path)), BASE)
    assert (row["FLOP"], row["FLOP/s"]) == ("4.00 TFLOP", "100 TFLOP/s")


def test_what_is_not_measured_is_listed_with_what_to_do(folder, by_title, keep):
    for title, cell in by_title.items():
        if title != GRAPH:
            keep(cell, run=None)
    texts = [b.text for b in sections_steps.cells(gather(folder.path)) if isinstance(b, Paragraph)]
    assert texts[-1].startswith(f"Not measured yet: {GRAPH}. 'mansard study deepcam -o'")


def test_a_profile_that_was_cut_off_says_what_the_time_went_into(folder, by_title, keep):
    keep(by_title[BASE], run=None, collect_reason="ended in the profile", seconds={"build": 11.25})
    (told,) = (b for b in sections_steps.cells(gather(folder.path)) if isinstance(b, Items))
    assert told.texts == (
        f"{BASE}: no counters, or not all. ended in the profile (took: build 11.2 s)",
    )


def test_a_cell_that_failed_says_why(folder, by_title):
    record = msgspec.structs.replace(
        blank(by_title[NCHW], "paper"), reason="out of memory (OutOfMemoryError): 2 GiB"
    )
    folder.save(record)
    blocks = list(sections_steps.cells(gather(folder.path)))
    (row,) = rows(blocks, NCHW)
    assert row["step"] == "failed"
    (told,) = (block for block in blocks if isinstance(block, Items))
    assert told.texts == (f"{NCHW}, failed: out of memory (OutOfMemoryError): 2 GiB",)


def test_a_framework_that_is_absent_is_one_sentence_for_all_of_its_cells(folder, by_title):
    for title in (NCHW, FP32):
        record = blank(by_title[title], "paper")
        folder.save(msgspec.structs.replace(record, state="unavailable", reason="no PyTorch"))
    (told,) = (b for b in sections_steps.cells(gather(folder.path)) if isinstance(b, Items))
    assert told.texts == (f"{NCHW}, {FP32}, unavailable: no PyTorch",)


def test_bars_stand_by_network_and_then_by_precision(folder, by_title, keep):
    titles = (
        "prefill PyTorch bf16 eager",
        "Xception PyTorch fp32 nchw adam-loop eager",
        BASE,
        "Xception PyTorch amp-fp16 nchw adam-loop eager",
        FP32,
    )
    for title in titles:
        keep(by_title[title], run=None)
    drawn = figures.bars(gather(folder.path))
    for picture in drawn.values():
        shown = re.findall(r">([^<]* (?:eager|graph))<", picture)
        assert shown == [FP32, BASE, titles[1], titles[3], titles[0]]


def test_energy_that_was_not_measured_is_unknown_with_its_reason(folder, by_title, keep):
    keep(by_title[BASE], run=None, energy_j=None, energy_reason="NVML gives no energy counter here")
    (row,) = rows(sections_steps.energy(gather(folder.path)), BASE)
    assert row["energy of a step"] == "unknown"
    assert row["over"] == "NVML gives no energy counter here"


def test_energy_over_time_is_power(folder, by_title, keep):
    keep(by_title[BASE], run=None, energy_j=20.0, queued_step_s=0.040)
    (row,) = rows(sections_steps.energy(gather(folder.path)), BASE)
    assert (row["power"], row["FLOP/J"]) == ("500 W", "335 GFLOP/J")  # 6.7e12 / 20


def test_a_speed_up_is_over_the_cell_that_differs_in_precision_alone(folder, by_title, keep):
    keep(by_title[FP32], step_s=(0.080, 0.080))
    keep(by_title[NCHW], step_s=(0.040, 0.040))
    study = gather(folder.path)
    (row,) = rows(sections_steps.precision(study), NCHW)
    assert row["step"] == "2.00 x"
    # Both have the same run here.
    assert (row["on the GPU"], row["forward"]) == ("1.00 x", "1.00 x")
    (other,) = rows(sections_steps.precision(study), BASE)
    assert other["step"] == "not measured yet"


def test_a_speed_up_without_counters_is_unknown_by_phase(folder, by_title, keep):
    keep(by_title[FP32], run=None)
    keep(by_title[NCHW])
    (row,) = rows(sections_steps.precision(gather(folder.path)), NCHW)
    assert (row["step"], row["on the GPU"], row["backward"]) == ("1.00 x", "unknown", "unknown")


def test_a_speed_up_on_the_gpu_is_that_of_the_kernels_alone(folder, by_title, keep):
    keep(by_title["prefill PyTorch bf16 eager"], step_s=(0.080, 0.080))
    keep(by_title["prefill PyTorch fp8 eager"], run="h200-zoo", step_s=(0.040, 0.040))
    found = rows(sections_steps.precision(gather(folder.path)), "prefill PyTorch fp8 eager")
    # 31.96 ms of kernels in the shipped step, 1.95 ms in the zoo.
    assert (found[0]["step"], found[0]["on the GPU"]) == ("2.00 x", "16.37 x")


def test_the_census_of_a_phase_is_that_of_the_analysis(folder, by_title, keep):
    keep(by_title[BASE])
    forward = rows(sections_kernels.phases(gather(folder.path)), BASE)[0]
    # As `mansard report` prints the shipped run.
    assert forward["phase"] == "forward"
    assert forward["launches"] == "542"
    assert forward["time"] == "11.8 ms"
    assert forward["FLOP/s"] == "196 TFLOP/s"
    assert forward["AI"] == "51 / 69.4 / 163"
    assert forward["bound"] == "L2"
    assert forward["eff."].startswith("45.")  # by the shipped roofs, which are measured anew


def test_the_papers_phase_stands_above_ours(folder, by_title, keep):
    keep(by_title["Xception PyTorch amp-fp16 nchw adam-loop eager"])
    found = rows(sections_kernels.against_paper(gather(folder.path)))
    place = next(n for n, row in enumerate(found) if row["run"] == "V100, PyTorch O1")
    theirs, ours = found[place], found[place + 1]
    assert (theirs["launches"], theirs["zero-AI"]) == ("797", "437 (54.8 %)")
    assert ours["run"] == "Xception PyTorch amp-fp16 nchw adam-loop eager"
    assert ours["faster"] == "8.79 x"  # 104.2 ms / 11.850 ms


def test_each_optimizer_has_its_launches_time_and_traffic(folder, by_title, keep):
    keep(by_title["ResNet-50 PyTorch amp-bf16 nhwc lamb eager"])
    keep(by_title[BASE], run=None)
    found = {r["optimizer"]: r for r in rows(sections_ways.optimizers(gather(folder.path)))}
    # As `mansard report` prints the optimizer of the shipped run; 1.247 GB in 392 us.
    assert found["lamb"]["launches"] == "11"
    assert found["lamb"]["time on the GPU"] == "392 us"
    assert found["lamb"]["DRAM"] == "3.18 TB/s"
    assert found["adam-fused"]["launches"] == "unknown"
    assert found["adam-loop"]["launches"] == "not measured yet"


def test_frameworks_are_laid_side_by_side_by_family(folder, by_title, keep):
    keep(by_title[BASE])
    keep(by_title["ResNet-50 Keras/JAX amp-bf16 nhwc keras-adam xla"], run="h200-zoo")
    tables = [
        block for block in sections_ways.frameworks(gather(folder.path)) if isinstance(block, Table)
    ]
    whole, families = tables  # torch.compile was not measured, so it has no table
    assert [row[0] for row in whole.rows][:2] == [BASE, GRAPH]
    attention = next(row for row in families.rows if row[0] == "attention")
    # The zoo has one launch of attention, the step none.
    assert attention[1:5] == ("0 s", "156 us", "0", "1")


def test_fp8_stands_beside_bf16_by_family(folder, by_title, keep):
    keep(by_title["prefill PyTorch bf16 eager"])
    keep(by_title["prefill PyTorch fp8 eager"], run="h200-zoo")
    blocks = list(sections_ways.transformers(gather(folder.path)))
    headings = [block.text for block in blocks if isinstance(block, Heading)]
    assert headings == ["Transformer", "prefill, bf16 to fp8, by family of kernels"]
    attention = next(row for row in blocks[-1].rows if row[0] == "attention")
    assert attention[1:5] == ("0 s", "156 us", "0", "1")


def test_counted_work_is_compared_with_analytic_work_by_phase(folder, by_title, keep):
    keep(by_title[BASE], analytic=(Flop(phase="forward", kind="conv", flop=2327280096978 / 1.1),))
    found = rows(sections_flop.flop_check(gather(folder.path)), BASE)
    # Of the shipped step, forward: 2.327 TFLOP in all, 2.303 of them on Tensor Cores.
    assert [row["phase"] for row in found] == ["forward", "step"]
    assert found[0]["all, difference"] == "+10.0 %"
    assert found[0]["difference"] == "+8.9 %"
    assert (found[0]["Tensor Cores"], found[0]["vector"]) == ("2.30 TFLOP", "24.1 GFLOP")


def test_counted_work_without_a_run_is_unknown(folder, by_title, keep):
    keep(by_title[BASE], run=None)
    (row,) = rows(sections_flop.flop_check(gather(folder.path)), BASE)
    assert (row["phase"], row["Tensor Cores"], row["difference"]) == ("step", "unknown", "unknown")


def test_a_lower_bound_is_said_to_be_one(folder, by_title, keep, monkeypatch):
    keep(by_title[BASE])
    study = gather(folder.path)
    partial = dataclasses.replace(study.entries[0].analysis.totals, flop_complete=False)
    assert all(text.startswith("at least ") for text in sections_flop._checked(partial, 1e12)[1:])


def test_vector_work_that_no_counter_saw_is_unknown_and_not_zero(folder, by_title, keep):
    keep(by_title[GRAPH])
    totals = gather(folder.path).entry(by_title[GRAPH].name).analysis.totals
    unseen = {path: None for path in totals.flop_by_path if path.startswith("vector")}
    graph = dataclasses.replace(
        totals, flop_complete=False, flop_by_path={**totals.flop_by_path, **unseen}
    )
    assert sections_flop._checked(graph, 1e12)[3] == "unknown"
    head = ("launches", "zero-AI", "their time", "time", "FLOP", "tensor")
    assert dict(zip(head, sections_kernels._census(graph), strict=False))["tensor"] == "unknown"


def test_advice_stands_beside_what_the_change_won(folder, by_title, keep):
    keep(by_title[BASE], step_s=(0.040, 0.040))
    keep(by_title[GRAPH], step_s=(0.033, 0.033))
    busy, idle, step = rows(sections_changes.changes(gather(folder.path)), "eager to a CUDA graph")
    # Of the shipped step: busy for 31.85 ms, launch-bound 0.340 ms; both cells have it as their run.
    assert (busy["advice"], busy["named"], busy["won"]) == ("launch-bound 340 us", "340 us", "0 s")
    assert (idle["advice"], idle["named"], idle["won"]) == ("idle-gpu", "8.15 ms", "7.00 ms")
    assert (step["named"], step["won"], step["change of it"]) == ("8.49 ms", "7.00 ms", "-17.5 %")
    assert step["verdict"] == "shorter, within what was named"


@pytest.mark.parametrize(
    ("won", "words"),
    [(0.0, "within the spread"), (0.020, "shorter, not named"), (-0.020, "longer")],
)
def test_each_part_of_a_step_has_a_verdict_by_one_rule(folder, by_title, keep, won, words):
    keep(by_title[NCHW], step_s=(0.060, 0.060))
    keep(by_title[BASE], step_s=(0.060 - won, 0.060 - won))
    busy, idle, _ = rows(sections_changes.changes(gather(folder.path)), "NCHW to NHWC")
    # Both cells have the same run, so all that differs is idle time, and no rule asked is on it.
    assert (busy["verdict"], idle["verdict"]) == ("within the spread", words)


def test_recorded_steps_of_the_same_work_differ_by_less_than_the_verdict_allows():
    passes = [
        [
            group.duration_s
            for group in entry.analysis.phases
            if group.key in ("forward", "backward")
        ]
        for entry in gather(PAGE.parent).measured
        if re.search("_amp-bf16_nhwc_(adam|lamb).*_eager_", entry.cell.name)
    ]
    times = [sum(each) for each in passes]
    assert len(times) == 4
    assert max(times) < (1 + sections_changes.SAME) * min(times)


def test_gaps_that_tracing_made_are_not_idle_time_of_the_step(folder, by_title, keep):
    # The recorded step took 47.3 ms from end to end, the undisturbed one 35.
    keep(by_title[BASE], step_s=(0.035, 0.035))
    keep(by_title[GRAPH], step_s=(0.033, 0.033))
    _, idle, _ = rows(sections_changes.changes(gather(folder.path)), "eager to a CUDA graph")
    assert idle["named"] == "3.15 ms"


def test_idle_time_is_not_named_where_no_rule_on_it_is_asked(folder, by_title, keep):
    keep(by_title[NCHW], step_s=(0.040, 0.040))
    keep(by_title[BASE], step_s=(0.030, 0.030))
    _, idle, step = rows(sections_changes.changes(gather(folder.path)), "NCHW to NHWC")
    assert (idle["advice"], idle["named"], idle["before"]) == ("nothing", "0 s", "8.15 ms")
    assert step["won"] == "10.0 ms"


def test_a_change_that_is_not_measured_yet_has_its_named_time(folder, by_title, keep):
    keep(by_title[BASE], step_s=(0.040, 0.040))
    (row,) = rows(sections_changes.changes(gather(folder.path)), "eager to a CUDA graph")
    assert row["advice"] == "idle-gpu 8.15 ms, launch-bound 340 us"
    assert (row["named"], row["after"]) == ("8.49 ms", "not measured yet")
    assert row["verdict"] == "unknown"


def test_a_change_without_its_cells_is_not_judged(folder, by_title, keep):
    keep(by_title[BASE])
    (row,) = rows(sections_changes.changes(gather(folder.path)), "NCHW to NHWC")
    assert row["part"] == "step"
    assert (row["before"], row["won"], row["verdict"]) == (
        "not measured yet",
        "unknown",
        "unknown",
    )


@pytest.mark.parametrize(
    ("named", "won", "noise", "words"),
    [
        (0.010, 0.008, 0.001, "shorter, within what was named"),
        (0.010, 0.0105, 0.001, "shorter, within what was named"),
        (0.010, 0.012, 0.001, "shorter, too little named"),
        (0.0, 0.012, 0.001, "shorter, not named"),
        (None, 0.012, 0.001, "shorter, advice unknown"),
        (0.010, -0.005, 0.001, "longer"),
        (0.010, 0.0005, 0.001, "within the spread"),
        (0.010, -0.0005, 0.001, "within the spread"),
        (0.010, None, 0.001, "unknown"),
    ],
)
def test_the_verdict_on_an_advice(named, won, noise, words):
    assert verdict(named, won, noise) == words


def test_a_run_that_is_damaged_is_named_and_left_out(folder, by_title, keep):
    keep(by_title[BASE])
    folder.run_file(by_title[BASE].name).write_bytes(b"PAR1 no parquet PAR1")
    study = gather(folder.path)
    assert study.entry(by_title[BASE].name).analysis is None
    assert BASE in study.remarks[0]


def test_a_cell_file_that_is_damaged_is_named_and_left_out(folder, by_title, keep):
    keep(by_title[BASE], run=None)
    folder.cell_file("odd").write_text("{", encoding="utf-8")
    study = gather(folder.path)
    assert len(study.measured) == 1
    assert "odd.json" in study.remarks[0]


def test_cells_of_a_gpu_hide_those_of_a_cpu(folder, by_title, keep):
    keep(by_title[BASE], run=None)
    tiny = deepcam("cpu", "tiny")[0]
    folder.save(msgspec.structs.replace(blank(tiny, "tiny"), state="measured", step_s=(1.0,)))
    study = gather(folder.path)
    assert study.on_gpu
    assert "1 more cells" in study.remarks[0]


def test_a_cpu_run_is_marked_and_compares_nothing(folder):
    for number, cell in enumerate(deepcam("cpu", "tiny")[:3]):
        record = msgspec.structs.replace(
            blank(cell, "tiny"), state="measured", step_s=(1.0 + number,), timed_by="wall clock"
        )
        folder.save(record)
    study = gather(folder.path)
    blocks = list(document(study))
    first = next(b for b in blocks if isinstance(b, Paragraph) and b.strong)
    assert "run on a CPU at a tiny size" in first.text
    text = markdown(blocks)
    assert "V100" not in text
    assert "Speed-up" not in text
    assert " x |" not in text
    assert "says nothing of a GPU" in figures.bars(study)[figures.STEPS]


def test_an_empty_folder_is_no_study(tmp_path):
    with pytest.raises(InputError, match="holds no cell"):
        write_report(tmp_path)


def test_the_whole_report_is_written_with_its_pictures(folder, by_title, keep):
    keep(by_title[BASE])
    keep(by_title[GRAPH])
    written = write_report(folder.path)
    assert all(file.is_file() for file in written.files)
    text, page = (file.read_text(encoding="utf-8") for file in written.files[:2])
    assert [picture.suffix for picture in written.files[2:]] == [".png"] * 3
    for target in re.findall(r"\]\(([^)]+)\)", text):
        assert (folder.path / target).is_file()
    assert page.count("<img ") == 5  # three charts, bars of time and of energy
    assert 'src="data:image/png;base64,' in page


def test_the_same_files_give_the_same_report(folder, by_title, keep):
    keep(by_title[GRAPH])
    first = [file.read_bytes() for file in write_report(folder.path).files]
    assert [file.read_bytes() for file in write_report(folder.path).files] == first


def test_the_page_in_the_repository_is_what_its_folder_says():
    assert PAGE.read_text(encoding="utf-8") == _page(), f"run: python {Path(__file__).name}"


def _page():
    study = gather(PAGE.parent)
    return markdown(list(document(study, figures.pictures(study))))


if __name__ == "__main__":
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(_page(), encoding="utf-8")
    sys.stdout.write(f"rewrote {PAGE}\n")


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ((0.0, 0.0005, 0.001), "0 / <0.001 / 0.001"),
        ((None, 0.0616, 1415.2), "unknown / 0.0616 / 1415"),
    ],
    ids=["small", "large"],
)
def test_intensities_are_short_and_a_little_is_not_none(values, text):
    assert words.intensities(dict(zip(("l1", "l2", "dram"), values, strict=True))) == text
