"""Running the cells: what fails leaves the others alone, and what was measured is never lost."""

import msgspec
import pytest

from mansard.study.measure import blank
from mansard.study.process import Ended
from mansard.study.run import RunOptions, can_begin, run_cells


class Child:
    """Stands for the process of a cell; ``acts`` says what it does, by place in the plan."""

    def __init__(self, folder, cells, acts=None):
        self.folder, self.cells, self.acts = folder, cells, acts or {}
        self.started, self.limits, self.now_s = [], [], 0.0

    def clock(self):
        return self.now_s

    def __call__(self, cell, limit_s):
        place = self.cells.index(cell)
        self.started.append(place)
        self.limits.append(limit_s)
        self.now_s += 10.0
        act = self.acts.get(place)
        if isinstance(act, BaseException):
            raise act
        if act == "nothing":
            return
        record = blank(cell, "paper")
        state = act or "measured"
        file = self.folder.run_file(cell.name)
        run = file.name if state == "measured" else None
        self.folder.save(
            msgspec.structs.replace(record, state=state, step_s=(float(place + 1),), run=run)
        )
        if run:
            file.write_bytes(b"new")


def times_alone(folder, ends="the cell took more than 300 s and was ended", **fields):
    """A process that is ended in the profile, when the times are written."""

    def start(cell, _limit_s):
        record = blank(cell, "paper")
        folder.run_file(cell.name).unlink(missing_ok=True)
        folder.save(msgspec.structs.replace(record, state="measured", step_s=(9.0,), **fields))
        if ends:
            raise Ended(ends)

    return start


@pytest.fixture
def three(cells):
    return cells[:3]


def states(folder, cells):
    return [record.state if (record := folder.load(cell.name)) else None for cell in cells]


def test_cells_run_in_their_order(folder, three):
    child = Child(folder, three)
    done = run_cells(three, folder, start=child)
    assert child.started == [0, 1, 2]
    assert list(done.outcomes.values()) == ["measured"] * 3


def test_a_cell_that_was_measured_is_kept(folder, three):
    run_cells(three[:1], folder, start=Child(folder, three))
    child = Child(folder, three)
    done = run_cells(three, folder, start=child)
    assert child.started == [1, 2]
    assert list(done.outcomes.values()) == ["kept", "measured", "measured"]


@pytest.mark.parametrize("state", ["failed", "unavailable"])
def test_a_cell_that_could_not_run_is_tried_again(folder, three, state):
    run_cells(three, folder, start=Child(folder, three, {1: state}))
    child = Child(folder, three)
    run_cells(three, folder, start=child)
    assert child.started == [1]
    assert states(folder, three) == ["measured"] * 3


def test_again_measures_anew(folder, three):
    run_cells(three, folder, start=Child(folder, three))
    child = Child(folder, three)
    run_cells(three, folder, options=RunOptions(again=True), start=child)
    assert child.started == [0, 1, 2]


def test_a_crash_is_noted_and_the_rest_goes_on(folder, three):
    crash = Ended("the process was ended by SIGSEGV")
    done = run_cells(three, folder, start=Child(folder, three, {0: crash}))
    assert list(done.outcomes.values()) == ["failed", "measured", "measured"]
    assert folder.load(three[0].name).reason == "the process was ended by SIGSEGV"


def test_a_process_that_wrote_nothing_is_noted(folder, three):
    run_cells(three, folder, start=Child(folder, three, {2: "nothing"}))
    assert folder.load(three[2].name).reason == "the process wrote no result"


def test_times_that_were_written_before_a_crash_stay(folder, three):
    run_cells(three[:1], folder, start=times_alone(folder))
    found = folder.load(three[0].name)
    assert (found.state, found.step_s) == ("measured", (9.0,))
    ends = "ended in the profile: the cell took more than 300 s and was ended"
    assert found.collect_reason == ends


def test_a_cell_whose_profile_was_cut_off_is_tried_again(folder, three):
    run_cells(three, folder, start=times_alone(folder))
    child = Child(folder, three)
    done = run_cells(three[:1], folder, start=child)
    assert list(done.outcomes.values()) == ["measured"]
    assert folder.load(three[0].name).run


def test_a_cell_whose_profile_the_driver_refused_is_kept(folder, three):
    refused = times_alone(folder, ends="", seconds={"profile": 1.0}, collect_reason="refused")
    run_cells(three[:1], folder, start=refused)
    done = run_cells(three[:1], folder, start=Child(folder, three))
    assert list(done.outcomes.values()) == ["kept"]


def test_an_earlier_profile_outlives_a_new_measurement_without_one(folder, three):
    run_cells(three[:1], folder, start=Child(folder, three))
    before = folder.load(three[0].name)
    again = RunOptions(again=True)
    done = run_cells(three[:1], folder, options=again, start=times_alone(folder))
    assert list(done.outcomes.values()) == ["failed"]
    assert folder.load(three[0].name) == before
    assert folder.run_file(three[0].name).read_bytes() == b"new"


