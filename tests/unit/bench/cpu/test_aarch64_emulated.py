"""The kernels of aarch64, run by an emulator where the tools are: llc, a cross compiler, QEMU."""

import shutil
import subprocess

import numpy as np
import pytest

from mansard.bench.cpu import oracle, stream
from mansard.bench.cpu.compute_kernels import compute_module
from mansard.bench.cpu.recipes import recipes_for
from mansard.bench.cpu.stream_kernels import STREAM_UNROLL, stream_module

# Pointers without types came with LLVM 15: the plain name may be an older one.
LLC = next((path for it in range(30, 14, -1) if (path := shutil.which(f"llc-{it}"))), None)
GCC = shutil.which("aarch64-linux-gnu-gcc")
QEMU = shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static")
RECIPES = recipes_for("aarch64", frozenset(["asimd", "asimdhp", "asimddp", "bf16", "i8mm"]))

pytestmark = pytest.mark.skipif(
    not (LLC and GCC and QEMU),
    reason="needs llc-15 or later, aarch64-linux-gnu-gcc and qemu-aarch64",
)

MAIN = r"""
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
int measure(int64_t *, int64_t, int64_t, int64_t, int64_t *, int64_t *);
int main(int count, char **words) {
    int64_t gate[16] = {0}, times[16] = {0}, args[8] = {0};
    size_t size = strtoul(words[3], 0, 10);
    char *memory = aligned_alloc(4096, (size + 4095) / 4096 * 4096);
    FILE *file = fopen(words[1], "rb");
    if (fread(memory, 1, size, file) != size) return 1;
    fclose(file);
    for (int k = 4; k < count; k++) {  /* "@12" is an address in the memory, "12" a number */
        int address = words[k][0] == '@';
        args[k - 4] = atoll(words[k] + address) + (address ? (int64_t)memory : 0);
    }
    if (measure(gate, 1, 100, 10, times, args) != 1) return 1;
    file = fopen(words[2], "wb");
    fwrite(memory, 1, size, file);
    return fclose(file) || gate[0] != 1;
}
"""


def emulate(folder, text, memory, *arguments):
    (folder / "kernel.ll").write_text(text)
    (folder / "main.c").write_text(MAIN)
    memory.tofile(folder / "before")
    features = "-mattr=+neon,+fullfp16,+bf16,+dotprod,+i8mm"
    make = [LLC, "-O3", "-mtriple=aarch64-linux-gnu", features, "-filetype=obj"]
    make.append("-relocation-model=pic")
    subprocess.run([*make, "kernel.ll", "-o", "kernel.o"], cwd=folder, check=True)
    subprocess.run([GCC, "-static", "main.c", "kernel.o", "-o", "run"], cwd=folder, check=True)
    command = [QEMU, "-cpu", "max", "./run", "before", "after", str(len(memory)), *arguments]
    subprocess.run(command, cwd=folder, check=True, timeout=60)
    return np.fromfile(folder / "after", dtype=np.uint8)


@pytest.mark.parametrize(
    "recipe", RECIPES, ids=lambda recipe: f"{recipe.path} {recipe.instruction}"
)
def test_every_instruction_gives_the_recomputed_result(tmp_path, recipe):
    memory = oracle.initial_memory(recipe, 1, bounded=False)
    expected = oracle.expected_accumulators(recipe, memory, 2)
    text = compute_module(recipe, "aarch64", additions=50)
    found = emulate(tmp_path, text, memory, "@0", "2", "1")
    assert np.array_equal(found[: len(expected)], expected)


@pytest.mark.parametrize("access", ["read", "triad nt"])
def test_memory_kernels_leave_the_right_values(tmp_path, access):
    size = 8192
    values = np.random.default_rng(0).random(3 * size // 8 + 512)
    scalar = str(int(np.float64(stream.SCALAR).view(np.int64)))
    step = 16 * STREAM_UNROLL
    places = {"read": ("@24576", "@0", "@0"), "triad nt": ("@0", "@8192", "@16384")}[access]
    text = stream_module(access, "aarch64", 16)
    raw = emulate(
        tmp_path, text, values.view(np.uint8), *places, str(size // step), "2", scalar, str(step)
    )
    found = raw.view(np.float64)
    if access == "read":
        assert np.array_equal(found[3072:3088], values[1008:1024])
    else:
        assert np.array_equal(found[:1024], values[1024:2048] + 2 * values[2048:3072])
