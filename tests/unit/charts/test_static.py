"""The pictures themselves: files, texts that do not overlap, nothing of the user's changed."""

import functools
import io
import itertools
import struct
import subprocess
import sys

import matplotlib as mpl
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Text

import mansard.charts as charts
from mansard.charts import static
from mansard.charts.canvas import LEVEL_STYLE, RESOURCE_STYLE
from mansard.errors import UsageError
from mansard.model.machine import Machine

pytestmark = pytest.mark.slow

FIGURES = {
    "roofline": static.roofline_figure,
    "floors": static.floors_figure,
    "time": static.time_figure,
}


@pytest.fixture(name="drawn", scope="module")
def drawn_once(v100, v100_two_phases, h200):
    """Figures of the recorded runs, each drawn once; no test changes them."""
    runs = {"v100": v100, "v100_two_phases": v100_two_phases, "h200": h200}
    return functools.cache(lambda name, figure: FIGURES[figure](runs[name]))


def saved(figure, form):
    stream = io.BytesIO()
    static.save_figure(figure, stream, form)
    return stream.getvalue()


def boxes(figure):
    """Every visible, unrotated text with its rectangle in pixels."""
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw_without_rendering()
    found = []
    for text in figure.findobj(Text):
        if text.get_visible() and text.get_text().strip() and text.get_rotation() == 0:
            axes = text.axes
            if axes is None or axes.axison or text in axes.texts:
                found.append((text.get_text(), text.get_window_extent(renderer)))
    return found


def overlaps(figure):
    # Half a pixel is rounding.
    return [
        (one, other)
        for (one, a), (other, b) in itertools.combinations(boxes(figure), 2)
        if min(a.x1, b.x1) - max(a.x0, b.x0) > 0.5 and min(a.y1, b.y1) - max(a.y0, b.y0) > 0.5
    ]


def outside(figure):
    width, height = figure.get_size_inches() * figure.dpi
    return [
        text
        for text, box in boxes(figure)
        if box.x0 < 0 or box.y0 < 0 or box.x1 > width or box.y1 > height
    ]


def hostile_analysis(make_analysis, make_kernel, machine, count=40):
    kernels = [
        make_kernel(
            f"void kernel_{n}<" + "W" * 600 + ">",
            short_name=f"$\\frac{n}_^" + "W" * 600,
            duration_s=1e-3 - n * 1e-6,
            flop={"tensor bf16": 1e9 * (1 + n % 3)},
            moved={"l1": 1e8, "l2": 1e8, "dram": 1e7 * (1 + n % 2)},
            machine=machine,
        )
        for n in range(count)
    ]
    return make_analysis(kernels, machine=machine, label="$x^" + "L" * 600)


@pytest.mark.parametrize("figure", FIGURES)
@pytest.mark.parametrize("name", ["v100", "h200"])
def test_no_two_texts_overlap_or_leave_the_figure(figure, name, drawn):
    assert overlaps(drawn(name, figure)) == []
    assert outside(drawn(name, figure)) == []


@pytest.mark.parametrize("figure", FIGURES)
def test_forty_kernels_with_names_of_600_letters_do_not_overlap_or_leave_the_figure(
    figure, make_analysis, make_kernel, h200_machine
):
    drawn = FIGURES[figure](hostile_analysis(make_analysis, make_kernel, h200_machine))
    assert overlaps(drawn) == []
    assert outside(drawn) == []


def test_the_key_of_forty_kernels_is_complete(make_analysis, make_kernel, h200_machine):
    analysis = hostile_analysis(make_analysis, make_kernel, h200_machine)
    drawn = static.roofline_figure(analysis)
    texts = [text.get_text() for text in drawn.findobj(Text)]
    for number in range(1, 41):
        # Once in the key, once on the chart.
        assert texts.count(str(number)) >= 2, number


def test_the_overlap_check_can_fail(small):
    drawn = static.floors_figure(small)
    drawn.text(0.5, 0.5, "one")
    drawn.text(0.5, 0.5, "two")
    assert ("one", "two") in overlaps(drawn)


def test_same_machine_same_axes(drawn):
    one, other = (drawn(name, "roofline").axes[0] for name in ("v100", "v100_two_phases"))
    assert one.get_xlim() == other.get_xlim() == (0.01, 10000.0)
    assert one.get_ylim() == other.get_ylim()


def test_a_png_has_the_size_of_its_figure(drawn):
    data = saved(drawn("h200", "roofline"), "png")
    assert data.startswith(b"\x89PNG")
    assert struct.unpack(">II", data[16:24]) == (2520, 1440)
    assert 30_000 < len(data) < 1_000_000


def test_text_in_an_svg_is_text(drawn):
    svg = saved(drawn("h200", "roofline"), "svg").decode()
    assert "cunn_SoftMaxForwardReg" in svg
    assert "TFLOP/s" in svg
    assert len(svg) < 1_000_000


