"""A comparison on the terminal, in Markdown and in JSON."""

import io
import json
import re
from pathlib import Path

import pytest
from rich.console import Console

from mansard.charts.change_text import (
    change_text,
    mark,
    marked,
    noise_text,
    row_name,
    run_labels,
)
from mansard.charts.compare_files import comparison_dict, comparison_json, comparison_markdown
from mansard.charts.compare_view import comparison_view
from mansard.model.comparison import Change, Comparison, Difference
from mansard.model.device import DeviceFacts
from mansard.model.notice import Notice
from mansard.model.provenance import Provenance

PAGE = Path(__file__).parents[3] / "docs" / "compare.md"


def change(metric, a, b, **more):
    return Change(metric=metric, a=a, b=b, **more)


def row(key="gemm_kernel", a=2e-3, b=1e-3, **more):
    changes = {
        "gpu_time": change(
            "gpu_time", a, b, noise=0.02, repeats="steps and ranks", verdict="changed"
        ),
        "flop": change("flop", 1e12, 1e12, verdict="same"),
        "bytes_l2": change("bytes_l2", None, None),
        "bytes_dram": change("bytes_dram", 4e9, 3e9, noise=0.01, verdict="changed"),
        "launches": change("launches", 8, 6, verdict="changed"),
        "zero_flop_launches": change("zero_flop_launches", 0, 0, verdict="same"),
    }
    return Difference(key=key, **({"names_a": (key,), "names_b": (key,)} | more), changes=changes)


def comparison(*rows, **more):
    totals = row(None)
    step = change(
        "step_time", 4e-3, 3.2e-3, noise=0.015, repeats="steps and ranks", verdict="changed"
    )
    values = {
        "label_a": "before.parquet",
        "label_b": "after.parquet",
        "by": "kernel",
        "totals": Difference(key=None, changes={"step_time": step, **totals.changes}),
        "rows": rows or (row(),),
        "repeats_a": 5,
        "repeats_b": 3,
        "provenance_a": (
            Provenance(devices=(DeviceFacts(name="NVIDIA H200"),), clock_control="none"),
        ),
        "provenance_b": (
            Provenance(devices=(DeviceFacts(name="NVIDIA H200"),), clock_control="base"),
        ),
    }
    return Comparison(**(values | more))


def shown(found, width=80, top=20):
    stream = io.StringIO()
    Console(file=stream, width=width, highlight=False).print(comparison_view(found, top=top))
    return stream.getvalue()


class TestWords:
    """A change in words."""

    @pytest.mark.parametrize(
        ("a", "b", "said"),
        [
            (1.0, 1.05, "+5.0 %"),
            (1.0, 0.5, "-50.0 %"),
            (1.0, 1.0, "="),
            (1.0, 9.9, "+890.0 %"),
            (1.0, 18.2, "x 18.2"),
            (1e-9, 1.0, "x 1.0e+09"),
            (0.0, 2.0, "new"),
            (2.0, 0.0, "gone"),
            (0.0, 0.0, "="),
            (None, 2.0, "-"),
        ],
    )
    def test_the_change(self, a, b, said):
        assert change_text(change("flop", a, b, verdict="changed")) == said
        assert len(said) <= 9

    def test_the_marks(self):
        assert mark(change("gpu_time", 1.0, 2.0, verdict="within noise")) == "~"
        assert mark(change("gpu_time", 1.0, 2.0, verdict="noise unknown")) == "?"
        assert mark(change("gpu_time", 1.0, 2.0, verdict="changed", repeats="launches")) == "*"
        assert marked(change("gpu_time", 1.0, 2.0, verdict="changed")) == "+100.0 %"
        assert marked(change("gpu_time", 1.0, 0.0, verdict="noise unknown")) == "gone"

    def test_the_noise(self):
        assert noise_text(change("gpu_time", 1.0, 2.0, noise=0.034, verdict="changed")) == "± 3.4 %"
        assert noise_text(change("gpu_time", 1.0, 2.0, verdict="noise unknown")) == "unknown"
        assert noise_text(change("gpu_time", None, 2.0)) == "-"

    def test_the_name_of_a_row(self):
        together = row("k" * 50, names_a=("x", "y", "z"), names_b=("q",))
        assert row_name(together, 20).endswith(" +2")
        assert len(row_name(together, 20)) == 20
        assert row_name(row(None), 20) == "(none)"
        assert row_name(row("void f<int>()", short_name="f"), 20) == "f"


