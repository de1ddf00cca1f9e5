"""Results in a notebook: escaped tables, and frames with the values of the report."""

import html.parser
import subprocess
import sys
import warnings

import msgspec
import pytest

from mansard.charts.csv_report import kernels_csv
from mansard.charts.notebook import analysis_html, comparison_html, kernels_frame, machine_html
from mansard.errors import UsageError
from mansard.model.comparison import Change, Comparison, Difference
from mansard.model.machine import Ceiling
from mansard.model.notice import Notice

HOSTILE = "k</td><script>alert(1)</script><img src=x onerror=y>\x1b[31m\u202e" + '"&'


class Reader(html.parser.HTMLParser):
    """Collects tags and texts, and whether every tag is closed in order."""

    def __init__(self):
        super().__init__()
        self.tags, self.texts, self._open = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self._open.append(tag)
        assert all(name == "style" for name, _ in attrs)

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)

    def close(self):
        super().close()
        assert self._open == []


def read(page):
    reader = Reader()
    reader.feed(page)
    reader.close()
    return reader


def compared(key="k", **more):
    time = Change(metric="gpu_time", a=2.0, b=1.0, noise=0.01, verdict="changed")
    step = Change(metric="step_time", a=None, b=None)
    values = {
        "label_a": "before",
        "label_b": "after",
        "by": "kernel",
        "totals": Difference(key=None, changes={"step_time": step, "gpu_time": time}),
        "rows": (Difference(key=key, changes={"gpu_time": time}),),
        "repeats_a": 3,
        "repeats_b": 3,
        "provenance_a": (),
        "provenance_b": (),
    }
    return Comparison(**(values | more))


def test_an_analysis_shows_its_totals_kernels_and_origin(h200):
    texts = read(analysis_html(h200)).texts
    joined = " ".join(texts)
    assert "operation zoo" in joined
    assert f"launches {h200.totals.launches}, kernels {h200.totals.kernels}" in joined
    assert "What to do first" in texts
    assert any(text.startswith("Run: GPU NVIDIA H200") for text in texts)
    assert h200.kernels[0].short_name in texts


def test_integer_work_is_shown_as_operations_and_marked(make_analysis, make_kernel):
    integer = make_kernel(
        "igemm", flop={"tensor int8": 2e9, "vector fp32": 0.0}, moved={"dram": 4e6}, duration_s=1e-3
    )
    texts = read(analysis_html(make_analysis([integer]))).texts
    # 2 G operations in 1 ms over 4 MB.
    assert {"2.00 T*", "500"} <= set(texts)
    assert any(text.startswith("*: only integer operations") for text in texts)


def test_at_most_fifteen_kernels_are_shown_and_the_rest_counted(v100_two_phases):
    page = read(analysis_html(v100_two_phases))
    assert page.tags.count("tr") == 16
    assert f"and {len(v100_two_phases.kernels) - 15} more kernels" in page.texts


@pytest.mark.parametrize("name", ["v100", "h200"])
def test_the_tables_are_whole(name, request):
    assert read(analysis_html(request.getfixturevalue(name))).tags[0] == "div"


def test_names_stay_text(make_analysis, make_kernel):
    notice = Notice("x", HOSTILE)
    kernel = make_kernel(HOSTILE, family="copy", flop={"vector fp32": 0.0})
    analysis = make_analysis([kernel], label=HOSTILE, notices=[notice])
    for page in (
        analysis_html(analysis),
        comparison_html(compared(HOSTILE, label_a=HOSTILE, unlike=(HOSTILE,), notices=(notice,))),
    ):
        tags = set(read(page).tags)
        assert tags <= {"div", "p", "b", "small", "ul", "li", "table", "thead", "tbody"} | {
            "tr",
            "th",
            "td",
        }
        assert "\x1b" not in page


def test_a_machine_shows_refused_ceilings_with_their_reason(h200_machine):
    texts = read(machine_html(h200_machine)).texts
    assert "refused" in texts
    assert "the machine code holds fp16 instructions: this shape is emulated" in texts
    assert "859 TFLOP/s" in texts
    hostile = msgspec.structs.replace(
        h200_machine,
        name=HOSTILE,
        ceilings=(Ceiling(kind="launch", value=None, unit="s", reason=HOSTILE),),
        caveats=(HOSTILE,),
    )
    assert "script" not in read(machine_html(hostile)).tags


def test_a_comparison_shows_its_headline_and_rows():
    texts = read(comparison_html(compared())).texts
    assert "before → after" in texts
    assert "GPU time 2.00 s → 1.00 s, -50.0 %, 2.00x as fast (noise ± 1.0 %)" in texts
    assert "-50.0 %" in texts


def test_installing_gives_the_values_their_representation_and_importing_does_not():
    code = (
        "from mansard.model.analysis import Analysis\n"
        "from mansard.model.machine import Machine\n"
        "from mansard.model.comparison import Comparison\n"
        "import mansard.charts.notebook as notebook\n"
        "kinds = (Analysis, Machine, Comparison)\n"
        "print([hasattr(kind, '_repr_html_') for kind in kinds])\n"
        "notebook.install(); notebook.install()\n"
        "print([hasattr(kind, '_repr_html_') for kind in kinds])\n"
        "print(Machine(name='m', basis='measured')._repr_html_()[:5])\n"
        "import sys; print([n for n in ('pandas', 'polars', 'duckdb', 'rich') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "[False, False, False]",
        "[True, True, True]",
        "<div>",
        "[]",
    ]


@pytest.mark.parametrize("kind", ["pandas", "polars", "duckdb"])
def test_a_frame_has_the_columns_and_values_of_the_csv(kind, h200):
    if kind != "duckdb":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pytest.importorskip(kind, reason=f"{kind} is not installed")
    frame = kernels_frame(h200, kind)
    header = kernels_csv(h200).splitlines()[0].split(",")
    assert list(frame.columns) == header
    place = header.index("duration_s")
    if kind == "duckdb":
        values = [row[place] for row in frame.fetchall()]
    else:
        values = list(frame["duration_s"])
    assert values == [kernel.duration_s for kernel in h200.kernels]


def test_unknown_is_null_in_a_frame(make_analysis, make_kernel):
    analysis = make_analysis([make_kernel("a", duration_s=None), make_kernel("k\ud800")])
    relation = kernels_frame(analysis, "duckdb")
    assert relation.filter("duration_s IS NULL").project("name").fetchall() == [("a",)]
    assert relation.aggregate("count(flop)").fetchall() == [(0,)]
    assert [name for (name,) in relation.project("name").fetchall()] == ["k?", "a"]


def test_frames_by_family(h200):
    relation = kernels_frame(h200, "duckdb", by="family")
    assert len(relation.fetchall()) == len(h200.families)


def test_frames_that_do_not_exist(h200):
    with pytest.raises(UsageError, match="no frame 'spark'"):
        kernels_frame(h200, "spark")
    with pytest.raises(UsageError, match="no rows by"):
        kernels_frame(h200, "duckdb", by="nothing")
