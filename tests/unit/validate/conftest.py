"""A rig that plays back recorded columns: an H200 whose counters are right unless a test says."""

import dataclasses

import pytest

from mansard.bench.messages import Opened
from mansard.counters.limits import counters_of_limits, stated_limits
from mansard.counters.table import load_table
from mansard.model.device import DeviceFacts
from mansard.model.provenance import Definition
from mansard.validate.cases import OTHER_WORK, Case
from mansard.validate.catalogue import all_cases
from mansard.validate.messages import CaseCount, Counted, LimitValues, Opening

H200 = DeviceFacts(
    name="NVIDIA H200",
    chip="GH100",
    compute_capability="9.0",
    sm_count=132,
    sm_clock_max_hz=1.98e9,
    l2_bytes=60 * 1024**2,
)
OPENED = Opened(
    facts=H200,
    numbers={"free_bytes": 140e9},
    texts={"driver_version": "580.159.04", "cuda_version": "13.0"},
    architectures=(75, 80, 90, 100),
)
OPENING = Opening(opened=OPENED, chip="GH100", table="gh100", cupti="13.0")


def columns_of(case):
    """What a faultless counter gives: each expected quantity at its low end, all else 0."""
    columns = dict.fromkeys(
        (name for each in case.expected if each.quantity == OTHER_WORK for name in each.columns),
        0.0,
    )
    for each in case.expected:
        if each.quantity != OTHER_WORK:
            columns |= dict.fromkeys(each.summed, 0.0)
            columns[each.summed[-1]] = each.low
    return columns


@dataclasses.dataclass
class FakeRig:
    """``changes`` alters the columns of a case by name; ``events`` raises when a case runs."""

    changes: dict = dataclasses.field(default_factory=dict)
    events: dict = dataclasses.field(default_factory=dict)
    lacking: dict = dataclasses.field(default_factory=dict)
    opening: object = OPENING
    stated: object = None
    asked: list = dataclasses.field(default_factory=list)
    closed: int = 0

    def open(self):
        if isinstance(self.opening, BaseException):
            raise self.opening
        return self.opening

    def limits(self):
        if isinstance(self.stated, BaseException):
            raise self.stated
        return self.stated or LimitValues(values={}, base_counters=())

    def count(self, cases):
        self.asked.append(tuple(case.name for case in cases))
        for case in cases:
            if case.name in self.events:
                raise self.events[case.name]
        return Counted(cases=tuple(self._count(case) for case in cases), definitions=definitions())

    def _count(self, case):
        if case.name in self.lacking:
            return CaseCount(name=case.name, lacking=self.lacking[case.name])
        columns = {**columns_of(case), **self.changes.get(case.name, {})}
        return CaseCount(name=case.name, columns=columns, launches=1)

    def close(self):
        self.closed += 1


def definitions():
    return {
        column: Definition(formula=ways[0].formula.text, meaning=ways[0].meaning)
        for column, ways in load_table("gh100").quantities.items()
    }


def stated_values():
    """Counters of the limits as an H200 gave them (where they were read), at 1.98 GHz."""
    values = dict.fromkeys(counters_of_limits(stated_limits()))
    values |= {
        "sm__cycles_elapsed.avg.per_second": 1.98e9,
        "l1tex__cycles_elapsed.avg.per_second": 1.98e9,
        "lts__cycles_elapsed.avg.per_second": 1.709e9,
        "dram__cycles_elapsed.avg.per_second": 3.199e9,
        "sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained": 16896.0,
        "sm__sass_thread_inst_executed_op_dfma_pred_on.sum.peak_sustained": 8448.0,
        "sm__sass_thread_inst_executed_op_hfma_pred_on.sum.peak_sustained": 16896.0,
        "sm__ops_path_tensor_src_fp64.sum.peak_sustained": 33792.0,
        "sm__ops_path_tensor_src_bf16_dst_fp32.sum.peak_sustained": 1081344.0,
        "dram__bytes.sum.peak_sustained": 1504.0,
        "lts__lts2xbar_cycles_active.sum.peak_sustained": 188.0,
    }
    return values


@pytest.fixture
def opening():
    return OPENING


@pytest.fixture
def table():
    return load_table("gh100")


@pytest.fixture
def cases(table):
    """The cases of an H200 by name."""
    return {c.name: c for c in all_cases(OPENED, table) if isinstance(c, Case)}


@pytest.fixture
def make_rig():
    return FakeRig


@pytest.fixture
def right():
    """Columns of a case as a faultless counter gives them."""
    return columns_of


@pytest.fixture
def limit_values():
    return stated_values()
