"""The file as a whole: one page that loads nothing, runs only its own script, and shows text."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import pytest

from mansard.charts.page import Detail, page_html
from mansard.model.machine import Machine
from mansard.model.notice import Notice
from mansard.model.provenance import Definition, Provenance

HOSTILE = (
    "</script><script>alert(1)</script><img src=x onerror=alert(1)> \" ' & \n\r\u2028\u202e\x1b[31m"
)


class Elements(HTMLParser):
    """Collects elements with their attributes, and the text in each kind of element."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.found, self.open, self.text = [], [], {}

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        self.open.append(tag)

    def handle_endtag(self, tag):
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data):
        if self.open:
            self.text.setdefault(self.open[-1], []).append(data)


def parsed(page):
    elements = Elements()
    elements.feed(page)
    return elements


@pytest.fixture
def hostile(make_kernel, make_analysis):
    kernel = make_kernel(HOSTILE, short_name=HOSTILE, duration_s=1.0, flop={"vector fp32": 1e9})
    long = make_kernel("x" * 600 + "<b>", duration_s=0.5)
    lone = make_kernel("lone \ud800 surrogate", duration_s=0.2)
    origin = Provenance(
        collector=HOSTILE,
        sources=(HOSTILE,),
        definitions={HOSTILE: Definition(formula=HOSTILE, meaning=HOSTILE, source=HOSTILE)},
        missing={"bytes_l2": (HOSTILE,)},
        extra={HOSTILE: HOSTILE},
    )
    return make_analysis(
        [kernel, long, lone],
        label=HOSTILE,
        provenance=[origin],
        notices=[Notice(HOSTILE, HOSTILE)],
        phases={HOSTILE: [kernel], None: [long, lone]},
        machine=Machine(name=HOSTILE, basis="measured", caveats=(HOSTILE,)),
    )


def test_hostile_text_makes_no_element(hostile, make_kernel, make_analysis):
    mild = make_analysis([make_kernel(f"k{n}", duration_s=1.0) for n in range(3)])
    kinds = {tag for tag, _ in parsed(page_html(mild)).found}
    found = parsed(page_html(hostile)).found
    assert {tag for tag, _ in found} <= kinds | {"a", "li", "tr", "td", "code", "dt", "dd"}
    assert [tag for tag, _ in found].count("script") == 3
    assert not [name for _, attributes in found for name in attributes if name.startswith("on")]
    assert not [tag for tag, _ in found if tag in ("img", "iframe", "object", "base", "link")]


def test_hostile_text_is_shown_without_hidden_letters(hostile):
    shown = page_html(hostile).split('<script type="application/json"')[0]
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "\u2028" not in shown
    assert "&lt;/script&gt;&lt;script&gt;alert(1)" in shown


def test_names_come_back_from_the_data_letter_by_letter(hostile):
    page = page_html(hostile)
    inside = re.search(r'<script type="application/json"[^>]*>(.*?)</script>', page, re.DOTALL)[1]
    names = json.loads(inside)["names"]
    assert names[0] == HOSTILE
    assert names[2] == "x" * 600 + "<b>"
    assert names[4] == "lone ? surrogate"


def test_the_page_can_always_be_written_as_utf_8(hostile):
    page_html(hostile).encode()


def test_only_the_page_s_own_scripts_and_style_may_run(h200):
    page = page_html(h200)
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)[1]
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    for kind, directive in (("script", "script-src"), ("style", "style-src")):
        inline = re.findall(rf"<{kind}>(.*?)</{kind}>", page, re.DOTALL)
        hashes = {
            f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
            for text in inline
        }
        allowed = re.search(rf"{directive} ([^;]*)", policy)[1].split()
        assert set(allowed) == hashes
        assert len(inline) == (2 if kind == "script" else 1)


def test_the_page_names_no_address_of_the_network(h200):
    # d3 names its home and namespaces; they are not fetched.
    own = page_html(h200).split("// Parts of d3")[0]
    assert "http://" not in own
    assert "https://" not in own
    for _, attributes in parsed(page_html(h200)).found:
        assert not {"src", "srcset", "action", "data-src"} & attributes.keys()
        assert (attributes.get("href") or "#").startswith("#")


def test_the_same_analysis_gives_the_same_page(h200):
    assert page_html(h200) == page_html(h200)


def test_the_licence_of_d3_goes_with_it(h200):
    assert "Copyright 2010-2026 Mike Bostock, ISC licence" in page_html(h200)


def test_a_small_run_makes_a_small_page(h200):
    assert len(page_html(h200).encode()) < 300_000


def test_every_control_has_a_name(h200):
    elements = parsed(page_html(h200))
    page = page_html(h200)
    for tag, attributes in elements.found:
        if tag in ("select", "input"):
            name = attributes.get("name") or attributes["id"]
            assert re.search(rf"<label[^>]*>[^<]+<{tag} [^>]*\"{name}\"", page), name
    assert ("html", {"lang": "en"}) in elements.found
    assert len([tag for tag, _ in elements.found if tag == "h1"]) == 1
    assert len([tag for tag, _ in elements.found if tag == "main"]) == 1


def test_notices_conditions_and_definitions_stand_there_without_a_script(v100_two_phases):
    page = page_html(v100_two_phases, Detail()).split('<script type="application/json"')[0]
    assert "joined-by-name" in page
    assert "Tesla V100-SXM2-16GB" in page
    assert "<dt>cache control</dt><dd>all</dd>" in page
    assert "tensor fp16" in page


def test_refused_ceilings_are_listed_with_their_reason(h200):
    page = page_html(h200)
    row = next(r for r in re.findall(r"<tr>.*?</tr>", page) if "refused" in r)
    assert "<td>refused</td>" in row
    assert "this shape is emulated" in row
    assert "419" not in row


def test_a_run_without_anything_still_makes_a_page(make_analysis):
    page = page_html(make_analysis([]))
    assert "No machine is known" in page
