"""The counter definitions of the GPU at hand against kernels of known work."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import mansard
from mansard.errors import DeviceError

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def found():
    try:
        return mansard.validate()
    except DeviceError as error:
        pytest.skip(str(error))


def of(found, quantity):
    return {f.case: f for f in found.findings if f.quantity == quantity}


def test_nothing_crashed_and_nothing_is_unknown(found):
    wrong = [(f.case, f.reason) for f in found.findings if f.state in ("failed", "unknown")]
    assert wrong == []


def test_flop_are_counted_to_the_last_one(found):
    wrong = [
        (f.case, f.quantity, f.ratio, f.reason)
        for f in found.findings
        if f.quantity.startswith(("flop", "op_")) and f.state == "deviates"
    ]
    assert wrong == []
    assert sum(f.quantity.startswith("flop_tensor") for f in found.findings) > 0


def test_threads_that_are_off_do_not_count(found):
    halves = [f for f in found.findings if f.case.endswith("off") and f.quantity != "other work"]
    assert halves
    assert {f.state for f in halves} == {"holds"}


def test_no_work_is_counted_on_another_path(found):
    assert {f.case: f.counted for f in of(found, "other work").values() if f.counted} == {}


def test_l2_bytes_of_streams_are_those_of_their_arrays(found):
    # Where a range is right, as for lines that many warps share, the ratio says nothing.
    exact = {name: f for name, f in of(found, "bytes_l2").items() if f.low == f.high}
    streams = {name: f.ratio for name, f in exact.items() if f.ratio}
    if not {"copy", "add", "fill", "read"} <= {*streams}:
        pytest.skip("streams do not fit into the memory of this GPU")
    assert streams == pytest.approx(dict.fromkeys(streams, 1.0), rel=0.03)


def test_bulk_copies_show_in_l1_and_a_multicast_twice(found):
    l1, l2 = of(found, "bytes_l1"), of(found, "bytes_l2")
    if "bulk copy" not in l1:
        pytest.skip("this GPU has no bulk copies")
    assert l1["bulk copy"].counted == pytest.approx(l2["bulk copy"].counted, rel=0.03)
    if "bulk multicast" in l1:
        assert l1["bulk multicast"].counted == pytest.approx(
            2 * l2["bulk multicast"].counted, rel=0.03
        )


def test_limits_are_read_and_no_measured_ceiling_is_above_its_own(found):
    limits = {(each.name, each.label): each for each in found.limits}
    assert limits["vector fp32", ""].value
    assert limits["l2", ""].value
    shares = {n: e.share for (n, label), e in limits.items() if not label and e.share is not None}
    assert {name: share for name, share in shares.items() if share > 1.01} == {}


def test_the_command_does_everything_within_three_minutes(tmp_path):
    target = tmp_path / "validate.json"
    source = str(Path(mansard.__file__).parents[1])
    paths = os.pathsep.join((source, os.environ.get("PYTHONPATH", "")))
    done = subprocess.run(
        [sys.executable, "-m", "mansard", "validate", "--json", "-o", str(target)],
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
        env={**os.environ, "PYTHONPATH": paths},
    )
    if done.returncode == 2:
        pytest.skip(done.stderr.strip())
    assert done.returncode in (0, 1), done.stderr
    written = json.loads(target.read_text())
    assert written["schema"] == "mansard-validation/1"
    assert written == json.loads(done.stdout)
    holds = {f["state"] for f in written["findings"]} <= {"holds", "skipped"}
    assert holds is (done.returncode == 0)
