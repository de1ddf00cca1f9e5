"""The page of a comparison in a real browser: its figures, its filters, its keys, its safety."""

import json
import re

import pytest

from mansard.charts.change_text import change_text, marked, moved_text, noise_text, value_text
from mansard.charts.compare_files import comparison_dict
from mansard.charts.labels import printable

pytestmark = pytest.mark.slow

LINES = """[...document.querySelectorAll('section.rows tbody tr[data-place]')].map(
  (row) => [...row.cells].map((cell) => cell.textContent))"""


def show_all(tab):
    while tab.page.locator(".more button").is_visible():
        tab.page.click(".more button")


def test_every_figure_of_the_table_is_that_of_the_terminal(open_page, compared):
    kernels = compared.analysis[0]
    tab = open_page(compared)
    show_all(tab)
    found = tab.js(LINES)
    assert [line[0] for line in found] == [str(n) for n in range(1, len(kernels.rows) + 1)]
    expected = []
    for row in kernels.rows:
        time = row.changes["gpu_time"]
        texts = [value_text("gpu_time", time.a), value_text("gpu_time", time.b), marked(time)]
        expected.append([*texts, noise_text(time), moved_text(row)])
    assert [line[3:8] for line in found] == expected
    assert [line[8] for line in found] == [marked(row.changes["flop"]) for row in kernels.rows]


@pytest.mark.parametrize("place", [0, 1, 2], ids=["kernel", "family", "phase"])
def test_the_json_button_hands_over_the_json_of_the_command_line(open_page, compared, place):
    comparison = compared.analysis[place]
    tab = open_page(compared, f"#by={comparison.by}")
    assert json.loads(tab.js("mansard.json()")) == comparison_dict(comparison)


def test_the_json_button_writes_a_file_after_both_runs(open_page, compared):
    tab = open_page(compared)
    with tab.page.expect_download() as download:
        tab.page.click("#export-json")
    assert download.value.suggested_filename == "before-b--after-more.json"


def test_names_stay_text(open_page, compared):
    tab = open_page(compared)
    show_all(tab)
    assert tab.page.title() != "owned"
    names = [line[1] for line in tab.js(LINES)]
    assert any(name.startswith("<script>document.title") for name in names)
    assert tab.js("document.querySelectorAll('main img, main script, main b').length") == 0


def test_filters_narrow_and_clear_restores(open_page, compared):
    kernels = compared.analysis[0]
    tab = open_page(compared)
    assert tab.texts("#count")[0].startswith(f"all {len(kernels.rows)} rows, ")
    tab.page.fill("[name=q]", "plain GEMM_1")
    assert {line[1][:12] for line in tab.js(LINES)} == {"plain_gemm_1"}
    tab.page.click("#filters [type=reset]")
    tab.page.select_option("[name=matched]", "only b")
    assert [line[1] for line in tab.js(LINES)] == ["only_in_1.25"]
    tab.page.select_option("[name=matched]", "")
    tab.page.select_option("[name=verdict]", "changed")
    sure = sum(row.changes["gpu_time"].verdict == "changed" for row in kernels.rows)
    assert 0 < sure < len(kernels.rows)
    assert tab.js("mansard.rows().length") == sure
    tab.page.click("#filters [type=reset]")
    assert tab.js("mansard.rows().length") == len(kernels.rows)


def test_a_head_sorts_both_ways_and_new_rows_stand_last(open_page, compared):
    tab = open_page(compared)
    head = tab.page.locator("section.rows thead [data-key=change]")
    head.click()
    found = tab.js("mansard.rows().map((row) => row.gpu_time.relative)")
    assert found[-1] is None
    assert found[:-1] == sorted(found[:-1], reverse=True)
    head.click()
    found = tab.js("mansard.rows().map((row) => row.gpu_time.relative)")
    assert found[-1] is None
    assert found[:-1] == sorted(found[:-1])
    assert "sort=change" in tab.page.url


