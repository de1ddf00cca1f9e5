"""The page and the picture of a comparison, and the page of machines, without a browser."""

import base64
import dataclasses
import hashlib
import io
import json
import re
from html.parser import HTMLParser

import msgspec
import pytest

from mansard.bench.fleet import compare as compare_machines
from mansard.charts.change_text import speed_text
from mansard.charts.changes_scene import changes_scene
from mansard.charts.compare_files import comparison_dict
from mansard.charts.page import changes_data, comparisons_page, machines_page
from mansard.charts.page.changes_data import comparisons_data
from mansard.charts.static import changes_figure, save_figure
from mansard.errors import UsageError
from mansard.model.comparison import Change, Comparison, Difference
from mansard.model.device import DeviceFacts
from mansard.model.machine import Ceiling, Machine
from mansard.model.notice import Notice
from mansard.model.provenance import Provenance

HOSTILE = '</script><script>alert(1)</script><img src=x onerror="alert(1)">\u202e\udc80'


def row(key, a, b, **more):
    time = {"noise": 0.02, "repeats": "steps and ranks", "verdict": "changed"} | more
    names = {"names_a": () if a == 0 else (key,), "names_b": () if b == 0 else (key,)}
    return Difference(
        key=key,
        short_name=key,
        **names,
        changes={
            "gpu_time": Change(metric="gpu_time", a=a, b=b, **time),
            "flop": Change(metric="flop", a=1e9, b=2e9, verdict="changed"),
            "bytes_l2": Change(metric="bytes_l2", a=None, b=None),
            "launches": Change(metric="launches", a=8, b=6, verdict="changed"),
        },
    )


def comparison(*rows, **more):
    totals = row(None, 0.1, 0.08).changes
    step = Change(metric="step_time", a=None, b=None)
    origin = Provenance(devices=(DeviceFacts(name="NVIDIA H200"),), clock_control="none")
    values = {
        "label_a": "before",
        "label_b": "after",
        "by": "kernel",
        "totals": Difference(key=None, changes={"step_time": step, **totals}),
        "rows": rows,
        "repeats_a": 5,
        "repeats_b": 5,
        "provenance_a": (origin,),
        "provenance_b": (msgspec.structs.replace(origin, clock_control="base"),),
    }
    return Comparison(**(values | more))


class Elements(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


def payload(page):
    return json.loads(re.search(r'id="data" data-encoding="json">(.*?)</script>', page)[1])


class TestPage:
    """One offline file."""

    def test_only_its_own_script_and_style_may_run(self):
        page = comparisons_page([(comparison(row("k", 1.0, 2.0)),)])
        policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1]
        assert policy.startswith("default-src 'none'; ")
        for kind in ("script", "style"):
            inline = re.findall(rf"<{kind}>(.*?)</{kind}>", page, re.DOTALL)
            digests = [hashlib.sha256(text.encode()).digest() for text in inline]
            hashes = {f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests}
            assert set(re.search(rf"{kind}-src ([^;]*)", policy)[1].split()) == hashes
            assert len(inline) == 1

    def test_it_asks_for_nothing(self):
        page = comparisons_page([(comparison(row("k", 1.0, 2.0)),)])
        assert "://" not in page
        for _, attributes in Elements(page).found:
            assert not {"src", "srcset", "action", "style", "onclick"} & attributes.keys()
            assert (attributes.get("href") or "#").startswith("#")

    def test_hostile_text_is_text_everywhere(self):
        hostile = comparison(
            row(HOSTILE, 1.0, 2.0),
            label_a=HOSTILE,
            label_b=HOSTILE,
            unlike=(HOSTILE,),
            notices=(Notice(HOSTILE, HOSTILE),),
            provenance_a=(Provenance(sources=(HOSTILE,), collector=HOSTILE),),
        )
        families = dataclasses.replace(hostile, by="family")
        page = comparisons_page([(hostile, families), (hostile, families)])
        page.encode()
        tags = [tag for tag, _ in Elements(page).found]
        assert "img" not in tags
        assert tags.count("script") == 2
        key = payload(page)["pairs"][0]["kernel"]["rows"]["same"]["key"]
        assert key == HOSTILE.replace("\udc80", "?")

    def test_conditions_that_differ_are_told(self):
        found = comparison(row("k", 1.0, 2.0), unlike=("clock control: none against base",))
        page = comparisons_page([(found,)])
        assert "Not recorded alike" in page
        assert re.search(r"clock control</th><td>none</td><td>base</td><td><strong>unlike", page)
        assert re.search(r"GPU</th><td>NVIDIA H200</td><td>NVIDIA H200</td><td>alike", page)
        assert re.search(
            r"driver</th><td>not recorded</td><td>not recorded</td><td>not known", page
        )

    def test_every_number_of_the_json_is_in_it(self):
        found = comparison(row("k", 1.0, 2.0), row("new", 0.0, 1 / 3), row("gone", 1e-9, 0.0))
        data = comparisons_data([(found,)])["pairs"][0]["kernel"]
        report = comparison_dict(found)
        rows = report.pop("rows")
        assert data["report"] == report
        columns = data["rows"]["columns"] | {
            name: [value] * 3 for name, value in data["rows"]["same"].items()
        }
        for metric in ("gpu_time", "flop", "launches"):
            for number in ("a", "b", "relative", "noise"):
                own = columns[f"{metric}.{number}"]
                assert own == [one["changes"][metric][number] for one in rows]
        assert data["metrics"] == ["gpu_time", "flop", "launches"]
        # One name on both sides is written once.
        assert data["names"] == [None, [[], ["new"]], [["gone"], []]]

    def test_more_rows_than_it_holds_are_told(self, monkeypatch):
        monkeypatch.setattr(changes_data, "MOST_ROWS", 2)
        rows = [row(f"k{n}", 1.0, 2.0 + n) for n in range(5)]
        table = comparisons_data([(comparison(*rows),)])["pairs"][0]["kernel"]
        assert (table["rows"]["rows"], table["left_out"]) == (2, 3)

    def test_the_same_comparison_gives_the_same_page(self):
        found = comparison(row("k", 1.0, 2.0))
        assert comparisons_page([(found,)]) == comparisons_page([(found,)])

    def test_nothing_to_show_is_told(self):
        with pytest.raises(UsageError, match="no comparison"):
            comparisons_page([])
        assert "No row has a known difference" in comparisons_page([(comparison(),)])

    def test_every_control_has_a_name_and_there_is_one_h1(self):
        page = comparisons_page([(comparison(row("k", 1.0, 2.0)),)])
        found = Elements(page).found
        for tag, attributes in found:
            if tag in ("select", "input"):
                assert re.search(rf"<label[^>]*>[^<]+<{tag} [^>]*\"{attributes['name']}\"", page)
        assert [tag for tag, _ in found].count("h1") == 1
        assert [tag for tag, _ in found].count("main") == 1


