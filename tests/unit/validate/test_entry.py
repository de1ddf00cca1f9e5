"""A whole validation on a rig that plays back recorded columns."""

import json

import msgspec
import pytest

import mansard
from mansard.errors import DeviceError, PermissionDeniedError, UsageError
from mansard.store import load_machine
from mansard.validate import Validation, beside_ceilings, chip_limits, validate
from mansard.validate.messages import LimitValues
from mansard.validate.rig import CasesLost


def states(found, case=None):
    return {f.state for f in found.findings if case in (None, f.case)}


def run(rig, **options):
    return validate(make_rig=lambda _: rig, **options)


def test_right_counters_hold_and_what_the_chip_lacks_is_skipped(make_rig):
    found = run(make_rig())
    assert found.holds
    assert states(found) == {"holds", "skipped"}
    assert states(found, "tensor fp4") == {"skipped"}
    assert not found.partial
    texts = {verdict.quantity: verdict.text for verdict in found.verdicts}
    # copy, add, fill, read, three resident sets, both bulk copies.
    assert texts["bytes_l2"] == "holds within 3 % on 9 kernels"
    assert texts["flop_tensor_bf16"] == "holds exactly on 4 kernels"


def test_the_public_name_is_the_function():
    assert mansard.validate is validate


def test_one_flop_too_many_is_enough(make_rig, cases):
    flop = float(135168 * 512 * 64 * 2 + 1)
    found = run(make_rig(changes={"fp32 fma": {"flop_vector_fp32": flop}}))
    assert not found.holds
    deviating = [f for f in found.findings if f.state == "deviates"]
    assert [(f.case, f.quantity) for f in deviating] == [("fp32 fma", "flop_vector_fp32")]


def test_an_unknown_column_never_passes(make_rig):
    found = run(make_rig(changes={"copy": {"bytes_l2": None}}))
    assert not found.holds
    assert states(found, "copy") == {"holds", "unknown"}


def test_a_case_that_crashes_is_found_and_the_others_go_on(make_rig):
    rig = make_rig(events={"bulk multicast": CasesLost("the process was ended by SIGSEGV")})
    found = run(rig)
    assert states(found, "bulk multicast") == {"failed"}
    assert states(found, "bulk copy") == {"holds"}
    assert not found.holds
    (failure,) = (f for f in found.findings if f.state == "failed")
    assert "SIGSEGV" in failure.reason
    assert rig.asked[-2:] == [("bulk copy",), ("bulk multicast",)]


def test_the_case_at_fault_is_found_by_halving_its_batch(make_rig):
    rig = make_rig(events={"fp8 wgmma": CasesLost("lost")})
    found = run(rig, only=("wgmma",))
    assert [f.case for f in found.findings if f.state == "failed"] == ["fp8 wgmma"]
    assert states(found, "int8 wgmma") == {"holds"}
    assert len(rig.asked) <= 7


def test_what_the_machine_lacks_fails_nothing(make_rig):
    why = "cuBLASLt is not installed (pip install 'mansard[gemm]')"
    rig = make_rig(lacking={"GEMM fp8 3072": why, "GEMM fp8 1008": why})
    found = run(rig)
    assert found.holds
    assert [f.reason for f in found.findings if f.case == "GEMM fp8 3072"] == [why]


def test_nothing_that_ran_does_not_hold(make_rig, cases):
    rig = make_rig(lacking={"L1-resident read": "no memory"})
    assert not run(rig, only=("L1-resident",)).holds


def test_an_interrupt_keeps_what_was_found_and_says_so(make_rig):
    found = run(make_rig(events={"fp64 mma.sync": KeyboardInterrupt()}))
    assert found.partial
    assert states(found, "fp32 fma") == {"holds"}
    assert states(found, "copy") == set()
    assert "Interrupted: 24 of 65 cases were finished before." in found.remarks


def test_without_a_gpu_it_is_one_error_and_the_rig_is_closed(make_rig):
    rig = make_rig(opening=DeviceError("there is no NVIDIA driver on this machine"))
    with pytest.raises(DeviceError, match="no NVIDIA driver"):
        run(rig)
    assert rig.closed == 1


def test_missing_permission_ends_it_before_anything_runs(make_rig):
    rig = make_rig(stated=PermissionDeniedError("the driver refuses", slug="permission"))
    with pytest.raises(PermissionDeniedError):
        run(rig)
    assert rig.asked == []


def test_a_gpu_that_is_lost_on_the_way_keeps_what_was_found(make_rig):
    found = run(make_rig(events={"copy": DeviceError("cuda:0 cannot be opened: gone")}))
    assert states(found, "fp32 fma") == {"holds"}
    assert states(found, "copy") == {"failed"}
    assert states(found, "bulk copy") == {"holds"}


def test_limits_that_cannot_be_read_are_a_remark(make_rig):
    found = run(make_rig(stated=CasesLost("no such counter")))
    assert found.holds
    assert found.limits == ()
    assert "The limits that the chip states could not be read: no such counter." in found.remarks


