"""The HTML report in a real browser: what an engineer sees, does and takes away."""

import csv
import io
import json
import math
import random
import re

import pytest

from mansard.charts import kernels_csv, report_dict
from mansard.charts.columns import intensity_text
from mansard.charts.frame import slope_labels
from mansard.charts.labels import (
    above_roof,
    bound_label,
    efficiency_label,
    intensity_names,
    key_label,
    printable,
)
from mansard.charts.rows import share
from mansard.charts.scene import roofline_scene
from mansard.units import format_share, format_si

pytestmark = pytest.mark.slow

CANVAS = "#roofline canvas + canvas"

#: Pixel of a kernel's first marker, in the window.
PIXEL = """(place) => {
  const plot = mansard.plots.roofline;
  const row = plot.rows.findIndex((row) => row.place === place);
  const mark = plot.marks.row.subarray(0, plot.marks.count).indexOf(row);
  const box = plot.over.getBoundingClientRect();
  const [x, y] = plot.at(mark);
  return [box.left + x, box.top + y];
}"""


def figures(group, analysis):
    """One row of the table, as the functions behind the terminal write it."""
    recoverable = None if above_roof(group) else group.recoverable_s
    levels = intensity_names([analysis.totals, *analysis.kernels], analysis.kernels)
    return [
        str(group.launches),
        format_si(group.duration_s, "s"),
        efficiency_label(group),
        format_si(recoverable, "s"),
        bound_label(group),
        format_share(share(group, analysis)),
        format_si(group.flop_per_s),
        *(intensity_text(group.intensity.get(level)) for level in levels),
    ]


def values():
    rng = random.Random(7)
    found = [0, -0.0, 1, 999.4, 999.5, 999.6, 0.9995, 1.125, 1.375, 2.5, 0.125, 1e3, 1e24, 5e-324]
    found += [10**power * part for power in range(-14, 22) for part in (1, 1.005, 9.995, 9.9949)]
    # Exact ties, which Python rounds to the even digit and a browser away from zero.
    found += [(2 * whole + 1) / 2**bits for whole in range(60) for bits in range(1, 6)]
    found += [(2 * whole + 1) / 2**bits * 1e9 for whole in range(60) for bits in range(1, 6)]
    found += [rng.lognormvariate(0, 12) for _ in range(800)]
    return [value for value in found if math.isfinite(value)]


def test_sizes_and_shares_are_written_as_the_rest_of_mansard_writes_them(open_page, zoo):
    numbers = values()
    tab = open_page(zoo)
    sizes = tab.js("(values) => values.map((value) => mansard.formatSi(value, 'B'))", numbers)
    assert sizes == [format_si(value, "B") for value in numbers]
    short = tab.js("(values) => values.map((value) => mansard.formatSi(value, 's', 1))", numbers)
    assert short == [format_si(value, "s", 1) for value in numbers]
    shares = tab.js("(values) => values.map((value) => mansard.formatShare(value))", numbers)
    assert shares == [format_share(value) for value in numbers]
    ratios = tab.js("(values) => values.map((value) => mansard.formatIntensity(value))", numbers)
    assert ratios == [intensity_text(value) for value in numbers]


def test_unknown_and_impossible_values_are_written_as_the_rest_of_mansard_writes_them(
    open_page, zoo
):
    tab = open_page(zoo)
    assert tab.js(
        "[null, NaN, Infinity, -Infinity, -0.0004].map((v) => mansard.formatSi(v, 's'))"
    ) == [format_si(value, "s") for value in (None, math.nan, math.inf, -math.inf, -0.0004)]
    assert tab.js("[null, NaN, 0.99999, 1, 1e-9].map((v) => mansard.formatShare(v))") == [
        format_share(value) for value in (None, math.nan, 0.99999, 1, 1e-9)
    ]


def test_long_and_hidden_letters_are_shown_as_the_rest_of_mansard_shows_them(
    open_page, ranks_report
):
    names = [kernel.key for kernel in ranks_report.analysis.kernels]
    tab = open_page(ranks_report)
    for limit in (20, 200, 1000):
        shown = tab.js(
            "([names, limit]) => names.map((n) => mansard.printable(n, limit))", [names, limit]
        )
        assert shown == [printable(name, limit) for name in names]


