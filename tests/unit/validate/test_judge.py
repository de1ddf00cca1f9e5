"""Comparing what was counted with what must be: to the last FLOP, and never by default."""

import msgspec
import pytest

from mansard.model.provenance import Definition
from mansard.validate.cases import Lacking
from mansard.validate.judge import findings_of, skipped, verdicts_of
from mansard.validate.messages import CaseCount
from mansard.validate.result import Finding

FP32 = 135168 * 512 * 64 * 2


def judged(case, columns, table, quantity=None, **fields):
    count = CaseCount(name=case.name, columns=columns, **{"launches": 1, **fields})
    found = {finding.quantity: finding for finding in findings_of(case, count, table)}
    return found if quantity is None else found[quantity]


def test_the_exact_count_holds(cases, right, table):
    case = cases["fp32 fma"]
    found = judged(case, right(case), table, "flop_vector_fp32")
    assert (found.state, found.counted, found.ratio) == ("holds", FP32, 1.0)
    assert found.reason == ""


@pytest.mark.parametrize(("change", "reason"), [(1, "1 too many"), (-1, "1 too few")])
def test_one_flop_more_or_less_deviates(cases, right, table, change, reason):
    case = cases["fp32 fma"]
    columns = {**right(case), "flop_vector_fp32": float(FP32 + change)}
    found = judged(case, columns, table, "flop_vector_fp32")
    assert (found.state, found.reason) == ("deviates", reason)


def test_all_threads_counted_where_half_are_off_deviates_twofold(cases, right, table):
    case = cases["fp32 fma, half predicated off"]
    columns = {**right(case), "flop_vector_fp32": float(FP32)}
    found = judged(case, columns, table, "flop_vector_fp32")
    assert (found.state, found.ratio) == ("deviates", 2.0)


@pytest.mark.parametrize("absent", ["null", "no column"])
def test_a_missing_column_is_unknown_and_says_which(cases, right, table, absent):
    case = cases["copy"]
    columns = right(case)
    if absent == "null":
        columns["bytes_l2"] = None
    else:
        del columns["bytes_l2"]
    found = judged(case, columns, table, "bytes_l2")
    assert (found.state, found.counted) == ("unknown", None)
    assert found.reason == "not counted: bytes_l2"


def test_a_case_without_a_launch_is_unknown_throughout(cases, table):
    found = judged(cases["copy"], {}, table, launches=0)
    assert {finding.state for finding in found.values()} == {"unknown"}
    assert "no launch" in found["bytes_l2"].reason


@pytest.mark.parametrize(
    ("share", "state"),
    [
        (1.0, "holds"),
        (1.0299, "holds"),
        (0.9701, "holds"),
        (1.031, "deviates"),
        (0.969, "deviates"),
    ],
)
def test_bytes_hold_within_three_percent(cases, right, table, share, state):
    case = cases["copy"]
    columns = {**right(case), "bytes_dram": share * (1 << 30)}
    found = judged(case, columns, table, "bytes_dram")
    assert found.state == state
    assert found.ratio == pytest.approx(share)


def test_the_l2_counter_of_the_paper_would_be_found_out(cases, right, table):
    # 1.506 times the bytes of an addition on an H200: traffic between the halves counts too.
    case = cases["add"]
    columns = {**right(case), "bytes_l2": 1.506 * 1.5 * (1 << 30)}
    found = judged(case, columns, table, "bytes_l2")
    assert found.state == "deviates"
    assert found.ratio == pytest.approx(1.506)


def test_an_l1_blind_to_bulk_copies_would_be_found_out(cases, right, table):
    case = cases["bulk copy"]
    found = judged(case, {**right(case), "bytes_l1": 0.0}, table, "bytes_l1")
    assert (found.state, found.ratio) == ("deviates", 0.0)


def test_work_counted_twice_shows_as_other_work(cases, right, table):
    case = cases["bf16 wgmma"]
    columns = {**right(case), "flop_tensor_fp16": 1.0}
    found = judged(case, columns, table)
    assert found["flop_tensor_bf16"].state == "holds"
    assert (found["other work"].state, found["other work"].counted) == ("deviates", 1.0)
    assert found["other work"].ratio is None


def test_other_work_is_unknown_when_no_other_column_is_known(cases, right, table):
    case = cases["bf16 wgmma"]
    columns = {c: v if c == "flop_tensor_bf16" else None for c, v in right(case).items()}
    assert judged(case, columns, table, "other work").state == "unknown"


def test_packed_moves_of_a_compiler_are_no_other_work(cases, right, table):
    case = cases["fp64 fma"]
    columns = {**right(case), "flop_vector_fp16": 4.0 * 135168}
    assert judged(case, columns, table, "other work").state == "holds"


@pytest.mark.parametrize(
    ("parts", "more", "state"),
    [
        # Of an H200: 22 FLOP an element more than 2 n^3. One sum may have 4; 4 parts 4 + 4 x 5.
        (1, 22, "deviates"),
        (4, 22, "holds"),
        (4, 25, "deviates"),
        (4, 0, "holds"),
        (4, -1, "deviates"),
        (1, 4, "holds"),
        (1, 5, "deviates"),
    ],
)
def test_a_product_in_parts_may_count_their_ends_and_no_more(
    cases, right, table, parts, more, state
):
    case = cases["GEMM fp32 3072"]
    columns = {**right(case), "flop_vector_fp32": 2.0 * 3072**3 + more * 3072.0**2}
    found = judged(case, columns, table, "flop_vector_fp32", parts=parts)
    assert found.state == state
    assert ("in 4 parts" in found.why) == (parts == 4)


