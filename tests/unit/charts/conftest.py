"""Analyses made by hand: hostile ones, and two from recorded numbers.

``recorded/v100_*.json``: per-kernel sums of the DeepCAM study on a V100 (tables that the authors
of arXiv 2009.05257 published). ``recorded/h200_zoo.json``: 24 known-work launches on an H200,
counted with Nsight Compute (its L2 column holds the reads of the SMs only).
Rows: name, launches, seconds, FLOP by path, bytes by level, phase.
"""

import json
from pathlib import Path

import pytest

from mansard.model.analysis import Analysis, Group, Kernel
from mansard.model.device import DeviceFacts
from mansard.model.machine import Ceiling, Machine
from mansard.model.notice import Notice
from mansard.model.provenance import Provenance

RECORDED = Path(__file__).parent / "recorded"

#: TFLOP/s and TB/s of the study: roofs of 2009.05257, L1 theoretical.
V100_COMPUTE = {
    "vector fp64": 7.6691,
    "vector fp32": 15.1586,
    "vector fp16": 29.1816,
    "tensor fp16": 103.7,
}
V100_BANDWIDTH = {"l1": 14.336, "l2": 2.99677, "dram": 0.828758}

#: TFLOP/s, SM clock in GHz, instruction: one run of a probe on an H200 SXM.
H200_COMPUTE = {
    "vector fp64": (33.390, 1.980, "fma"),
    "vector fp32": (66.222, 1.980, "fma"),
    "vector fp16": (132.230, 1.979, "fma"),
    "tensor fp64": (66.790, 1.980, "mma.sync"),
    "tensor tf32": (453.586, 1.680, "wgmma"),
    "tensor fp16": (858.581, 1.590, "wgmma"),
    "tensor bf16": (858.633, 1.590, "wgmma"),
    "tensor fp8": (1668.620, 1.545, "wgmma"),
    "tensor int8": (1895.374, 1.755, "wgmma"),
}
H200_BANDWIDTH = {"shared": 33.346, "l1": 33.311, "l2": 8.859, "dram": 4.690}


def v100_machine() -> Machine:
    compute = [
        Ceiling(kind="compute", value=v * 1e12, unit="flop/s", path=p, status="published")
        for p, v in V100_COMPUTE.items()
    ]
    bandwidth = [
        Ceiling(
            kind="bandwidth",
            value=v * 1e12,
            unit="byte/s",
            level=level,
            status="theoretical" if level == "l1" else "published",
        )
        for level, v in V100_BANDWIDTH.items()
    ]
    launch = Ceiling(kind="launch", value=4.2e-6, unit="s", access="stream", status="published")
    return Machine(
        name="v100-paper",
        basis="published",
        device=DeviceFacts(name="Tesla V100-SXM2-16GB", chip="GV100", compute_capability="7.0"),
        ceilings=(*compute, *bandwidth, launch),
        caveats=("vector roofs at boost clock, tensor roof at base clock (arXiv 2009.05257)",),
    )


def h200_machine() -> Machine:
    compute = [
        Ceiling(
            kind="compute",
            value=value * 1e12,
            unit="flop/s",
            path=path,
            instruction=instruction,
            arm="low-toggle",
            sm_clock_hz=clock * 1e9,
            limit_at_clock=value * 1e12 / 0.995,
            share_of_limit=0.995,
        )
        for path, (value, clock, instruction) in H200_COMPUTE.items()
    ]
    slower = [
        Ceiling(
            kind="compute",
            value=642.078e12,
            unit="flop/s",
            path="tensor bf16",
            instruction="mma.sync",
            sm_clock_hz=1.785e9,
            share_of_limit=0.665,
        ),
        Ceiling(
            kind="compute",
            value=695.908e12,
            unit="flop/s",
            path="tensor bf16",
            instruction="library",
            arm="random",
            sm_clock_hz=1.320e9,
            share_of_limit=0.975,
        ),
        Ceiling(
            kind="compute",
            value=419.156e12,
            unit="flop/s",
            path="tensor fp8",
            status="refused",
            instruction="mma.sync",
            reason="the machine code holds fp16 instructions: this shape is emulated",
        ),
    ]
    bandwidth = [
        Ceiling(
            kind="bandwidth",
            value=value * 1e12,
            unit="byte/s",
            level=level,
            access="read",
            sm_clock_hz=1.98e9,
            share_of_limit=0.97,
        )
        for level, value in H200_BANDWIDTH.items()
    ]
    launch = [
        Ceiling(kind="launch", value=3.482e-6, unit="s", access="stream"),
        Ceiling(kind="launch", value=0.501e-6, unit="s", access="graph node"),
    ]
    sweep = []
    for path in ("vector fp32", "tensor bf16"):
        top = H200_COMPUTE[path][0] * 1e12
        rows = [
            [2.0**k, 0.98 * min(top, 2.0**k * H200_BANDWIDTH["dram"] * 1e12)] for k in range(-4, 12)
        ]
        sweep.append((f"dram, {path}", {"columns": ["flop_per_byte", "flop_per_s"], "rows": rows}))
    return Machine(
        name="h200-sxm",
        basis="measured",
        device=DeviceFacts(
            name="NVIDIA H200", chip="GH100", compute_capability="9.0", sm_clock_max_hz=1.98e9
        ),
        ceilings=(*compute, *slower, *bandwidth, *launch),
        provenance={"driver_version": "580.159.04"},
        curves=dict(sweep),
    )


