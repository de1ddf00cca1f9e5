"""The file of a cell."""

import pytest

from mansard.errors import FormatError, InputError
from mansard.study.cell import Folder, read_cell


def test_what_a_cell_found_comes_back_as_it_was(folder, cells, keep):
    record = keep(cells[0], run=None, energy_j=None, energy_reason="none")
    assert folder.load(cells[0].name) == record


def test_a_cell_that_has_not_run_is_not_there(folder, cells):
    assert folder.load(cells[0].name) is None


_LATER = (
    '{"schema": "mansard-study-cell/9", "name": "a", "title": "a", "configuration": {}, '
    '"preset": "paper", "state": "measured"}'
)
_UNKNOWN_STATE = _LATER.replace("/9", "/1").replace("measured", "happy")


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", '{"schema": "mansard-study-cell/1"}', _LATER, _UNKNOWN_STATE],
    ids=["empty", "list", "cut", "fields-missing", "later-version", "unknown-state"],
)
def test_a_file_that_is_no_cell_is_refused_with_its_name(tmp_path, text):
    file = tmp_path / "odd.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(FormatError, match=r"odd\.json"):
        read_cell(file)


_NUMBERS = (
    '"step_s": [-1.0]',
    '"energy_j": 1e300',
    '"analytic": [{"phase": null, "flop": 1e308}, {"phase": null, "flop": 1e308}]',
    '"layers": [{"name": "a", "kind": "b", "forward": 1e308, "backward": 0}]',
    '"seconds": {"build": -1}',
)


@pytest.mark.parametrize("number", _NUMBERS)
def test_numbers_that_cannot_be_are_refused_with_their_place(tmp_path, number):
    file = tmp_path / "odd.json"
    file.write_text(_LATER.replace("/9", "/1").replace("}, ", "}, " + number + ", ", 1))
    with pytest.raises(FormatError, match=r"odd\.json is no cell.*at `\$\."):
        read_cell(file)


def test_a_huge_file_is_refused_unread(tmp_path):
    file = tmp_path / "huge.json"
    with file.open("wb") as stream:
        stream.truncate(17 * 1024**2)
    with pytest.raises(FormatError, match="too large"):
        read_cell(file)


def test_a_folder_that_cannot_be_made_is_told(tmp_path):
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(InputError, match="cannot make the folder"):
        Folder(tmp_path / "file").make()
