"""Which machine a run belongs under when the user names none."""

from pathlib import Path

from mansard.analysis.theoretical import theoretical
from mansard.errors import MachineError
from mansard.model.machine import Machine
from mansard.model.notice import Notice
from mansard.model.run import Run
from mansard.store.machine_file import load_machine, shipped_machines

#: The table of the paper's definitions is only ever used for its V100.
_PAPER_TABLE, _PAPER_MACHINE = "paper-volta", "v100-paper"


def machine_for(run: Run, choice: str | None = None) -> tuple[Machine | None, tuple[Notice, ...]]:
    """Find the machine of a run.

    Args:
        run: whose GPU is meant.
        choice: a machine file, a shipped name, ``theoretical`` (from the attributes in the
            capture) or ``none``. When not given: a shipped machine of the same product name, else
            theoretical roofs.

    Returns:
        The machine, or None when the GPU is unknown, and what to tell the user of the choice.

    Raises:
        MachineError: there is no such machine, its file is wrong, or it is a CPU and the run is
            of a GPU.
    """
    devices = [device for origin in run.provenance for device in origin.devices]
    device = devices[0] if devices else None
    computed = theoretical(device) if device else None
    if choice == "none":
        return None, ()
    if choice == "theoretical":
        if computed is None:
            return None, (_unknown(),)
        return computed, ()
    if choice is not None:
        machine = load_machine(choice if not Path(choice).exists() else Path(choice))
        _refuse_cpu(machine, run)
        return machine, ()
    names = {name.casefold(): name for name in shipped_machines()}
    for known in names.values():
        machine = load_machine(known)
        if device and machine.device.name and machine.device.name == device.name:
            return machine, (_chosen(machine, "the GPU has the same name"),)
    if any(origin.counter_table == _PAPER_TABLE for origin in run.provenance):
        machine = load_machine(_PAPER_MACHINE)
        return machine, (_chosen(machine, "the counters are defined as in the paper"),)
    if computed is not None:
        return computed, (_chosen(computed, "the capture holds the GPU's attributes"),)
    return None, (_unknown(),)


def _refuse_cpu(machine: Machine, run: Run) -> None:
    """Percentages of a GPU's run under the roofs of a CPU would be nonsense, not only wrong."""
    names = [device.name for origin in run.provenance for device in origin.devices if device.name]
    counted = any(
        origin.counter_table or any(device.compute_capability for device in origin.devices)
        for origin in run.provenance
    )
    if machine.is_cpu and counted:
        raise MachineError(
            f"the roofs of '{machine.name}' are of a CPU ({machine.device.name or 'unknown'}), and "
            f"{run.label or 'the run'} is of {names[0] if names else 'a GPU'}: give a machine file "
            "that 'mansard bench' wrote on that GPU, or leave out --machine",
            slug="cpu-machine",
        )


def _chosen(machine: Machine, why: str) -> Notice:
    return Notice(
        "machine-chosen",
        f"roofs of '{machine.name}' ({machine.basis}) are used, since {why}; measure your own "
        "with 'mansard bench -o machine.json' and give --machine machine.json",
    )


def _unknown() -> Notice:
    return Notice(
        "unknown-machine",
        "no roofs are known for this GPU, so there are no floors, bounds or percentages; "
        "give --machine FILE, made by 'mansard bench' on that GPU",
    )
