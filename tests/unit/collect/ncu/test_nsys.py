"""Exports of Nsight Systems, made up from its documented tables."""

import contextlib
import sqlite3
from pathlib import Path

import pytest

from mansard.collect.ncu.trace.nsys import nsys_command, read_sqlite
from mansard.errors import CollectError

PID = 0x1234
GLOBAL = PID << 24


def export(path, *, mangled=True, kernels=((1, 10, 20),), calls=((1, 5),)):
    """One process: kernels as (correlation, start, end), calls as (correlation, start)."""
    with contextlib.closing(sqlite3.connect(path)) as file, file:
        file.execute("CREATE TABLE StringIds (id INT, value TEXT)")
        file.executemany(
            "INSERT INTO StringIds VALUES (?, ?)",
            [(1, "_Z3addPf"), (2, "add(float *)"), (3, "step"), (4, "NCCL")],
        )
        name = ", mangledName INT" if mangled else ""
        file.execute(
            "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, deviceId INT, streamId "
            "INT, correlationId INT, globalPid INT, demangledName INT, gridX INT, gridY INT, "
            "gridZ INT, blockX INT, blockY INT, blockZ INT, dynamicSharedMemory INT" + name + ")"
        )
        for correlation, start, end in kernels:
            row = [start, end, 0, 7, correlation, GLOBAL, 2, 4, 1, 1, 128, 1, 1, 64]
            row += [1] if mangled else []
            file.execute(
                f"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({','.join('?' * len(row))})", row
            )
        file.execute(
            "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME "
            "(start INT, end INT, globalTid INT, correlationId INT)"
        )
        file.executemany(
            "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, ?, ?)",
            [(start, start + 1, GLOBAL + 9, correlation) for correlation, start in calls],
        )
        file.execute(
            "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INT, end INT, deviceId INT, streamId "
            "INT, correlationId INT, globalPid INT, bytes INT, copyKind INT)"
        )
        file.execute(
            "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (30, 40, 0, 7, 8, ?, 4096, 2)", (GLOBAL,)
        )
        file.execute(
            "CREATE TABLE NVTX_EVENTS (start INT, end INT, eventType INT, text TEXT, textId INT, "
            "globalTid INT, domainId INT)"
        )
        file.executemany(
            "INSERT INTO NVTX_EVENTS VALUES (?, ?, ?, ?, ?, ?, ?)",
            [
                (0, None, 75, "NCCL", None, GLOBAL, 2),
                (1, 100, 60, "all_reduce", None, GLOBAL + 9, 2),
                (2, None, 59, None, 3, GLOBAL + 9, 0),
                (3, 4, 34, "a mark", None, GLOBAL + 9, 0),
            ],
        )
    return path


def test_kernels_copies_and_ranges_are_read(tmp_path):
    launches = read_sqlite(export(tmp_path / "a b?.sqlite")).launches
    kernel, copy = launches
    assert (kernel.process, kernel.symbol, kernel.name) == (PID, "_Z3addPf", "add(float *)")
    assert (kernel.shape, kernel.shared_bytes) == ((4, 1, 1, 128, 1, 1), 64)
    assert (kernel.ranges, kernel.phase) == (("all_reduce", "step"), "step")
    assert (copy.kind, copy.name, copy.bytes_moved) == ("memcpy", "memcpy DtoH", 4096)


def test_launches_come_in_the_order_of_their_calls(tmp_path):
    path = export(tmp_path / "x.sqlite", kernels=((2, 10, 20), (1, 15, 25)), calls=((1, 5), (2, 6)))
    assert [each.start_ns for each in read_sqlite(path).kernels] == [15, 10]


def test_without_mangled_names_the_symbol_stays_empty(tmp_path):
    (kernel,) = read_sqlite(export(tmp_path / "x.sqlite", mangled=False)).kernels
    assert (kernel.symbol, kernel.name) == ("", "add(float *)")


def test_a_capture_range_lies_inside_as_a_whole(tmp_path):
    path = export(tmp_path / "x.sqlite")
    assert all(each.in_region for each in read_sqlite(path, from_start=False).launches)


def test_what_is_no_export_is_told(tmp_path):
    (tmp_path / "x.sqlite").write_text("no database")
    with pytest.raises(CollectError, match="cannot be read"):
        read_sqlite(tmp_path / "x.sqlite")
    with pytest.raises(CollectError, match="saw no kernel"):
        read_sqlite(export(tmp_path / "y.sqlite", kernels=()))


def test_the_command_line_records_the_region_alone_when_asked():
    whole = nsys_command(Path("nsys"), ["./a b"], Path("/t/100%/x"), from_start=True)
    assert whole[-2:] == ["--output=/t/100%%/x", "./a b"]
    assert not any("capture-range" in part for part in whole)
    part = nsys_command(Path("nsys"), ["./a"], Path("/t/x"), from_start=False)
    assert "--capture-range=cudaProfilerApi" in part