def test_a_row_opens_by_key_and_shows_names_and_every_quantity(open_page, compared):
    tab = open_page(compared)
    rows = compared.analysis[0].rows
    place, row = next((n, row) for n, row in enumerate(rows) if row.matched_by == "name")
    tab.page.locator("section.rows tbody button").nth(place).focus()
    tab.page.keyboard.press("Enter")
    names = tab.texts(".opened dd")
    assert names == [printable(name, 1000) for name in (*row.names_a, *row.names_b)]
    lines = tab.js(
        "[...document.querySelectorAll('.opened table tbody tr')].map((line) => [...line.cells].map((cell) => cell.textContent))"
    )
    by_word = {line[0]: line[1:] for line in lines}
    dram = row.changes["bytes_dram"]
    assert by_word["DRAM bytes"][0] == value_text("bytes_dram", dram.a)
    assert by_word["GPU time"][2] == marked(row.changes["gpu_time"])
    # The pressed button was made anew and keeps the focus, so that the same key closes the row.
    tab.page.keyboard.press("Enter")
    assert tab.page.locator(".opened").count() == 0


def test_families_and_phases_stand_there_and_can_be_the_rows(open_page, compared):
    tab = open_page(compared)
    phases = compared.analysis[2]
    shown = tab.texts("table.groups tbody th")
    assert [printable(row.key) for row in phases.rows] == shown[-len(phases.rows) :]
    tab.page.select_option("[name=by]", "phase")
    assert [line[1] for line in tab.js(LINES)] == [printable(row.key) for row in phases.rows]
    assert tab.texts("section.rows h2") == ["Phases"]


def test_totals_have_their_noise(open_page, compared):
    totals = compared.analysis[0].totals.changes
    tab = open_page(compared)
    lines = tab.js(
        "[...document.querySelectorAll('table.totals tbody tr')].map((line) => [...line.cells].map((cell) => cell.textContent))"
    )
    by_word = {line[0]: line[1:] for line in lines}
    time = totals["gpu_time"]
    assert by_word["GPU time"][3] == noise_text(time)
    assert re.fullmatch(r"± [<\d.]+ %", by_word["GPU time"][3])
    assert by_word["GPU time"][4] == "4 and 4 steps and ranks"
    assert by_word["launches"][2] == change_text(totals["launches"])


@pytest.mark.parametrize("width", [360, 768, 1300, 2560])
def test_nothing_is_wider_than_the_window(open_page, compared, width):
    tab = open_page(compared, "#select=1.1", width=width)
    assert tab.js("document.documentElement.scrollWidth <= innerWidth")


def test_bars_go_to_the_side_of_their_sign(open_page, compared):
    tab = open_page(compared)
    bars = tab.js("""[...document.querySelectorAll('.moves tbody tr')].map((line) => {
      const bar = line.querySelector('.longer, .shorter').getBBox();
      const zero = Number(line.querySelector('.zero').getAttribute('x1'));
      return [bar.x + bar.width / 2 > zero, line.cells[6].textContent[0], bar.width];
    })""")
    assert bars
    assert all(right == (sign == "+") for right, sign, _ in bars)
    widths = [width for *_, width in bars]
    assert widths == sorted(widths, reverse=True)


def test_both_themes_can_be_chosen(open_page, compared):
    tab = open_page(compared, color_scheme="dark")
    ground = "getComputedStyle(document.body).backgroundColor"
    assert tab.js(ground) == "rgb(22, 24, 28)"
    tab.page.click("#theme")
    assert tab.js(ground) == "rgb(255, 255, 255)"


def test_paper_gets_the_light_theme(open_page, compared):
    tab = open_page(compared, color_scheme="dark")
    tab.js("dispatchEvent(new Event('beforeprint'))")
    assert tab.js("document.documentElement.dataset.theme") == "light"
    tab.js("dispatchEvent(new Event('afterprint'))")
    assert tab.js("document.documentElement.dataset.theme") == ""


def test_without_a_script_all_but_the_table_can_be_read(browser, compared):
    context = browser.new_context(java_script_enabled=False)
    try:
        page = context.new_page()
        page.goto(compared.path.as_uri())
        assert "GPU time" in page.locator("table.totals").text_content()
        assert page.locator(".moves tbody tr").count() == 15
        assert page.locator("noscript").is_visible()
    finally:
        context.close()