@pytest.mark.parametrize("report", ["zoo", "ranks_report"])
def test_the_exported_json_is_the_json_report(open_page, report, request):
    report = request.getfixturevalue(report)
    exported = json.loads(open_page(report).js("mansard.json()"))
    assert exported == report_dict(report.analysis)


@pytest.mark.parametrize("by", ["kernel", "family", "phase", "rank", "module", "operator"])
def test_the_exported_csv_is_the_csv_report(open_page, ranks_report, by):
    tab = open_page(ranks_report, f"#by={by}")
    own = list(csv.reader(io.StringIO(tab.js("mansard.csv()"), newline="")))
    expected = list(csv.reader(io.StringIO(kernels_csv(ranks_report.analysis, by), newline="")))
    assert own[0] == expected[0]
    assert [[plain(cell) for cell in row] for row in own] == [
        [plain(cell) for cell in row] for row in expected
    ]


def plain(cell):
    try:
        return float(cell)
    except ValueError:
        return cell


@pytest.mark.parametrize("report", ["deepcam", "ranks_report", "large"])
def test_every_figure_of_the_table_is_that_of_the_terminal(open_page, report, request):
    report = request.getfixturevalue(report)
    analysis = report.analysis
    tab = open_page(report)
    while tab.page.locator("#more").is_visible():
        tab.page.click("#more")
    rows = tab.js(
        "[...document.querySelectorAll('#table tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent))"
    )
    assert [row[1] for row in rows] == [printable(k.short_name) for k in analysis.kernels]
    assert [row[3:] for row in rows] == [figures(kernel, analysis) for kernel in analysis.kernels]


def test_integer_work_is_shown_as_operations_and_marked(open_page, zoo):
    (kernel,) = [k for k in zoo.analysis.kernels if k.flop == 0 and k.op_int]
    place = zoo.analysis.kernels.index(kernel) + 1
    tab = open_page(zoo)
    line = tab.texts(f"#table tbody tr:nth-child({place}) td")
    assert f"{format_si(kernel.op_int / kernel.duration_s)}*" in line
    assert intensity_text(kernel.op_int / kernel.bytes_by_level["dram"]) == line[-1]
    assert "*: only integer operations, so OP/s and OP/byte" in tab.texts("#table-note")[0]
    tab.js("mansard.update({ family: 'norm' })")
    assert tab.texts("#table-note") == [""]
    tab.js("(place) => mansard.update({ select: String(place) })", place)
    rows = tab.texts("#kernel details tbody td")
    assert format_si(kernel.op_int / kernel.duration_s, "OP/s") in rows


@pytest.mark.parametrize("chosen", [False, True])
@pytest.mark.parametrize("width", [1280, 1500])
def test_efficiency_and_recoverable_time_stand_on_the_screen(open_page, step, width, chosen):
    tab = open_page(step, "#select=1" if chosen else "", width=width)
    hidden = tab.js(
        """['efficiency', 'recoverable_s', 'bound'].filter((key) => {
          const scroll = document.querySelector('#kernels .scroll').getBoundingClientRect();
          return document.querySelector(`#table th.${key}`).getBoundingClientRect().right > scroll.right;
        })"""
    )
    assert hidden == []
    # Twice the letters that 14 letters of a name take, or more.
    name = tab.js("document.querySelector('#table tbody th').clientWidth")
    assert name >= 240


def test_all_columns_fit_while_no_kernel_is_chosen(open_page, step):
    tab = open_page(step, width=1280)
    scroll = "document.querySelector('#kernels .scroll')"
    assert tab.js(f"{scroll}.scrollWidth") == tab.js(f"{scroll}.clientWidth")


def test_a_long_name_of_a_layer_ends_before_the_next_column(open_page, step):
    tab = open_page(step, "#by=layer", width=700)
    tab.js("document.querySelector('#table tbody th > *').textContent = 'backbone.'.repeat(40)")
    style = tab.js(
        """(() => { const name = document.querySelector('#table tbody th > *');
        const { overflow, textOverflow, display } = getComputedStyle(name);
        return [display, overflow, textOverflow, name.clientWidth < name.scrollWidth,
          name.getBoundingClientRect().right <= name.closest('tr').cells[2].getBoundingClientRect().left]; })()"""
    )
    assert style == ["block", "hidden", "ellipsis", True, True]


