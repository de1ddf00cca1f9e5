"""Launches shown to ncu one by one: the library in front of a stub of the driver."""

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from ncu_makers import DATA, in_order, traced

from mansard.collect.ncu.gate import (
    build_gate,
    gate_text,
    gate_variables,
    loadable_folder,
    times_opened,
    why_no_gate,
)
from mansard.collect.ncu.installation import NcuTool
from mansard.collect.ncu.trace.trace import ProgramTrace

COMPILER = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
TOOL = NcuTool(Path("ncu"), "2025.3.1.0", frozenset({"preload-library"}))
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="needs a C compiler")


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    """A folder with the stub under the driver's name."""
    folder = tmp_path_factory.mktemp("driver")
    source = DATA / "fake_ncu" / "driver_stub.c"
    subprocess.run(
        [COMPILER, "-w", "-shared", "-fPIC", "-o", str(folder / "libcuda.so.1"), str(source)],
        check=True,
    )
    return folder


@pytest.fixture
def launched(driver, tmp_path):
    """Run a program behind the gate: what it launched, and how often the gate opened."""

    def run(text, program):
        library = build_gate(tmp_path, text)
        code = f"""
            import ctypes
            driver = ctypes.CDLL("libcuda.so.1")
            def launch(grid, *, shared=0, stream=0, call=driver.cuLaunchKernel):
                return call(None, grid, 1, 1, 128, 1, 1, shared, ctypes.c_void_p(stream), None, None)
            {textwrap.indent(textwrap.dedent(program), " " * 12).strip()}
        """
        environment = {
            **os.environ,
            **gate_variables(library),
            "LD_PRELOAD": str(library),
            "LD_LIBRARY_PATH": str(driver),
        }
        ended = subprocess.run(
            [sys.executable, "-S", "-E", "-c", textwrap.dedent(code)],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return ended.stdout.splitlines(), times_opened(library)

    return run


@needs_compiler
def test_the_numbered_launches_of_a_shape_are_counted_and_no_others(launched):
    program = """
        for grid in (4, 4, 5, 4, 5, 5, 4):
            launch(grid)
    """
    lines, opened = launched("4 1 1 128 1 1 0 2 4\n5 1 1 128 1 1 0 3 99\n", program)
    assert lines == [
        "launch 4 0 -",
        "launch 4 0 counted",
        "launch 5 0 -",
        "launch 4 0 -",
        "launch 5 0 -",
        "launch 5 0 counted",
        "launch 4 0 counted",
    ]
    assert opened == 3


@needs_compiler
def test_shared_memory_is_part_of_a_shape(launched):
    program = """
        launch(4)
        launch(4, shared=4096)
    """
    lines, _ = launched("4 1 1 128 1 1 4096 1\n", program)
    assert lines == ["launch 4 0 -", "launch 4 4096 counted"]


@needs_compiler
def test_every_way_to_launch_is_seen_however_it_was_found(launched):
    program = """
        find, found, status = driver.cuGetProcAddress_v2, ctypes.c_void_p(), ctypes.c_int()
        def address(name, version, flags, by=find):
            by(name, ctypes.byref(found), version, ctypes.c_uint64(flags), ctypes.byref(status))
            return found.value
        launch_type = ctypes.CFUNCTYPE(
            ctypes.c_int, ctypes.c_void_p, *[ctypes.c_uint] * 7, *[ctypes.c_void_p] * 3
        )
        find_type = ctypes.CFUNCTYPE(
            ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint64,
            ctypes.c_void_p,
        )
        launch(4, call=launch_type(address(b"cuLaunchKernel", 4000, 0)))
        launch(4, call=launch_type(address(b"cuLaunchKernel", 7000, 2)))
        again = find_type(address(b"cuGetProcAddress", 12000, 0))
        again(b"cuLaunchKernel", ctypes.addressof(found), 4000, 0, ctypes.addressof(status))
        launch(4, call=launch_type(found.value))
        driver.cuLaunchCooperativeKernel(None, 4, 1, 1, 128, 1, 1, 0, None, None)
        config = (ctypes.c_uint32 * 14)(4, 1, 1, 128, 1, 1, 0)
        driver.cuLaunchKernelEx(config, None, None, None)
    """
    lines, opened = launched("4 1 1 128 1 1 0 1 2 3 4 5\n", program)
    assert lines == [
        "launch 4 0 counted",
        "per thread 4 0 counted",
        "launch 4 0 counted",
        "together 4 0 counted",
        "extended 4 0 counted",
    ]
    assert opened == 5


@needs_compiler
def test_launches_into_a_graph_are_passed_over(launched):
    program = """
        launch(4, stream=9)
        launch(4, stream=7)
    """
    lines, _ = launched("4 1 1 128 1 1 0 1\n", program)
    assert lines == ["launch 4 0 -", "launch 4 0 counted"]


@needs_compiler
def test_the_programs_own_region_opens_nothing(launched):
    program = """
        driver.cuProfilerStart()
        launch(4)
        driver.cuProfilerStop()
    """
    assert launched("5 1 1 128 1 1 0 1\n", program) == (["launch 4 0 -"], 0)


@needs_compiler
def test_a_list_that_is_no_list_shows_nothing_and_harms_nothing(launched):
    for text in ("", "hello\n\n", "4 1\n", "-1 -1 -1\n", f"{'9' * 5000}\n"):
        assert launched(text, "launch(4)") == (["launch 4 0 -"], 0)


def test_launches_are_numbered_among_all_of_their_shape():
    launches = in_order(
        {"symbol": "warm", "region": 0},
        {"symbol": "a"},
        {"symbol": "b", "shared_bytes": 64},
        {"symbol": "c"},
        {"symbol": "b", "shared_bytes": 64},
    )
    trace = ProgramTrace(launches=launches, source="a test")
    text = gate_text(trace, [launches[3], launches[4], launches[1]])
    assert text == "4 1 1 128 1 1 0 2 3\n4 1 1 128 1 1 64 2\n"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"in_graph": True}, "CUDA graphs"),
        ({"process": 78}, "more than one process"),
        ({"shared_bytes": None}, "shared memory"),
    ],
)
def test_what_cannot_be_shown_one_by_one_is_told(changes, reason):
    trace = ProgramTrace(launches=[traced(), traced(**changes)], source="a test")
    assert reason in why_no_gate(TOOL, trace)


def test_an_old_ncu_and_a_trace_of_a_region_alone_are_told():
    whole = ProgramTrace(launches=[traced()], source="a test")
    part = ProgramTrace(launches=[traced()], source="a test", from_start=False)
    assert why_no_gate(TOOL, whole) is None
    assert "before the region" in why_no_gate(TOOL, part)
    assert "no --preload-library" in why_no_gate(NcuTool(Path("ncu"), "2021", frozenset()), whole)


def test_without_a_compiler_there_is_no_gate(tmp_path):
    assert build_gate(tmp_path, "", {"PATH": "/nowhere"}) is None


def test_a_path_that_the_loader_would_cut_is_not_used(tmp_path):
    # The loader takes "/tmp/my runs/gate.so" for two libraries.
    for name in ("my runs", "a:b"):
        folder = tmp_path / name
        folder.mkdir()
        assert build_gate(folder, "") is None
        with loadable_folder(folder) as loadable:
            assert loadable != folder
            assert not {" ", ":"} & {*str(loadable)}
        assert not loadable.exists()
    with loadable_folder(tmp_path) as loadable:
        assert loadable == tmp_path
