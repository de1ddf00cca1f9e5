"""Memory layouts against the vendor's own headers, compiled here."""

import ctypes
import importlib.util
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from mansard.collect.cupti import params, records

STUBS = Path(__file__).parents[2] / "data/collect/include"
HEADERS = (
    "cupti_activity.h",
    "cupti_profiler_host.h",
    "cupti_profiler_target.h",
    "cupti_range_profiler.h",
    "cupti_target.h",
)


def include_folder():
    spec = importlib.util.find_spec("nvidia")
    for root in (spec.submodule_search_locations or ()) if spec else ():
        for name in ("cu13/include", "cuda_cupti/include"):
            if (Path(root) / name / "cupti_range_profiler.h").exists():
                return Path(root) / name
    pytest.skip("needs the headers of the nvidia-cuda-cupti wheel")
    return None


def layouts(module, base):
    return [
        each
        for each in vars(module).values()
        if isinstance(each, type) and issubclass(each, base) and each is not base
    ]


def newest(c_name, text):
    """Names of all versions of a record from ours on: CUpti_ActivityKernel9, 10, ..."""
    stem, number = re.fullmatch(r"(\D+)(\d*)", c_name).groups()
    found = {int(n) for n in re.findall(rf"\b{stem}(\d+);", text)}
    return [c_name, *(f"{stem}{n}" for n in sorted(found) if number and n > int(number))]


def offsets_in_c(names_and_fields, folder, scratch):
    """Offset and size of each field, as a C++ compiler lays it out."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("needs a C++ compiler")
    lines = [
        f'printf("{name}.{field} %zu %zu\\n", offsetof({name}, {field}), '
        f"sizeof((({name}*)0)->{field}));"
        for name, fields in names_and_fields
        for field in fields
    ]
    source = scratch / "layout.cpp"
    source.write_text(
        "#include <cstdio>\n#include <cstddef>\n"
        + "".join(f"#include <{header}>\n" for header in HEADERS)
        + "int main() {\n"
        + "\n".join(lines)
        + "\n}\n"
    )
    program = scratch / "layout"
    subprocess.run(
        [compiler, "-w", "-I", STUBS, "-I", folder, source, "-o", program],
        check=True,
        capture_output=True,
        text=True,
    )
    output = subprocess.run([program], check=True, capture_output=True, text=True).stdout
    return {
        name: (int(offset), int(size))
        for name, offset, size in (line.split() for line in output.splitlines())
    }


def fields_of(layout):
    inherited = ("structSize", "pPriv") if issubclass(layout, params.Params) else ("kind",)
    return [*inherited, *(field[0] for field in layout._fields_)]


def test_every_field_lies_where_the_vendor_puts_it(tmp_path):
    folder = include_folder()
    text = "".join((folder / name).read_text() for name in ("cupti_activity.h",))
    text += (folder / "cupti_activity_deprecated.h").read_text()
    wanted = [(each, each.c_name) for each in layouts(params, params.Params)]
    for each in layouts(records, records.Record):
        wanted += [(each, name) for name in newest(each.c_name, text)]
    assert len(wanted) >= 29
    in_c = offsets_in_c([(name, fields_of(each)) for each, name in wanted], folder, tmp_path)
    ours = {
        f"{name}.{field}": (getattr(each, field).offset, getattr(each, field).size)
        for each, name in wanted
        for field in fields_of(each)
    }
    assert ours == in_c


def test_the_size_told_ends_with_the_last_field_and_leaves_out_padding():
    # 8 + 8 + 8 + 8 + 8 bytes, then one of one byte.
    assert params.RangeStop().size == 41
    assert ctypes.sizeof(params.RangeStop) == 48


def test_a_block_without_fields_of_its_own_is_the_head():
    assert params.ProfilerInitialize().size == 16
