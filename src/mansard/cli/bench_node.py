"""``mansard bench --all``: every GPU of a node, a machine file for each."""

import re
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from mansard.cli import INTERRUPTED, PARTIAL

if TYPE_CHECKING:
    from mansard.bench import NodeResult, Options
    from mansard.model.machine import Machine


def run_node(options: "Options", folder: Path | None, *, together: bool, json: bool) -> None:
    """Measure all GPUs, print them, and write ``HOST-gpuN.json`` into the folder."""
    import msgspec

    from mansard.bench import bench_node
    from mansard.cli.machine_table import print_machine
    from mansard.cli.progress import progress_bar

    with progress_bar() as advance:
        found = bench_node(
            options=options, order="together" if together else "in turn", progress=advance
        )
    named = {
        index: msgspec.structs.replace(
            machine,
            name=_name(index),
            provenance={**machine.provenance, "gpus_measured": "together" if together else "alone"},
        )
        for index, machine in found.machines.items()
    }
    for machine in named.values():
        print_machine(machine, to_stderr=json)
    if json:
        machines = [{"schema": m.schema, **msgspec.to_builtins(m)} for m in named.values()]
        text = msgspec.json.format(msgspec.json.encode(machines), indent=2)
        sys.stdout.buffer.write(text + b"\n")
        sys.stdout.buffer.flush()
    if folder is not None:
        _save(named, folder)
    elif not json:
        sys.stderr.write("to keep them: mansard bench --all -o FOLDER\n")
    _end(found)


def check_folder(folder: Path | None) -> None:
    """Say before the long measurement what would fail after it."""
    from mansard.errors import OutputError

    if folder is None:
        return
    if folder.exists() and not folder.is_dir():
        raise OutputError(
            f"cannot write into {folder}: with --all each GPU gets a file of its own, so -o names "
            "a folder, and this is a file"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / f".{_name(0)}.try"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise OutputError(f"cannot write into {folder}: {error.strerror}") from error


def _save(machines: dict[int, "Machine"], folder: Path) -> None:
    from mansard.store.machine_file import save_machine

    for machine in machines.values():
        target = folder / f"{machine.name}.json"
        save_machine(machine, target)
        sys.stderr.write(f"wrote {target}\n")


def _name(index: int) -> str:
    host = re.sub(r"[^A-Za-z0-9.]+", "-", socket.gethostname().split(".")[0])[:60] or "host"
    return f"{host}-gpu{index}"


def _end(found: "NodeResult") -> None:
    for index, why in found.failures.items():
        sys.stderr.write(f"mansard: cuda:{index} was left out: {' '.join(why.split())}\n")
    if found.interrupted:
        raise typer.Exit(INTERRUPTED)
    if found.failures:
        raise typer.Exit(PARTIAL if found.machines else 2)