class TestTerminal:
    """80 columns of plain text."""

    @pytest.mark.parametrize("width", [60, 80, 160])
    def test_no_line_is_wider_than_the_terminal(self, width):
        text = shown(comparison(row("k" * 600), row()), width)
        assert max(len(line) for line in text.splitlines()) <= width
        assert all(line == line.rstrip() for line in text.splitlines())

    def test_the_headline_is_the_step_and_its_noise(self):
        lines = shown(comparison()).splitlines()
        assert lines[0] == "before.parquet -> after.parquet"
        assert " ".join(lines[1:3]) == (
            "step time of a traced step 4.00 ms -> 3.20 ms, -20.0 %, 1.25x as fast (noise ± 1.5 %)"
        )

    def test_the_headline_is_the_step_without_a_trace_where_both_runs_know_it(self):
        alone = change("step_time_untraced", 2e-3, 3e-3, verdict="noise unknown")
        changes = {"step_time_untraced": alone, **comparison().totals.changes}
        text = shown(comparison(totals=Difference(key=None, changes=changes)), 160)
        assert text.splitlines()[1] == (
            "step time without a trace 2.00 ms -> 3.00 ms, +50.0 %, 1.50x as long "
            "(fewer than 3 files: noise unknown)"
        )
        assert re.search(r"step, untraced +2\.00 ms +3\.00 ms +\+50\.0 % \? +unknown", text)
        assert re.search(r"step, traced +4\.00 ms +3\.20 ms +-20\.0 %", text)

    @pytest.mark.parametrize("by", ["module", "layer", "operator"])
    def test_the_rows_of_a_network_have_their_title(self, by):
        text = shown(comparison(row("blocks.*.mix", short_name=None), row(None), by=by))
        assert f"{by.title()}s, by difference in time" in text
        assert re.search(r"1 blocks\.\*\.mix +2\.00 ms", text)
        assert re.search(r"2 \(none\) +2\.00 ms", text)

    def test_the_totals_with_noise(self):
        text = shown(comparison())
        assert "In all, means over ranks and steps (5 and 3)" in text
        assert re.search(r"GPU time +2\.00 ms +1\.00 ms +-50\.0 % +± 2\.0 %", text)
        assert re.search(r"launches +8 +6 +-25\.0 % +-", text)
        # nothing to nothing, and unknown on both sides, say nothing
        assert "L2 bytes" not in text
        assert "no-FLOP" not in text

    def test_a_row_with_what_else_moved(self):
        text = shown(comparison())
        assert re.search(r"1 gemm_kernel +2\.00 ms +1\.00 ms +-50\.0 %", text)
        assert "-1.00 ms, 2.00x as fast: DRAM -25.0 %, launches 8->6" in text

    def test_conditions_that_differ_stand_side_by_side(self):
        text = shown(comparison(unlike=("clock control: none against base",)))
        assert "NVIDIA H200\n" in text
        assert "none -> base" in text
        assert "UNLIKE           clock control: none against base" in text

    def test_the_legend_has_only_marks_that_occur(self):
        assert "noise unknown" not in shown(comparison())
        unknown = row()
        time = change("gpu_time", 2e-3, 1e-3, verdict="noise unknown")
        unknown.changes["gpu_time"] = time
        assert "? noise unknown: fewer than 3 repeats" in shown(comparison(unknown))

    def test_rows_that_are_not_shown_are_counted(self):
        text = shown(comparison(*[row(f"k{n}") for n in range(5)]), top=2)
        assert "and 3 more, which moved 3.00 ms in all" in text

    def test_unknown_times(self):
        text = shown(comparison(row(a=None)))
        assert "-: DRAM" in text

    def test_hostile_names_cannot_escape(self):
        text = shown(comparison(row("\x1b[31mred[/bold]\n\u202e"), label_a="[b]x\x07"))
        assert "\x1b" not in text
        assert "\x07" not in text
        assert "[/bold]" in text

    def test_warnings(self):
        found = comparison(notices=(Notice("no-repeats", "no repeats: noise unknown"),))
        assert "- no-repeats: no repeats: noise unknown" in shown(found)