def test_while_no_kernel_is_chosen_the_longest_are_listed(open_page, zoo):
    tab = open_page(zoo)
    kernels = zoo.analysis.kernels[:20]
    assert tab.texts("#kernel .key th") == [printable(k.short_name) for k in kernels]
    assert tab.texts("#kernel .key td:last-child") == [
        format_share(share(kernel, zoo.analysis)) for kernel in kernels
    ]
    tab.page.click("#kernel .key button >> nth=2")
    assert tab.texts("#kernel h2") == ["Kernel 3"]


def test_an_efficiency_above_every_floor_is_explained_beside_them(open_page, step):
    kernels = step.analysis.kernels
    differs = [
        format_share(k.efficiency)
        != format_share(max(f for f in k.floors_s.values() if f is not None) / k.duration_s)
        for k in kernels[:12]
    ]
    assert set(differs) == {True, False}
    tab = open_page(step)
    for place, differ in enumerate(differs, start=1):
        tab.js("(place) => mansard.update({ select: String(place) })", place)
        said = [text for text in tab.texts("#kernel p") if "its own highest floor" in text]
        assert bool(said) == differ


def test_slopes_that_nearly_meet_have_one_label(open_page, step):
    tab = open_page(step)
    labels = tab.js(
        "mansard.slopeLabels(mansard.page.roofline.roofs.filter((r) => r.kind === 'bandwidth')).map((s) => s.label)"
    )
    scene = roofline_scene(step.analysis)
    slopes = [roof for roof in scene.roofs if roof.kind == "bandwidth"]
    assert labels == [label for _, label in slope_labels(slopes)]
    assert labels[0] == "shared 33.4, L1 33.3 TB/s"


@pytest.mark.parametrize(("width", "narrow"), [(390, True), (1280, False)])
def test_a_narrow_chart_names_its_roofs_on_their_buttons(open_page, step, width, narrow):
    tab = open_page(step, width=width)
    button = tab.page.locator("#roofline [data-name='tensor bf16']")
    assert button.inner_text().split() == (
        ["b", "tensor", "bf16", "948", "TFLOP/s"] if narrow else ["tensor", "bf16"]
    )


def test_a_large_page_is_packed_and_says_so(open_page, large):
    tab = open_page(large)
    assert tab.page.locator("#data").get_attribute("data-encoding") == "deflate"
    assert "page-digits" in tab.texts("#warnings li code")
    kernel = large.analysis.kernels[0]
    shown = tab.js("mansard.rows()[0]")
    assert shown["duration_s"] == pytest.approx(kernel.duration_s, rel=1e-4)
    assert shown["floors_s"] == pytest.approx(kernel.floors_s, rel=1e-4)
    assert shown["bytes"]["dram"] == pytest.approx(kernel.bytes_by_level["dram"], rel=1e-4)


def test_more_kernels_than_fit_become_one_row_that_adds_up(open_page, crowded):
    tab = open_page(crowded)
    assert "page-others" in tab.texts("#warnings li code")
    rows = tab.js("mansard.rows()")
    assert len(rows) == 8
    assert rows[-1]["short_name"] == "5 other kernels"
    for name in ("launches", "duration_s", "flop"):
        whole = getattr(crowded.analysis.totals, name)
        assert sum(row[name] for row in rows) == pytest.approx(whole)
    # Many kernels are no point of a chart.
    assert not tab.js("Array.from(mansard.plots.roofline.marks.row).includes(7)")


@pytest.mark.parametrize("by", ["family", "phase", "rank", "module", "operator"])
def test_groups_show_the_figures_of_the_analysis(open_page, ranks_report, by):
    analysis = ranks_report.analysis
    tab = open_page(ranks_report)
    tab.page.select_option("#by", by) if len(
        getattr(analysis, {"family": "families"}.get(by, by + "s"))
    ) else None
    rows = tab.js(
        "[...document.querySelectorAll('#table tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent))"
    )
    groups = getattr(analysis, {"family": "families"}.get(by, by + "s"))
    assert [row[1] for row in rows] == [key_label(group) for group in groups]
    assert [row[2:] for row in rows] == [figures(group, analysis) for group in groups]


def test_a_module_is_no_filter_of_kernels(open_page, ranks_report):
    tab = open_page(ranks_report, "#by=module")
    assert tab.texts("#table-note") == ["of the whole run"]
    assert tab.texts("#table tbody th") == ["model.layer", "(none)"]
    assert tab.page.locator("#table tbody button").count() == 0


