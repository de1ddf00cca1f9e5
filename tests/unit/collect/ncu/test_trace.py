"""The trace of a program: the injected library with a stub of CUPTI, and the other ways."""

import contextlib
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from ncu_makers import DATA, in_order, program_file

from mansard.collect.cupti import activity, records
from mansard.collect.ncu.options import Times
from mansard.collect.ncu.trace import layout, run, trace_program
from mansard.collect.ncu.trace.build import build_injection
from mansard.collect.ncu.trace.inside import write_records
from mansard.collect.ncu.trace.run import inside_command
from mansard.collect.ncu.trace.trace import in_regions, read_trace
from mansard.errors import CollectError

FAKE = DATA / "fake_ncu"
PROGRAM = (sys.executable, str(FAKE / "gpu_program.py"), "an argument")
needs_compiler = pytest.mark.skipif(
    not any(shutil.which(name) for name in ("cc", "gcc", "clang")), reason="needs a C compiler"
)


@pytest.fixture(scope="module")
def stub(tmp_path_factory):
    """The stub of CUPTI as a library."""
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))))
    path = tmp_path_factory.mktemp("stub") / "libcupti.so"
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-o", str(path), str(FAKE / "cupti_stub.c")], check=True
    )
    return path


@pytest.fixture
def with_stub(stub, monkeypatch):
    monkeypatch.setattr(run, "find_cupti", lambda major: str(stub))
    monkeypatch.delenv("CUDA_INJECTION64_PATH", raising=False)


@needs_compiler
def test_any_program_is_traced_by_the_injected_library(with_stub, tmp_path, capfd):
    traced = trace_program(PROGRAM, tmp_path)
    assert capfd.readouterr().out == "program output ['an argument']\n"
    assert (traced.ended.code, traced.missing) == (0, "")
    assert traced.trace.notices == ()
    found = [
        (each.kind, each.symbol, each.name, each.shape and each.shape[0], each.shared_bytes)
        for each in traced.trace.launches
    ]
    assert found == [
        ("kernel", "warmup", "warmup", 4, 0),
        ("kernel", "_Z3addPf", "add(float*)", 4, 0),
        ("kernel", "_Z3mulPf", "mul(float*)", 8, 4096),
        ("memcpy", "", "memcpy HtoD", None, None),
        ("kernel", "_Z3addPf", "add(float*)", 4, 0),
    ]
    assert [each.bytes_moved for each in traced.trace.launches] == [None, None, None, 4096, None]


@needs_compiler
def test_launches_belong_to_the_ranges_and_regions_of_their_calls(with_stub, tmp_path):
    launches = trace_program(PROGRAM, tmp_path).trace.launches
    assert [each.phase for each in launches] == [None, "step", "step", "step", None]
    # The range of the library is around the others, and still not the phase.
    assert launches[1].ranges == ("NCCL:all_reduce", "step")
    assert [each.in_region for each in launches] == [False, True, True, True, False]
    assert [(each.start_ns, each.end_ns) for each in launches][1] == (3000, 3100)


def test_stretches_of_the_profiler_are_numbered_though_the_runtime_calls_the_driver():
    # Each start is told twice; the second stretch is left open.
    calls = [(10, True), (11, True), (30, False), (31, False), (50, True), (51, True)]
    times = [5, 20, 40, 60, None]
    launches = in_order(*({"region": 9} for _ in times))
    found = [each.region for each in in_regions(launches, times, calls)]
    # Without the time of its call, a launch counts by its start: 1.4 ms.
    assert found == [0, 1, 0, 2, 2]


@needs_compiler
def test_the_exit_code_of_a_traced_program_is_kept(with_stub, tmp_path, monkeypatch):
    monkeypatch.setenv("PROGRAM_CODE", "3")
    traced = trace_program(PROGRAM, tmp_path)
    assert traced.ended.code == 3
    assert len(traced.trace.launches) == 5


@needs_compiler
def test_a_kind_that_cupti_refuses_is_told(with_stub, tmp_path, monkeypatch):
    monkeypatch.setenv("STUB_NO_MARKERS", "1")
    (notice,) = trace_program(PROGRAM, tmp_path).trace.notices
    assert (notice.code, notice.partial) == ("trace-incomplete", True)
    assert "kind 12: 35" in notice.message


@needs_compiler
def test_a_trace_that_grows_too_long_is_cut_and_says_so(with_stub, tmp_path, monkeypatch):
    monkeypatch.setattr(run, "MOST_BYTES", 700)
    trace = trace_program(PROGRAM, tmp_path).trace
    assert 0 < len(trace.launches) < 5
    assert "later launches are missing" in trace.notices[0].message