class TestMarkdown:
    """For a pull request."""

    def test_what_it_says(self):
        text = comparison_markdown([comparison()])
        assert text.startswith("### `before.parquet` → `after.parquet`\n")
        assert (
            "**step time of a traced step 4.00 ms → 3.20 ms, -20.0 %, 1.25x as fast (noise ± 1.5 %)**"
            in text
        )
        assert "| GPU time | 2.00 ms | 1.00 ms | -50.0 % | ± 2.0 % |" in text
        assert (
            "| `gemm_kernel` | 2.00 ms | 1.00 ms | -50.0 % | -1.00 ms | DRAM -25.0 %, "
            "launches 8→6 |" in text
        )

    def test_every_row_of_a_table_has_as_many_cells_as_its_head(self):
        hostile = row("a|b`c`|d\\|e")
        tables = re.findall(
            r"(?:^\|.*\n)+", comparison_markdown([comparison(hostile)]), re.MULTILINE
        )
        assert len(tables) == 2
        for table in tables:
            assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}) == 1

    def test_names_and_messages_are_no_markup(self):
        notice = Notice("x", "<img src=x> @someone #1 [a](http://e) `c` *b* https://evil.example")
        text = comparison_markdown(
            [comparison(row("</details><script>@me #2"), notices=(notice,), unlike=("<b>x</b>",))]
        )
        outside = re.sub(r"`[^`\n]*`", "", text)
        for markup in ("<img", "<script", "<b>", "@someone", "#1", "https://"):
            assert markup not in outside
        assert not re.search(r"(?<!\\)(\[a|\*b)", outside)
        assert "`</details><script>@me #2`" in text

    def test_several_comparisons_follow_each_other(self):
        text = comparison_markdown([comparison(), comparison(label_b="third")])
        assert text.count("### ") == 2


class TestRunLabels:
    """Runs of one study have long names that begin and end alike."""

    _ALIKE = "deeplab-resnet50_keras-jax_amp-bf16_nhwc_keras-adam_{}_n2c16h768w1152k3_cuda0.parquet"

    def test_names_that_differ_in_the_middle_show_where(self):
        labels = run_labels(
            comparison(
                label_a=self._ALIKE.format("xla"), label_b=self._ALIKE.format("xla-gradients")
            )
        )
        assert "adam_xla_n2" in labels[0]
        assert "adam_xla-gradients_n2" in labels[1]
        assert max(map(len, labels)) <= 60

    def test_short_names_and_equal_ones_stay_as_they_are(self):
        assert run_labels(comparison()) == ("before.parquet", "after.parquet")
        same = run_labels(comparison(label_a=self._ALIKE, label_b=self._ALIKE))
        assert same[0] == same[1]
        assert same[0].startswith("deeplab-resnet50")

    def test_escapes_of_a_terminal_are_taken_out(self):
        labels = run_labels(
            comparison(label_a="\x1b" * 100 + "a" + "x" * 99, label_b="\x1b" * 100 + "b" + "x" * 99)
        )
        assert not any("\x1b" in label for label in labels)
        assert labels[0] != labels[1]


class TestJson:
    """A contract with scripts."""

    def test_numbers_are_exact_and_unknown_is_null(self):
        found = json.loads(comparison_json([comparison()]), parse_constant=pytest.fail)
        assert found["schema"] == "mansard-comparison/1"
        assert found["a"] == {"label": "before.parquet", "repeats": 5}
        time = found["totals"]["gpu_time"]
        assert time == {
            "a": 0.002,
            "b": 0.001,
            "relative": -0.5,
            "noise": 0.02,
            "verdict": "changed",
            "repeats": "steps and ranks",
            "repeats_a": 0,
            "repeats_b": 0,
        }
        assert found["totals"]["bytes_l2"]["a"] is None
        assert found["rows"][0]["changes"]["launches"]["a"] == 8
        assert found["rows"][0]["moved_s"] == -0.001

    def test_no_infinity(self):
        found = json.loads(comparison_json([comparison(row(a=0.0))]), parse_constant=pytest.fail)
        assert found["rows"][0]["changes"]["gpu_time"]["relative"] is None

    def test_several_are_a_list(self):
        assert len(json.loads(comparison_json([comparison(), comparison()]))) == 2

    def test_broken_letters_do_not_break_it(self):
        comparison_json([comparison(row("k\ud800"), label_a="\ud800")]).encode("utf-8")

    def test_every_key_is_explained_in_the_documentation(self):
        page = PAGE.read_text(encoding="utf-8")
        found = comparison_dict(comparison())
        keys = {*found, *found["rows"][0], *found["totals"]["gpu_time"], *found["a"]}
        assert sorted(key for key in keys if f"`{key}`" not in page) == []