def test_hostile_names_stay_text(open_page, ranks_report):
    tab = open_page(ranks_report, "#select=12")
    assert tab.page.title() == "run & <b>name"
    assert (
        tab.js("document.querySelectorAll('img, iframe, object, embed, main b, main i').length")
        == 0
    )
    assert tab.js("document.querySelectorAll('script').length") == 3
    shown = tab.texts("#kernel .name")[0]
    assert shown == printable(ranks_report.analysis.kernels[11].key, 4000)
    assert shown.startswith("<script>")
    for place in range(1, 12):
        tab.js("(place) => mansard.update({ select: String(place) })", place)
        assert tab.texts("#kernel .name")[0] == printable(
            ranks_report.analysis.kernels[place - 1].key, 4000
        )


def test_markup_from_the_address_stays_text(open_page, zoo):
    tab = open_page(zoo, "#q=%3Cimg%20src%3Dx%3E&family=%3Cb%3E&select=%3Cb%3E&sort=x:y")
    assert tab.js("document.querySelectorAll('img, main b').length") == 0
    assert tab.texts("#count") == ["0 of 21 kernels, 0.0 % of the time"]
    assert tab.texts("#shown") == ["nothing passes the filters"]


def test_the_pointer_joins_the_levels_of_a_kernel_and_names_it(open_page, zoo):
    tab = open_page(zoo)
    tab.page.locator(CANVAS).scroll_into_view_if_needed()
    tab.page.mouse.move(*tab.js(PIXEL, 0))
    first = zoo.analysis.kernels[0]
    lines = tab.texts("#tip div")
    assert lines[0] == f"1  {printable(first.short_name, 90)}"
    assert format_si(first.flop_per_s, "FLOP/s") in lines[2]
    assert tab.js("mansard.plots.roofline.rows[mansard.plots.roofline.hover].place") == 0
    tab.page.mouse.move(5, 5)
    assert not tab.page.locator("#tip").is_visible()


def test_a_click_on_a_marker_opens_the_kernel(open_page, zoo):
    tab = open_page(zoo)
    tab.page.locator(CANVAS).scroll_into_view_if_needed()
    tab.page.mouse.click(*tab.js(PIXEL, 3))
    kernel = zoo.analysis.kernels[3]
    assert tab.texts("#kernel h2") == ["Kernel 4"]
    assert tab.texts("#kernel .name") == [printable(kernel.key, 4000)]
    floors = dict(
        zip(
            tab.texts("#kernel .bars tbody th"),
            tab.texts("#kernel .bars tbody td:nth-child(3)"),
            strict=True,
        )
    )
    assert floors["measured"] == format_si(kernel.duration_s, "s")
    assert floors["tensor"] == format_si(kernel.floors_s["tensor"], "s")
    assert floors["DRAM"] == format_si(kernel.floors_s["dram"], "s")
    assert tab.page.url.endswith("#select=4")


def test_the_numbers_of_a_kernel_say_what_they_count(open_page, zoo):
    tab = open_page(zoo, "#select=2")
    definition = zoo.analysis.provenance[0].definitions["bytes_dram"]
    rows = tab.js(
        "[...document.querySelectorAll('#kernel details tbody tr')].map((row) => [...row.cells].map((cell) => cell.textContent))"
    )
    dram = next(row for row in rows if row[0] == "DRAM")
    assert dram[1].startswith(format_si(zoo.analysis.kernels[1].bytes_by_level["dram"], "B"))
    assert dram[2].startswith(definition.formula)


def test_levels_and_compute_roofs_can_be_switched_off(open_page, zoo):
    tab = open_page(zoo)
    count = "mansard.plots.roofline.marks.count"
    before = tab.js(count)
    tab.page.click("#roofline [data-name=l1]")
    assert tab.page.locator("#roofline [data-name=l1]").get_attribute("aria-pressed") == "false"
    with_l1 = sum(
        1 for kernel in zoo.analysis.kernels if kernel.flop_per_s and kernel.intensity["l1"]
    )
    assert before - tab.js(count) == with_l1
    tab.page.click("#roofline [data-name='tensor fp8']")
    assert not tab.js("mansard.plots.roofline.view.paths.has('tensor fp8')")