def test_limits_stand_beside_the_measured_ceilings_of_the_same_gpu(make_rig, limit_values):
    base = tuple({name.split(".")[0] for name in limit_values})
    found = run(make_rig(stated=LimitValues(values=limit_values, base_counters=base)))
    limits = {(each.name, each.label): each for each in found.limits}
    fp32 = limits["vector fp32", ""]
    assert fp32.per_clock == 2 * 16896
    assert fp32.value == pytest.approx(66.9e12, rel=1e-3)
    assert fp32.machine == "h200-sxm"
    assert fp32.share == pytest.approx(0.995, abs=0.005)
    assert limits["dram", ""].value == pytest.approx(4.81e12, rel=1e-3)
    assert limits["l2", ""].value == pytest.approx(10.28e12, rel=1e-3)
    assert limits["tensor bf16", "half of sparse"].per_clock == 540672
    unread = limits["tensor bf16", ""]  # the test has no value for its counter
    assert (unread.per_clock, unread.value, unread.share) == (None, None, None)


@pytest.mark.parametrize("device", ["cpu", "cuda:x", "gpu", "cuda:0:1"])
def test_another_device_than_a_gpu_is_refused(device, make_rig):
    with pytest.raises(UsageError, match="give cuda:0"):
        run(make_rig(), device=device)


def test_only_takes_one_text_too(make_rig):
    found = run(make_rig(), only="bulk copy")
    assert {finding.case for finding in found.findings} == {"bulk copy"}


def test_progress_grows_to_one(make_rig):
    told = []
    run(make_rig(), progress=lambda what, share: told.append((what, share)))
    shares = [share for _, share in told]
    assert shares == sorted(shares)
    assert told[0] == ("opening the GPU", 0.0)
    assert told[-1] == ("done", 1.0)
    assert ("library", pytest.approx(41 / 66)) in told


def test_the_origin_is_told(make_rig):
    found = run(make_rig())
    assert found.device.name == "NVIDIA H200"
    assert found.provenance["driver_version"] == "580.159.04"
    assert found.provenance["counter_table"] == "gh100"
    assert found.provenance["cupti_version"] == "13.0"
    assert found.provenance["created"].startswith("20")


def test_all_counted_columns_are_kept_compared_or_not(make_rig):
    found = run(make_rig(changes={"copy": {"duration_s": 0.5}}))
    assert found.counted["copy"]["duration_s"] == 0.5


def test_the_json_keeps_its_names(make_rig, limit_values):
    base = tuple({name.split(".")[0] for name in limit_values})
    found = run(make_rig(stated=LimitValues(values=limit_values, base_counters=base)))
    written = json.loads(msgspec.json.encode(found))
    assert written["schema"] == "mansard-validation/1"
    assert {*written} == {
        "schema",
        "findings",
        "verdicts",
        "limits",
        "counted",
        "device",
        "provenance",
        "remarks",
        "partial",
    }
    assert {*written["findings"][0]} == {
        "case",
        "quantity",
        "state",
        "low",
        "high",
        "tolerance",
        "counted",
        "ratio",
        "why",
        "reason",
    }
    assert {*written["verdicts"][0]} == {
        "quantity",
        "formula",
        "meaning",
        "tolerance",
        "holds",
        "deviates",
        "unknown",
        "text",
    }
    assert {*written["limits"][0]} == {
        "name",
        "label",
        "per_clock",
        "clock_hz",
        "value",
        "unit",
        "counter",
        "meaning",
        "machine",
        "measured",
        "share",
    }
    assert msgspec.json.decode(msgspec.json.encode(found), type=Validation) == found


def test_what_the_chip_states_stands_in_the_evidence_of_each_ceiling(make_rig, limit_values):
    base = tuple({name.split(".")[0] for name in limit_values})
    rig = make_rig(stated=LimitValues(values=limit_values, base_counters=base))
    limits = chip_limits("cuda:0", make_rig=lambda _index: rig)
    assert rig.closed
    machine = beside_ceilings(load_machine("h200-sxm"), limits)
    fp32 = machine.compute("vector fp32")
    # 16,896 multiply-adds in a clock of the whole chip, at the clock of the ceiling's samples.
    limit = 2 * 16896 * fp32.sm_clock_hz
    assert fp32.evidence["counter_limit"] == pytest.approx(limit)
    assert fp32.evidence["share_of_counter_limit"] == pytest.approx(fp32.value / limit, rel=1e-5)
    # Where only the sparse peak is stated, half of it.
    bf16 = machine.compute("tensor bf16")
    assert bf16.evidence["counter_limit"] == pytest.approx(540672 * bf16.sm_clock_hz)
    # Device memory has a clock of its own: 1,504 bytes in each.
    dram = machine.bandwidth("dram")
    assert dram.evidence["share_of_counter_limit"] == pytest.approx(
        dram.value / (1504 * 3.201e9), rel=2e-3
    )
    launch = next(each for each in machine.ceilings if each.kind == "launch")
    assert "counter_limit" not in launch.evidence


def test_limits_alone_that_cannot_be_read_are_an_error(make_rig):
    rig = make_rig(stated=CasesLost("no such counter"))
    with pytest.raises(DeviceError, match="no such counter"):
        chip_limits(make_rig=lambda _index: rig)
    assert rig.closed
