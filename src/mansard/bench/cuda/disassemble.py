"""Machine code under the lens: does the main loop hold what the ceiling is named for?

A compiler may emulate an instruction, hoist it or drop it without a word, and the rate that is then
measured is nonsense. ``nvdisasm`` (package nvidia-cuda-nvdisasm) reads our own kernels.
"""

import collections
import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from mansard.errors import DeviceError

_TIMEOUT_S = 60
_INSTRUCTION_BYTES = 16


class Audit(msgspec.Struct, frozen=True):
    """What the machine code of one kernel shows.

    Attributes:
        count: matching instructions in the main loop.
        loop: all instructions of the main loop.
        local: loads from and stores to local memory, that is, spilled registers.
        others: the most frequent other instructions of the loop.
    """

    count: int
    loop: int
    local: int
    others: dict[str, int] = {}

    def problem(self, expected: int, mnemonic: str) -> str | None:
        """Why the kernel does not measure what it should; None if it does."""
        if self.count < expected:
            return (
                f"machine code: {self.count} of {expected} {mnemonic} in the loop: the "
                "instruction is emulated or was removed"
            )
        if self.count > expected:
            return f"machine code: {self.count} {mnemonic} in the loop, {expected} expected"
        if self.local:
            return f"machine code: {self.local} accesses to local memory (spilled registers)"
        return None


def find_disassembler() -> str | None:
    """Path of nvdisasm: its package, wherever Python finds packages; then a toolkit or the PATH."""
    return _in_packages() or _elsewhere()


def _in_packages() -> str | None:
    """cuda.pathfinder looks into site-packages alone, not at PYTHONPATH or ``pip --target``."""
    spec = importlib.util.find_spec("nvidia")
    for root in (spec.submodule_search_locations or ()) if spec else ():
        program = Path(root) / "cu13" / "bin" / "nvdisasm"
        if program.is_file() and os.access(program, os.X_OK):
            return str(program)
    return None


def _elsewhere() -> str | None:
    try:
        from cuda.pathfinder import find_nvidia_binary_utility  # noqa: PLC0415

        found = find_nvidia_binary_utility("nvdisasm")
    except Exception:  # noqa: BLE001  (an older cuda.pathfinder has no such function)
        found = None
    return found or shutil.which("nvdisasm")


def audit(code: bytes, entry: str, mnemonic: str, *, cache: Path | None = None) -> Audit | None:
    """Count instructions in the main loop of a kernel.

    Args:
        code: a cubin.
        entry: name of the kernel.
        mnemonic: regular expression; it must match a whole opcode.
        cache: folder where results are kept.

    Returns:
        The counts, or None when there is no disassembler.

    Raises:
        DeviceError: the disassembler failed.
    """
    key = hashlib.sha256(b"1\0" + code + f"\0{entry}\0{mnemonic}".encode()).hexdigest()
    kept = cache / f"{key}.audit.json" if cache else None
    if kept is not None and kept.is_file():
        try:
            return msgspec.json.decode(kept.read_bytes(), type=Audit)
        except (OSError, msgspec.DecodeError):
            pass  # a damaged cache file is made anew
    program = find_disassembler()
    if program is None:
        return None
    found = count(disassemble(program, code), entry, mnemonic)
    if kept is not None:
        part = kept.with_suffix(".part")
        try:
            part.write_bytes(msgspec.json.encode(found))
            part.replace(kept)
        except OSError:
            pass  # the cache only saves time
    return found


def disassemble(program: str, code: bytes) -> Any:
    """The JSON listing that nvdisasm makes of a cubin."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(code)
        file.flush()
        try:
            done = subprocess.run(
                [program, "-ndf", "-json", file.name],
                capture_output=True,
                timeout=_TIMEOUT_S,
                check=True,
            )
            return json.loads(done.stdout)
        except subprocess.CalledProcessError as error:
            said = error.stderr.decode(errors="replace").strip().splitlines()
            raise DeviceError(f"nvdisasm: {(said or ['failed'])[0][:200]}") from error
        except (OSError, subprocess.TimeoutExpired, ValueError) as error:
            raise DeviceError(f"nvdisasm: {str(error)[:200]}") from error


def count(listing: Any, entry: str, mnemonic: str) -> Audit:
    """Count in the loop of ``entry`` that holds most matches of ``mnemonic``.

    Args:
        listing: ``[header, [function, ...]]`` as nvdisasm -json writes it; instructions are 16
            bytes each, a backward BRA ends a loop.
        entry: name of the kernel.
        mnemonic: regular expression for a whole opcode.

    Raises:
        DeviceError: the kernel is not there.
    """
    functions = {function["function-name"]: function for function in listing[1]}
    if entry not in functions:
        raise DeviceError(f"nvdisasm: there is no kernel {entry}")
    instructions = functions[entry]["sass-instructions"]
    opcodes = [instruction["opcode"] for instruction in instructions]
    wanted = re.compile(mnemonic)
    matches = [bool(wanted.fullmatch(opcode)) for opcode in opcodes]
    best = range(0)
    for last, instruction in enumerate(instructions):
        first = _target(instruction)
        if first is None or first >= last:
            continue
        body = range(first, last + 1)
        hits = sum(matches[first : last + 1])
        if hits > sum(matches[best.start : best.stop]) or (
            hits == sum(matches[best.start : best.stop]) and len(body) < len(best)
        ):
            best = body
    others = collections.Counter(opcodes[i] for i in best if not matches[i])
    return Audit(
        count=sum(matches[best.start : best.stop]),
        loop=len(best),
        local=sum(opcode.startswith(("LDL", "STL")) for opcode in opcodes),
        others=dict(others.most_common(6)),
    )


def _target(instruction: dict[str, Any]) -> int | None:
    """Index of the instruction that a branch jumps to; None for anything else."""
    if not instruction["opcode"].startswith("BRA"):
        return None
    found = re.search(r"0x([0-9a-f]+)", instruction.get("operands", ""))
    return int(found[1], 16) // _INSTRUCTION_BYTES if found else None