@pytest.mark.parametrize("report", ["deepcam", "ranks_report"])
def test_each_link_of_the_summary_shows_as_many_kernels_as_it_says(open_page, report, request):
    report = request.getfixturevalue(report)
    tab = open_page(report)
    links = tab.page.locator(".sentences a.filter")
    counted = 0
    for place in range(links.count()):
        links.nth(place).dispatch_event("click")
        said = re.search(r"(\d+) kernels?", links.nth(place).text_content())
        shown = tab.js("mansard.rows().length")
        assert shown > 0
        if said:
            counted += 1
            assert shown == int(said[1])
    assert counted


def test_filters_narrow_and_clear_restores(open_page, zoo):
    tab = open_page(zoo)
    tab.page.fill("[name=q]", "vectorized FUNCTOR")
    wanted = [
        k
        for k in zoo.analysis.kernels
        if {"vectorized", "functor"} <= set(re.findall("vectorized|functor", k.key.lower()))
    ]
    assert tab.js("mansard.rows().length") == len(wanted) > 0
    assert tab.texts("#count")[0].startswith(f"{len(wanted)} of 21 kernels")
    tab.page.select_option("[name=family]", "gemm")
    assert tab.js("mansard.rows().every((row) => row.family === 'gemm')")
    tab.page.click("text=Clear")
    assert tab.texts("#count") == ["all 21 kernels"]


def test_a_phase_shows_what_the_kernels_did_in_it(open_page, ranks_report):
    tab = open_page(ranks_report, "#phase=forward")
    forward = next(group for group in ranks_report.analysis.phases if group.key == "forward")
    assert tab.js("mansard.rows().reduce((sum, row) => sum + row.launches, 0)") == forward.launches
    assert tab.js("mansard.rows().reduce((sum, row) => sum + row.duration_s, 0)") == pytest.approx(
        forward.duration_s
    )
    tab.js("mansard.update({ rank: '1' })")
    assert tab.js("mansard.rows().reduce((sum, row) => sum + row.launches, 0)") == 120
    assert tab.js("mansard.rows().every((row) => row.phase === 'forward' && row.rank === 1)")


def test_a_kernel_that_runs_in_one_phase_only_is_filtered_whole(open_page, zoo):
    sort = next(group for group in zoo.analysis.phases if group.key == "sort")
    tab = open_page(zoo, "#phase=sort")
    assert tab.js("mansard.rows().length") == sort.kernels
    assert tab.js("mansard.rows().reduce((sum, row) => sum + row.duration_s, 0)") == pytest.approx(
        sort.duration_s
    )


def test_a_head_sorts_the_table_both_ways_and_unknown_values_stay_last(open_page, ranks_report):
    tab = open_page(ranks_report)
    head = tab.page.locator("#table thead button", has_text="L2")
    known = [
        k.intensity["l2"] for k in ranks_report.analysis.kernels if k.intensity["l2"] is not None
    ]
    head.click()
    assert tab.js("mansard.rows().map((row) => row.intensity.l2)") == [
        *sorted(known, reverse=True),
        None,
    ]
    head.click()
    assert tab.js("mansard.rows().map((row) => row.intensity.l2)") == [*sorted(known), None]
    assert tab.page.locator("#table th[aria-sort=ascending]").count() == 1
    head.click()
    assert tab.js("mansard.rows().map((row) => row.place)") == list(range(12))


def test_the_csv_button_hands_over_the_filtered_rows(open_page, zoo):
    tab = open_page(zoo, "#family=gemm&sort=name:up")
    with tab.page.expect_download() as download:
        tab.page.click("#export-csv")
    assert download.value.suggested_filename == "h200-zoo-kernel.csv"
    text = download.value.path().read_text(encoding="utf-8")
    rows = list(csv.DictReader(io.StringIO(text)))
    names = [kernel.key for kernel in zoo.analysis.kernels if kernel.family == "gemm"]
    assert sorted(row["name"] for row in rows) == sorted(names)
    assert [row["short_name"].lower() for row in rows] == sorted(
        row["short_name"].lower() for row in rows
    )


def test_the_wheel_zooms_a_chart_that_has_the_focus_and_scrolls_the_page_otherwise(open_page, zoo):
    tab = open_page(zoo)
    scale = "mansard.plots.roofline.transform.k"
    tab.page.locator(CANVAS).scroll_into_view_if_needed()
    x, y = tab.js(PIXEL, 1)
    tab.page.mouse.move(x, y)
    tab.page.mouse.wheel(0, -100)
    tab.page.wait_for_timeout(50)
    assert tab.js(scale) == 1
    tab.page.locator(CANVAS).focus()
    x, y = tab.js(PIXEL, 1)
    tab.page.mouse.move(x, y)
    tab.page.mouse.wheel(0, -300)
    tab.page.wait_for_timeout(100)
    assert tab.js(scale) > 1
    # The kernel under the pointer stays there.
    assert tab.js(PIXEL, 1) == pytest.approx([x, y], abs=1)
    tab.page.click("#roofline .reset")
    assert tab.js(scale) == 1