def test_a_profile_that_the_budget_cut_off_is_not_blamed_on_the_cell(folder, three):
    now_s = iter([0.0, 0.0, 64.0])
    done = run_cells(
        three[:1],
        folder,
        options=RunOptions(budget_s=64.0),
        start=times_alone(folder, ends="the cell took more than 64 s and was ended"),
        clock=lambda: next(now_s),
    )
    assert list(done.outcomes.values()) == ["measured"]
    assert folder.load(three[0].name).collect_reason == (
        "ended in the profile: the time of all cells was out, 64 s after this one began"
    )


def test_an_interrupt_keeps_what_is_finished(folder, three):
    done = run_cells(three, folder, start=Child(folder, three, {1: KeyboardInterrupt()}))
    assert done.interrupted
    assert list(done.outcomes.values()) == ["measured", "not started", "not started"]
    assert states(folder, three) == ["measured", None, None]


@pytest.mark.parametrize(
    "act", [KeyboardInterrupt(), Ended("crash"), "failed"], ids=["interrupt", "crash", "failure"]
)
def test_an_earlier_measurement_outlives_a_new_one_that_fails(folder, three, act):
    run_cells(three[:1], folder, start=Child(folder, three))
    before = folder.load(three[0].name)
    run_cells(
        three[:1], folder, options=RunOptions(again=True), start=Child(folder, three, {0: act})
    )
    assert folder.load(three[0].name) == before
    assert folder.run_file(three[0].name).read_bytes() == b"new"
    assert not list(folder.path.rglob("*.earlier"))


def test_no_cell_starts_when_the_budget_is_spent(folder, three):
    child = Child(folder, three)
    options = RunOptions(budget_s=15.0)
    done = run_cells(three, folder, options=options, start=child, clock=child.clock)
    assert done.out_of_time
    assert list(done.outcomes.values()) == ["measured", "measured", "not started"]


def test_a_cell_behind_the_end_of_the_budget_is_still_kept(folder, three):
    run_cells(three[2:], folder, start=Child(folder, three))
    done = run_cells(three, folder, options=RunOptions(budget_s=0.0), start=Child(folder, three))
    assert list(done.outcomes.values()) == ["not started", "not started", "kept"]


def test_no_cell_may_run_beyond_the_budget(folder, three):
    child = Child(folder, three)
    options = RunOptions(budget_s=25.0, time_limit_s=20.0)
    run_cells(three, folder, options=options, start=child, clock=child.clock)
    assert child.limits == [20.0, 15.0, 5.0]


def test_a_cell_that_the_budget_ended_has_not_failed(folder, three):
    child = Child(folder, three, {1: Ended("the cell took more than 10 s and was ended")})
    options = RunOptions(budget_s=20.0)
    done = run_cells(three, folder, options=options, start=child, clock=child.clock)
    assert done.out_of_time
    assert list(done.outcomes.values()) == ["measured", "not started", "not started"]
    assert states(folder, three) == ["measured", None, None]


def test_a_damaged_cell_file_is_measured_anew(folder, three):
    folder.cell_file(three[0].name).write_text("{", encoding="utf-8")
    done = run_cells(three[:1], folder, start=Child(folder, three))
    assert list(done.outcomes.values()) == ["measured"]


def test_progress_tells_the_cell_and_the_share(folder, three):
    told = []
    run_cells(
        three, folder, start=Child(folder, three), progress=lambda what, share: told.append(share)
    )
    assert told == [0.0, pytest.approx(1 / 3), pytest.approx(2 / 3)]


ABSENT = {"torch": "PyTorch is not installed"}


def keras_of(cells):
    """A PyTorch cell, one of Keras, and a PyTorch cell."""
    return [cells[0], next(c for c in cells if c.configuration.framework == "keras-jax"), cells[1]]


def test_no_process_is_started_for_a_framework_that_is_absent(folder, cells):
    mixed = keras_of(cells)
    child, told = Child(folder, mixed), []
    done = run_cells(
        mixed,
        folder,
        options=RunOptions(absent=ABSENT),
        start=child,
        progress=lambda what, _: told.append(what),
    )
    assert child.started == [1]
    assert told == [mixed[1].title]
    assert list(done.outcomes.values()) == ["unavailable", "measured", "unavailable"]
    assert folder.load(mixed[0].name).reason == "PyTorch is not installed"


def test_what_was_measured_stays_where_its_framework_is_absent_now(folder, three):
    run_cells(three[:1], folder, start=Child(folder, three))
    options = RunOptions(absent=ABSENT)
    assert run_cells(three, folder, options=options).outcomes[three[0].name] == "kept"
    options = RunOptions(absent=ABSENT, again=True)
    assert run_cells(three, folder, options=options).outcomes[three[0].name] == "unavailable"
    assert states(folder, three) == ["measured", "unavailable", "unavailable"]


def test_a_study_can_begin_with_one_framework_or_with_a_cell_that_is_kept(folder, cells, three):
    options = RunOptions(absent=ABSENT)
    assert not can_begin(three, folder, options)
    assert can_begin(keras_of(cells), folder, options)
    run_cells(three[:1], folder, start=Child(folder, three))
    assert can_begin(three, folder, options)
    assert not can_begin(three, folder, RunOptions(absent=ABSENT, again=True))