@needs_compiler
def test_a_cupti_that_does_not_load_leaves_the_program_alone(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(run, "find_cupti", lambda major: "/nowhere/libcupti.so")
    code = (
        "import ctypes, os; ctypes.CDLL(os.environ['CUDA_INJECTION64_PATH']).InitializeInjection()"
    )
    traced = trace_program((sys.executable, "-c", code), tmp_path)
    assert traced.ended.code == 0
    assert traced.trace is None
    assert "launched no kernel (start: cupti)" in traced.missing


@needs_compiler
def test_an_injection_of_the_user_is_left_in_place(with_stub, tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_INJECTION64_PATH", "/opt/mine.so")
    monkeypatch.setenv("PATH", str(tmp_path))
    traced = trace_program(("/bin/true",), tmp_path)
    assert traced.ended is None
    assert traced.missing == "CUDA_INJECTION64_PATH is set already; nsys is not on PATH"


def test_without_a_compiler_there_is_no_library(tmp_path):
    broken = program_file(tmp_path / "cc", "#!/bin/sh\nexit 1\n")
    assert build_injection(tmp_path, {"PATH": str(broken.parent)}) is None
    assert build_injection(tmp_path, {"PATH": "/nowhere"}) is None


def test_without_cupti_and_nsys_the_program_is_not_run_for_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "find_cupti", lambda major: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    traced = trace_program(PROGRAM, tmp_path)
    assert traced.ended is None
    assert traced.missing.startswith("CUPTI was not found (pip install mansard[cuda]); nsys")


def test_python_programs_are_traced_from_inside_without_a_compiler(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "find_cupti", lambda major: "/somewhere/libcupti.so")
    monkeypatch.setattr(run, "build_injection", lambda folder, variables: None)
    commands = []

    def note(command, **options):
        commands.append(list(command))
        return run.Ended(0, 0.0)

    monkeypatch.setattr(run, "run_program", note)
    trace_program((sys.executable, "train.py"), tmp_path)
    assert commands == [
        [sys.executable, "-m", "mansard.collect.ncu.trace.inside", str(tmp_path), "train.py"]
    ]


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (["python3.12", "-u", "a.py", "-m"], ["python3.12", "-u", *("-m", "T", "F"), "a.py", "-m"]),
        (
            ["/v/bin/python", "-X", "dev", "-m", "x"],
            ["/v/bin/python", "-X", "dev", *("-m", "T", "F"), "-m", "x"],
        ),
        (["python", "-c", "pass"], ["python", *("-m", "T", "F"), "-c", "pass"]),
        (["python"], None),
        (["./app"], None),
        (["pythonic", "a.py"], None),
    ],
)
def test_the_tracer_stands_between_python_and_its_script(program, expected):
    found = inside_command(program, Path("F"))
    if found is not None:
        found = ["T" if part == "mansard.collect.ncu.trace.inside" else part for part in found]
    assert found == expected


def test_records_written_from_inside_read_like_those_of_the_library(tmp_path):
    folder = tmp_path / "41"
    folder.mkdir()
    kernel = records.KernelRecord(
        kind=activity.KERNEL, name=b"k", start=5, end=9, gridX=3, blockX=64, correlationId=2
    )
    marks = [
        records.MarkerRecord(kind=activity.MARKER, flags=2, timestamp=1, id=1, name=b"step"),
        records.MarkerRecord(kind=activity.MARKER, flags=4, timestamp=8, id=1),
    ]
    call = records.ApiRecord(kind=activity.DRIVER, start=2, correlationId=2)
    write_records([kernel, *marks, call], folder)
    (launch,) = read_trace(tmp_path, "test").launches
    assert (launch.process, launch.symbol, launch.shape[:1], launch.phase) == (
        41,
        "k",
        (3,),
        "step",
    )


@pytest.mark.parametrize("text", [b"", b"a", "_ZN2at6native\xff".encode(), b"x" * 5000])
def test_a_text_is_found_again_by_its_hash(tmp_path, text):
    number = layout.hash_of(text)
    (tmp_path / layout.NAMES).write_bytes(layout.HEAD.pack(number, len(text)) + text)
    assert layout.read_names(tmp_path)[number] == text.decode(errors="replace")


def test_the_hash_is_fnv_1a():
    # From the authors' page of test vectors.
    assert layout.hash_of(b"") == 0xCBF29CE484222325
    assert layout.hash_of(b"foobar") == 0x85944171F73967E8


@pytest.mark.parametrize("cut", [1, 3, 11, 13, 400])
def test_files_that_are_cut_give_what_is_whole(tmp_path, cut):
    folder = tmp_path / "7"
    folder.mkdir()
    kernels = [records.KernelRecord(kind=activity.KERNEL, name=b"k", start=n) for n in range(5)]
    write_records(kernels, folder)
    for path in folder.iterdir():
        path.write_bytes(path.read_bytes()[:-cut])
    with contextlib.suppress(CollectError):
        assert len(read_trace(tmp_path, "test").launches) < 5


def test_a_program_without_kernels_is_told(tmp_path):
    with pytest.raises(CollectError, match="launched no kernel: does the program use the GPU"):
        read_trace(tmp_path, "test")


def test_nsys_is_taken_when_it_is_asked_for(tmp_path, monkeypatch):
    program_file(tmp_path / "nsys", "#!/bin/sh\nexit 0\n")
    monkeypatch.setenv("PATH", str(tmp_path))
    traced = trace_program(("/bin/true",), tmp_path, times=Times.NSYS)
    assert traced.ended.code == 0
    assert "the trace of Nsight Systems cannot be read" in traced.missing