def test_shift_and_drag_zooms_into_the_box(open_page, zoo):
    tab = open_page(zoo)
    tab.page.locator(CANVAS).scroll_into_view_if_needed()
    x, y = tab.js(PIXEL, 1)
    tab.page.keyboard.down("Shift")
    tab.page.mouse.move(x - 40, y - 30)
    tab.page.mouse.down()
    tab.page.mouse.move(x + 40, y + 30, steps=4)
    tab.page.mouse.up()
    tab.page.keyboard.up("Shift")
    assert tab.js("mansard.plots.roofline.transform.k") > 4
    area = tab.js("mansard.plots.roofline.area")
    box = tab.js(
        "(() => { const b = mansard.plots.roofline.over.getBoundingClientRect(); return [b.left, b.top]; })()"
    )
    middle = [
        box[0] + (area["left"] + area["right"]) / 2,
        box[1] + (area["top"] + area["bottom"]) / 2,
    ]
    assert tab.js(PIXEL, 1) == pytest.approx(middle, abs=2)


def test_the_keyboard_reaches_everything_of_a_chart(open_page, zoo):
    tab = open_page(zoo)
    tab.page.locator(CANVAS).focus()
    tab.page.keyboard.press("+")
    assert tab.js("mansard.plots.roofline.transform.k") == pytest.approx(1.4)
    before = tab.js("mansard.plots.roofline.transform.x")
    tab.page.keyboard.press("ArrowRight")
    assert tab.js("mansard.plots.roofline.transform.x") < before
    tab.page.keyboard.press("0")
    assert tab.js("mansard.plots.roofline.transform.k") == 1
    tab.page.keyboard.press("n")
    assert tab.texts("#say")[0].startswith(
        f"1  {printable(zoo.analysis.kernels[0].short_name, 90)}"
    )
    tab.page.keyboard.press("n")
    tab.page.keyboard.press("Enter")
    assert tab.texts("#kernel h2") == ["Kernel 2"]
    tab.page.keyboard.press("Escape")
    assert tab.texts("#kernel h2") == ["Kernel"]


@pytest.mark.parametrize("width", [360, 1300, 2560])
def test_numbers_on_the_charts_never_overlap_and_nothing_is_wider_than_the_window(
    open_page, deepcam, width
):
    tab = open_page(deepcam, width=width, height=900)
    tab.page.wait_for_timeout(100)
    for chart in ("roofline", "time"):
        boxes = tab.js(f"mansard.plots.{chart}.view.labels.map((label) => label.box)")
        assert len(boxes) >= (5 if width < 500 else 25)
        for place, one in enumerate(boxes):
            for other in boxes[place + 1 :]:
                apart_x = abs(one["x"] - other["x"]) * 2 >= one["width"] + other["width"]
                apart_y = abs(one["y"] - other["y"]) * 2 >= one["height"] + other["height"]
                assert apart_x or apart_y
    assert tab.js("document.documentElement.scrollWidth") == width


def test_the_axes_come_from_the_machine_and_not_from_the_kernels(open_page, zoo):
    tab = open_page(zoo)
    whole = tab.js("mansard.plots.roofline.x0.domain()")
    tab.js("mansard.update({ family: 'gemm' })")
    assert tab.js("mansard.plots.roofline.x0.domain()") == whole


def test_kernels_without_flop_stand_on_the_strip_of_the_time_chart(open_page, zoo):
    tab = open_page(zoo, "#is=zero")
    assert tab.js("mansard.plots.roofline.marks.count") == 0
    low = tab.js(
        """(() => {
          const { marks, area, rows } = mansard.plots.time;
          const below = new Set();
          for (let mark = 0; mark < marks.count; mark += 1) {
            if (mansard.plots.time.at(mark)[1] > area.bottom) below.add(rows[marks.row[mark]].name);
          }
          return [...below];
        })()"""
    )
    # Integer work takes time of a pipe: such a kernel has a height.
    assert set(low) == {
        kernel.key for kernel in zoo.analysis.kernels if kernel.flop == 0 and not kernel.op_int
    }