def total(values):
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def floors_of(machine, flop, moved, launches):
    """Floors from sums: good enough for a picture, the analysis takes them per launch."""
    if machine is None:
        return {}, None, None
    floors = {}
    for pipe in ("vector", "tensor"):
        times = [
            count / machine.compute(path).value
            for path, count in flop.items()
            if path.startswith(pipe) and count is not None and machine.compute(path)
        ]
        floors[pipe] = sum(times)
    for level, count in moved.items():
        if machine.bandwidth(level):
            floors[level] = None if count is None else count / machine.bandwidth(level).value
    cost = machine.launch_cost("graph node")
    floors["launch"] = cost.value * launches if cost else None
    bound = max((name for name in floors if floors[name]), key=floors.get, default=None)
    return floors, floors.get(bound), bound


def make_kernel(name, *, launches=1, duration_s=1e-3, flop=None, moved=None, machine=None, **more):
    flop = {} if flop is None else flop
    moved = {} if moved is None else moved
    floating = {path: count for path, count in flop.items() if "int" not in path}
    floors, floor, bound = floors_of(machine, flop, moved, launches)
    flop_sum = total(floating.values())
    zero = flop_sum == 0
    values = {
        "key": name,
        "short_name": more.pop("short_name", name),
        "family": "other",
        "launches": launches,
        "kernels": 1,
        "duration_s": duration_s,
        "flop": flop_sum,
        "op_int": total(count for path, count in flop.items() if "int" in path),
        "flop_complete": None not in flop.values(),
        "flop_by_path": flop,
        "bytes_by_level": moved,
        "zero_flop_launches": launches if zero else 0,
        "zero_flop_duration_s": duration_s if zero else 0.0,
        "near_zero_flop_launches": 0,
        "near_zero_flop_duration_s": 0.0,
        "short_launches": launches if duration_s and duration_s < launches * 5e-6 else 0,
        "floors_s": floors,
        "floor_s": floor,
        "bound": bound,
    }
    return Kernel(**(values | more))


def group(key, members):
    paths = dict.fromkeys(path for member in members for path in member.flop_by_path)
    levels = dict.fromkeys(level for member in members for level in member.bytes_by_level)
    resources = dict.fromkeys(name for member in members for name in member.floors_s)
    floors = {name: total(m.floors_s.get(name) for m in members) for name in resources}
    return Group(
        key=key,
        launches=sum(member.launches for member in members),
        kernels=len({member.key for member in members}),
        duration_s=total(member.duration_s for member in members),
        flop=total(member.flop for member in members),
        op_int=total(member.op_int for member in members),
        flop_complete=all(member.flop_complete for member in members),
        flop_by_path={path: total(m.flop_by_path.get(path) for m in members) for path in paths},
        bytes_by_level={lv: total(m.bytes_by_level.get(lv) for m in members) for lv in levels},
        zero_flop_launches=total(m.zero_flop_launches for m in members),
        zero_flop_duration_s=total(m.zero_flop_duration_s for m in members),
        near_zero_flop_launches=total(m.near_zero_flop_launches for m in members),
        near_zero_flop_duration_s=total(m.near_zero_flop_duration_s for m in members),
        short_launches=total(m.short_launches for m in members),
        floors_s=floors,
        floor_s=total(member.floor_s for member in members),
        bound=max((n for n in floors if floors[n]), key=floors.get, default=None),
        launches_above_roof=sum(member.launches_above_roof for member in members),
    )