class TestScene:
    """What the chart shows."""

    def test_the_largest_differences_with_their_noise(self):
        scene = changes_scene(comparison(row("slow", 1.0, 2.0), row("fast", 2.0, 1.5)))
        assert [bar.name for bar in scene.bars] == ["slow", "fast"]
        assert [bar.moved_s for bar in scene.bars] == [1.0, -0.5]
        # 2 % of 1 s and of 2 s
        assert [bar.noise_s for bar in scene.bars] == pytest.approx([0.02, 0.04])
        assert scene.longest_s == 2.0
        assert scene.reach_s == pytest.approx((0.54, 1.02))

    def test_what_has_no_bar_is_counted(self):
        rows = [row(f"k{n}", 1.0, 3.0 - n / 100) for n in range(20)]
        unknown = row("unknown", None, 1.0, verdict="unknown", noise=None)
        scene = changes_scene(comparison(*rows, unknown, row("same", 1.0, 1.0)))
        assert len(scene.bars) == 15
        # 3 - 0.15 - 1 to 3 - 0.19 - 1: five of 1.83 s on average
        assert any("5 more moved 9.15 s in all" in note for note in scene.notes)
        assert any("Of 1 row a time is unknown" in note for note in scene.notes)

    def test_a_change_that_is_none_is_not_sure(self):
        (bar,) = changes_scene(comparison(row("k", 1.0, 1.01, verdict="within noise"))).bars
        assert not bar.sure
        assert bar.change == "+1.0 % ~"

    def test_unlike_conditions_stand_below_the_picture(self):
        scene = changes_scene(comparison(row("k", 1.0, 2.0), unlike=("GPU: A against B",)))
        assert scene.notes[0] == "Not recorded alike: GPU: A against B."


class TestSpeed:
    """A time as a factor."""

    @pytest.mark.parametrize(
        ("a", "b", "said"),
        [
            (170.5, 104.2, "1.64x as fast"),
            (104.2, 200.0, "1.92x as long"),
            (1.0, 100.0, "100x as long"),
            (1.0, 0.96, ""),
            (1.0, 0.0, ""),
            (0.0, 1.0, ""),
            (None, 1.0, ""),
        ],
    )
    def test_the_factor(self, a, b, said):
        assert speed_text(Change(metric="gpu_time", a=a, b=b, verdict="changed")) == said

    def test_what_may_be_noise_gets_none(self):
        assert not speed_text(Change(metric="gpu_time", a=1.0, b=2.0, verdict="within noise"))
        assert speed_text(Change(metric="gpu_time", a=1.0, b=2.0, verdict="noise unknown"))


@pytest.mark.parametrize("kind", ["png", "svg", "pdf"])
def test_the_picture_is_written_and_repeats(kind):
    found = comparison(row(HOSTILE, 1.0, 2.0), row("fast", 2.0, 1.0), row("漢字", 0.0, 1.0))

    def drawn():
        stream = io.BytesIO()
        save_figure(changes_figure(found), stream, kind)
        return stream.getvalue()

    assert len(drawn()) > 5000
    assert drawn() == drawn()


def test_a_picture_of_nothing_says_so():
    stream = io.BytesIO()
    save_figure(changes_figure(comparison()), stream, "svg")
    assert b"no row has a known difference in time" in stream.getvalue()


def machine(name, bandwidth):
    ceilings = (
        Ceiling(kind="bandwidth", level="dram", access="read", value=bandwidth, unit="byte/s"),
        Ceiling(kind="launch", access="stream", value=4e-6, unit="s"),
    )
    return Machine(name=name, basis="measured", ceilings=ceilings)


class TestMachines:
    """Machines side by side."""

    def test_values_and_ratios(self):
        found = [machine("one", 4e12), machine("two", 3e12)]
        page = machines_page(found, compare_machines(found))
        cells = r"4\.00 TB/s</td><td class=\"n\">3\.00 TB/s</td><td class=\"n\">0\.750</td>"
        assert re.search(cells, page)
        assert "<h1>one and two</h1>" in page

    def test_it_runs_nothing_and_hostile_names_stay_text(self):
        found = [machine(HOSTILE, 4e12), machine("two", 3e12)]
        page = machines_page(found, compare_machines(found))
        page.encode()
        tags = [tag for tag, _ in Elements(page).found]
        assert "script" not in tags
        assert "img" not in tags
        assert "script-src 'none'" in page

    def test_no_machine_is_told(self):
        with pytest.raises(UsageError, match="no machine"):
            machines_page([], [])