def test_fonts_in_a_pdf_are_embedded_as_truetype(small):
    pdf = saved(static.roofline_figure(small), "pdf")
    assert pdf.startswith(b"%PDF")
    assert b"/FontFile2" in pdf
    assert b"/Type3" not in pdf


@pytest.fixture(name="small")
def small_analysis(make_analysis, make_kernel, h200_machine):
    kernels = [
        make_kernel(f"k{n}", flop={"tensor bf16": 1e9}, moved={"dram": 1e6}, machine=h200_machine)
        for n in range(2)
    ]
    return make_analysis(kernels, machine=h200_machine)


@pytest.mark.parametrize("form", ["png", "svg", "pdf"])
def test_the_same_analysis_gives_the_same_bytes_without_a_date(form, small):
    data = saved(static.floors_figure(small), form)
    assert data == saved(static.floors_figure(small), form)
    for mark in (b"CreationDate", b"ModDate", b"<dc:date>", b"tIME"):
        assert mark not in data


def test_other_formats_are_refused_with_the_choices(drawn):
    with pytest.raises(UsageError, match="no picture format 'gif': choose one of png, svg, pdf"):
        static.save_figure(drawn("h200", "floors"), io.BytesIO(), "gif")


def test_the_users_settings_are_left_alone_and_change_nothing(small):
    plain = saved(static.floors_figure(small), "svg")
    with mpl.rc_context({"axes.facecolor": "black", "font.size": 30, "lines.linewidth": 9}):
        before = dict(mpl.rcParams)
        assert saved(static.floors_figure(small), "svg") == plain
        assert dict(mpl.rcParams) == before


def test_drawing_never_loads_pyplot():
    code = (
        "import sys, io\n"
        "from mansard.charts import machine_figure, save_figure\n"
        "from mansard.model.machine import Machine\n"
        "assert 'matplotlib' not in sys.modules\n"
        "save_figure(machine_figure(Machine(name='m', basis='measured')), io.BytesIO(), 'png')\n"
        "print('matplotlib.pyplot' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize("figure", FIGURES)
def test_hostile_letters_draw_without_a_warning(figure, make_analysis, make_kernel, h200_machine):
    # Warnings are errors here: a letter that the font lacks would raise one.
    names = ["\u6f22\u5b57 kernel", "\U0001f525", "\x1b[31m", "$\\alpha", "a_b^{", "", "\ud800"]
    kernels = [
        make_kernel(name, flop={"tensor bf16": 1e9}, moved={"dram": 1e6}, machine=h200_machine)
        for name in names
    ]
    analysis = make_analysis(kernels, machine=h200_machine, label="\u6f22$")
    assert saved(FIGURES[figure](analysis), "svg")


@pytest.mark.parametrize("figure", FIGURES)
def test_runs_with_nothing_to_show_still_give_a_picture(figure, make_analysis, make_kernel, h200):
    zero = make_kernel("z", flop={"tensor bf16": 0.0}, moved={"dram": 1e6})
    unknown = make_kernel("u", duration_s=None)
    for analysis in (
        make_analysis([]),
        make_analysis([zero, unknown]),
        make_analysis([zero, unknown], machine=h200.machine),
        make_analysis([zero], machine=Machine(name="m", basis="theoretical")),
    ):
        assert overlaps(FIGURES[figure](analysis)) == []


def test_levels_differ_by_shape_and_resources_by_hatching():
    assert len({marker for marker, _ in LEVEL_STYLE.values()}) == len(LEVEL_STYLE)
    assert len({hatch for _, hatch in RESOURCE_STYLE.values()}) == len(RESOURCE_STYLE)


def test_the_picture_says_where_it_comes_from(drawn):
    for figure in FIGURES:
        texts = " ".join(text.get_text() for text in drawn("h200", figure).findobj(Text))
        for fact in ("NVIDIA H200", "580.159.04", "Nsight Compute", "clock control none"):
            assert fact in texts
        assert "h200-sxm, measured" in texts


def test_one_machine(h200_machine):
    drawn = static.machine_figure(h200_machine)
    assert overlaps(drawn) == []
    assert saved(drawn, "png")
    texts = [text.get_text() for text in drawn.findobj(Text)]
    assert "measured: dram, tensor bf16" in texts
    assert "refused" in texts


def test_machines_side_by_side_share_their_axes(v100_machine, h200_machine):
    drawn = static.machines_figure([v100_machine, h200_machine])
    left, right = drawn.axes
    assert left.get_xlim() == right.get_xlim()
    assert left.get_ylim() == right.get_ylim() == (1e9, 1e16)
    assert overlaps(drawn) == []


@pytest.mark.parametrize("count", [0, 5])
def test_too_many_or_no_machines_are_refused(count, h200_machine):
    with pytest.raises(UsageError, match=f"cannot draw {count} machines"):
        static.machines_figure([h200_machine] * count)


def test_public_names_are_reached_lazily():
    for name in charts.__all__:
        assert callable(getattr(charts, name))
    assert dir(charts) == charts.__all__
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = charts.nothing