def test_parts_of_sums_change_nothing_where_tensor_cores_form_them(cases, right, table):
    case = cases["GEMM bf16 3072"]
    columns = {**right(case), "flop_tensor_bf16": 2.0 * 3072**3 + 1}
    assert judged(case, columns, table, "flop_tensor_bf16", parts=4).state == "deviates"


@pytest.mark.parametrize(
    ("name", "state"),
    [("L2-resident read", "deviates"), ("L2-resident read, lines shared", "holds")],
)
def test_merged_requests_show_where_warps_share_lines_only(cases, right, table, name, state):
    # 0.5822 of the bytes reached L2 on an H200 when the warps of a block shared their lines.
    case = cases[name]
    total = right(case)["bytes_l1"]
    columns = {**right(case), "bytes_l2": 0.5822 * total}
    assert judged(case, columns, table, "bytes_l2").state == state


def test_more_than_was_asked_for_at_l2_deviates_however_lines_are_shared(cases, right, table):
    case = cases["L2-resident read, lines shared"]
    columns = {**right(case), "bytes_l2": 1.04 * right(case)["bytes_l1"]}
    assert judged(case, columns, table, "bytes_l2").state == "deviates"


def test_fp64_products_may_run_on_either_pipe(cases, right, table):
    case = cases["GEMM fp64 3072"]
    for column, other in (("vector", "tensor"), ("tensor", "vector")):
        columns = {
            **right(case),
            f"flop_{column}_fp64": 2.0 * 3072**3,
            f"flop_{other}_fp64": 0.0,
        }
        assert judged(case, columns, table, "fp64 work").state == "holds"


def test_adds_that_the_compiler_fuses_are_counted_as_what_they_became(cases, right, table):
    # 4 of 8 adds became multiply-adds: 4 x 2 + 4 x 4 = 24 of each 8, 1536 of 512.
    case = cases["fp16 add"]
    runs = 135168 * 64
    columns = {**right(case), "flop_vector_fp16": float(runs * 1536)}
    found = judged(case, columns, table, "flop_vector_fp16", loop_flop=1536.0)
    assert (found.state, found.low) == ("holds", runs * 1536)
    as_written = {**columns, "flop_vector_fp16": float(runs * 1024)}
    found = judged(case, as_written, table, "flop_vector_fp16", loop_flop=1536.0)
    assert found.state == "deviates"


def test_what_stands_outside_the_loop_may_count_once_a_thread(cases, right, table):
    case = cases["fp16 fma f16x2"]
    base = 135168 * 512 * 64 * 4
    states = {}
    for extra in (0, 4 * 135168, 4 * 135168 + 1):
        columns = {**right(case), "flop_vector_fp16": float(base + extra)}
        found = judged(case, columns, table, "flop_vector_fp16", loop_flop=2048.0, once_flop=4.0)
        states[extra] = found.state
    assert [*states.values()] == ["holds", "holds", "deviates"]


def test_what_a_chip_cannot_count_is_skipped_with_the_tables_reason(cases, right):
    from mansard.counters.table import table_for

    case = cases["copy"]
    found = judged(case, right(case), table_for(chip="GB10B"))
    assert found["bytes_dram"].state == "skipped"
    assert "no counter" in found["bytes_dram"].reason.lower()
    assert found["bytes_l2"].state == "holds"


def test_what_this_machine_lacks_is_skipped(cases, table):
    count = CaseCount(name="GEMM fp8 3072", lacking="cuBLASLt is not installed")
    (found,) = findings_of(cases["GEMM fp8 3072"], count, table)
    assert (found.state, found.reason) == ("skipped", "cuBLASLt is not installed")


def test_a_verdict_counts_kernels_and_lists_what_deviates():
    def finding(case, state, **fields):
        return Finding(case=case, quantity="bytes_l2", state=state, tolerance=0.03, **fields)

    findings = (
        finding("copy", "holds"),
        finding("fill", "holds"),
        finding("add", "deviates", ratio=1.506),
        finding("read", "unknown"),
        skipped(Lacking("bulk copy", "no TMA")),
        Finding(case="add", quantity="other work", state="holds"),
    )
    (verdict,) = verdicts_of(findings, {"bytes_l2": Definition(formula="32 * x.sum")})
    assert verdict.formula == "32 * x.sum"
    assert verdict.holds == ("copy", "fill")
    assert verdict.text == (
        "holds within 3 % on 2 kernels; deviates on add (1.506); not counted on read"
    )


def test_a_verdict_on_work_says_exactly_and_a_zero_says_not_0():
    findings = (
        Finding(case="one", quantity="flop_vector_fp64", state="holds"),
        Finding(case="two", quantity="flop_vector_fp64", state="deviates", ratio=None),
    )
    (verdict,) = verdicts_of(findings, {"flop_vector_fp64": Definition(formula="x.sum")})
    assert verdict.text == "holds exactly on 1 kernel; deviates on two (not 0)"


def test_a_finding_can_be_written_and_read_again(cases, right, table):
    case = cases["copy"]
    found = judged(case, right(case), table, "bytes_l2")
    assert msgspec.json.decode(msgspec.json.encode(found), type=Finding) == found
