"""Machines behind the arguments of a command, each under a name of its own."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mansard.model.machine import Machine

_MOST_FILES = 10_000


def load_machines(items: Sequence[str]) -> "list[tuple[Machine, Path | None]]":
    """Each machine with its file; those that come along have none.

    Args:
        items: names, machine files, roofline.json of ERT, or folders of them. Of a folder, files
            that are no machine are told and left out.

    Raises:
        MachineError: there is no such machine, or its file is wrong.
    """
    return [found for item in items for found in _load(item)]


def under_own_names(found: "Sequence[tuple[Machine, Path | None]]") -> "list[Machine]":
    """The machines; where names are the same, with as much of the path as tells them apart."""
    import msgspec

    from mansard.cli.told_apart import told_apart

    groups: dict[str, list[int]] = {}
    for place, (machine, _) in enumerate(found):
        groups.setdefault(machine.name, []).append(place)
    named = [machine for machine, _ in found]
    for name, places in groups.items():
        if len(places) < 2:
            continue
        paths = [found[place][1] for place in places]
        files = told_apart([str(path.absolute()) if path else "shipped" for path in paths])
        for place, file in zip(places, files, strict=True):
            named[place] = msgspec.structs.replace(named[place], name=f"{name} ({file})")
    return named


def _load(item: str) -> "list[tuple[Machine, Path | None]]":
    from mansard.bench.ert import is_ert, read_ert
    from mansard.errors import MachineError
    from mansard.store.machine_file import load_machine

    path = Path(item)
    if not path.is_dir():
        if path.is_file() and is_ert(path):
            return [(read_ert(path), path)]
        return [(load_machine(path), path) if path.exists() else (load_machine(item), None)]
    found: list[tuple[Machine, Path | None]] = []
    for file in sorted(path.glob("*.json"))[:_MOST_FILES]:
        try:
            found.append((read_ert(file) if is_ert(file) else load_machine(file), file))
        except MachineError as error:
            sys.stderr.write(f"mansard: skipped: {error}\n")
    if not found:
        raise MachineError(f"there is no machine file (*.json) in {path}")
    return found