def make_analysis(kernels, *, machine=None, label="run", provenance=(), notices=(), phases=None):
    ordered = sorted(kernels, key=lambda kernel: -(kernel.duration_s or 0))
    families = {}
    for kernel in ordered:
        families.setdefault(kernel.family, []).append(kernel)
    return Analysis(
        label=label,
        provenance=tuple(provenance),
        machine=machine,
        totals=group(None, ordered),
        phases=tuple(group(key, members) for key, members in (phases or {None: ordered}).items()),
        families=tuple(group(key, members) for key, members in families.items()),
        ranks=(group("0", ordered),),
        kernels=tuple(ordered),
        notices=tuple(notices),
        options={"time_rule": "launch"},
    )


FAMILIES = {
    "gemm": ("gemm", "nvjet", "cutlass", "s884", "hmma"),
    "conv": ("conv", "fprop", "dgrad", "wgrad", "col2im"),
    "attention": ("sdpa",),
    "norm": ("norm", "bn_fw"),
    "copy": ("copy", "pad", "transpose", "cast"),
}


def _short(name: str) -> str:
    if name.startswith("_ZN"):
        return name[:60]
    plain = name.removeprefix("void ").replace("<unnamed>::", "").split("<", 1)[0].split("(", 1)[0]
    return plain.rsplit("::", 1)[-1] if "::" in plain else plain


def recorded(file, machine, phase=None):
    rows = json.loads((RECORDED / f"{file}.json").read_text())
    kernels = []
    for name, launches, seconds, flop, moved, *range_name in rows:
        family = next(
            (key for key, words in FAMILIES.items() if any(w in name.lower() for w in words)),
            "elementwise",
        )
        own = range_name[0] if range_name else phase
        kernels.append(
            (
                own,
                make_kernel(
                    name,
                    launches=launches,
                    duration_s=seconds,
                    flop=flop,
                    moved=moved,
                    machine=machine,
                    short_name=_short(name),
                    family=family,
                ),
            )
        )
    return kernels


def by_phase(pairs):
    phases = {}
    for phase, kernel in pairs:
        phases.setdefault(phase, []).append(kernel)
    return phases


V100_ORIGIN = Provenance(
    collector="Nsight Compute",
    collector_version="2020.1.0",
    devices=(DeviceFacts(name="Tesla V100-SXM2-16GB", chip="GV100"),),
    clock_control="base",
    cache_control="all",
    replay="kernel",
    counter_table="paper-volta",
    sources=("dram__bytes.sum.txt",),
)
H200_ORIGIN = Provenance(
    collector="Nsight Compute",
    collector_version="2025.3.1",
    driver_version="580.159.04",
    cuda_version="13.0",
    devices=(DeviceFacts(name="NVIDIA H200", chip="GH100", sm_clock_max_hz=1.98e9),),
    clock_control="none",
    cache_control="all",
    replay="kernel",
    counter_table="gh100",
    sources=("zoo.ncu-rep",),
)


def v100_tensorflow():
    machine = v100_machine()
    pairs = recorded("v100_tensorflow_forward", machine, "forward")
    return make_analysis(
        [kernel for _, kernel in pairs],
        machine=machine,
        label="DeepCAM, TensorFlow, forward, automatic mixed precision",
        provenance=[V100_ORIGIN],
        phases=by_phase(pairs),
    )


def v100_pytorch():
    machine = v100_machine()
    pairs = recorded("v100_pytorch_forward", machine, "forward")
    pairs += recorded("v100_pytorch_optimizer", machine, "optimizer")
    return make_analysis(
        [kernel for _, kernel in pairs],
        machine=machine,
        label="DeepCAM, PyTorch, O1, forward and FusedLAMB",
        provenance=[V100_ORIGIN],
        phases=by_phase(pairs),
        notices=[
            Notice(
                code="joined-by-name",
                message="twelve files were joined by kernel name; a kernel that is missing in"
                " one of them has unknown values.",
            )
        ],
    )


def h200_zoo():
    machine = h200_machine()
    pairs = recorded("h200_zoo", machine)
    return make_analysis(
        [kernel for _, kernel in pairs],
        machine=machine,
        label="operation zoo",
        provenance=[H200_ORIGIN],
        phases=by_phase(pairs),
    )


@pytest.fixture(scope="session")
def v100():
    return v100_tensorflow()


@pytest.fixture(scope="session")
def v100_two_phases():
    return v100_pytorch()


@pytest.fixture(scope="session")
def h200():
    return h200_zoo()


@pytest.fixture(name="h200_machine", scope="session")
def h200_machine_fixture():
    return h200_machine()


@pytest.fixture(name="v100_machine", scope="session")
def v100_machine_fixture():
    return v100_machine()


@pytest.fixture(name="make_kernel")
def make_kernel_fixture():
    return make_kernel


@pytest.fixture(name="make_analysis")
def make_analysis_fixture():
    return make_analysis