def test_the_time_line_names_the_gaps(open_page, ranks_report):
    tab = open_page(ranks_report)
    assert tab.page.locator("#strip").is_visible()
    assert tab.texts("#strip p")[0].startswith("240 launches of rank 0, step 0 in ")
    lengths = tab.texts("#strip tbody td:nth-child(2)")
    # Five pauses of 100 us were put in, one before every 40th launch but the first.
    assert [text.startswith(("100 us", "10")) for text in lengths[:5]] == [True] * 5
    assert len(lengths) == 20


def test_the_time_line_has_a_named_row_for_each_family_of_each_stream(
    open_page, ranks_report, step
):
    rows = open_page(step).js("mansard.strip.rows")
    time = {}
    for kernel in step.analysis.kernels:
        time[kernel.family] = time.get(kernel.family, 0.0) + kernel.duration_s
    longest = sorted(time, key=time.get, reverse=True)[:7]
    assert [row["label"] for row in rows if row["label"] != "all others"] == longest
    # Two streams: each has a head, and the families that run there.
    rows = open_page(ranks_report).js("mansard.strip.rows")
    assert [row["head"] for row in rows if "head" in row] == ["stream 7", "stream 8"]
    assert {row["label"] for row in rows if "label" in row} == {
        kernel.family for kernel in ranks_report.analysis.kernels
    }


def test_a_page_without_start_times_shows_no_time_line(open_page, zoo):
    assert not open_page(zoo).page.locator("#strip").is_visible()


def test_operators_and_ranks_stand_in_the_panel(open_page, ranks_report):
    place = next(
        place
        for place, kernel in enumerate(ranks_report.analysis.kernels, start=1)
        if kernel.key == "plain_kernel_11"
    )
    tab = open_page(ranks_report, f"#select={place}")
    assert "aten::op11 <b> in model.layer: 40 launches" in tab.texts("#kernel li")[0]
    assert {"0", "1", "forward", "backward </script>"} <= set(tab.texts("#kernel .bars th button"))


def test_both_themes_can_be_chosen_and_the_system_decides_otherwise(open_page, zoo):
    tab = open_page(zoo, color_scheme="dark")
    ground = "getComputedStyle(document.body).backgroundColor"
    dark = tab.js(ground)
    tab.page.click("#theme")
    assert tab.js(ground) == "rgb(255, 255, 255)"
    tab.page.click("#theme")
    assert tab.js(ground) == dark != "rgb(255, 255, 255)"


def test_the_time_goes_by_bound_family_phase_and_rank(open_page, ranks_report):
    tab = open_page(ranks_report)
    tab.page.select_option("#overview-by", "rank")
    ranks = ranks_report.analysis.ranks
    assert tab.texts("#overview tbody td:nth-child(3)") == [
        format_si(r.duration_s, "s") for r in ranks
    ]
    tab.page.click("#overview tbody button >> nth=1")
    assert tab.js("mansard.state.rank") == "1"


def test_a_view_is_kept_in_the_address(open_page, zoo):
    places = "mansard.rows().map((row) => row.place)"
    tab = open_page(zoo)
    tab.page.select_option("[name=family]", "gemm")
    tab.page.click("#table thead button:has-text('eff.')")
    seen = tab.js(places)
    assert seen != sorted(seen)
    assert open_page(zoo, "#" + tab.page.url.split("#")[1]).js(places) == seen


def test_paper_gets_light_charts_and_the_screen_its_own_back(open_page, zoo):
    tab = open_page(zoo, color_scheme="dark")
    printed = tab.page.pdf(format="A4", print_background=True)
    assert printed.startswith(b"%PDF-")
    tab.page.wait_for_timeout(50)
    assert tab.js("document.documentElement.dataset.theme") == ""
    assert not tab.js("document.querySelector('#warnings').open")
    assert tab.js("mansard.plots.roofline.scale") == tab.js("devicePixelRatio")


def test_without_a_script_the_summary_and_the_origin_can_be_read(browser, zoo):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(zoo.path.as_uri())
    assert "on the GPU, in 24 launches of 21 kernels." in page.locator("ul.sentences").inner_text()
    assert "need JavaScript" in page.locator("noscript").inner_text()
    context.close()
