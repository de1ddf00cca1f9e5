"""The documented limit of a core, where its vendor states one: never a guess."""

import dataclasses
import tomllib
from importlib import resources

from mansard.bench.cpu.recipes import ELEMENT_BITS, Recipe

_TABLE = "microarchitectures.toml"


@dataclasses.dataclass(frozen=True, slots=True)
class Microarchitecture:
    """What is documented of a core.

    Attributes:
        name: LLVM's name, as the processor's family and model give it.
        fma_bits: bits of multiply-add results a cycle; None where unknown.
        tile_cycles: cycles between two tile instructions; None where unknown.
        source: where this is written; empty where unknown.
        reason: why it is unknown; empty where it is known.
    """

    name: str
    fma_bits: int | None = None
    tile_cycles: int | None = None
    source: str = ""
    reason: str = ""


def microarchitecture(name: str, flags: frozenset[str]) -> Microarchitecture:
    """Look a core up, and doubt it where its instruction sets contradict its name.

    Args:
        name: LLVM's name of the host processor.
        flags: instruction sets as the kernel lists them.
    """
    table = tomllib.loads(resources.files(__package__).joinpath(_TABLE).read_text("utf-8"))
    for core in table["core"]:
        if name not in core["names"]:
            continue
        strange = sorted(flags.intersection(core["lacks"]))
        absent = sorted(set(core["has"]) - flags)
        if strange or absent:
            what = [f"has {', '.join(strange)}"] * bool(strange)
            what += [f"lacks {', '.join(absent)}"] * bool(absent)
            return Microarchitecture(
                name,
                reason=f"The processor calls itself {name} but {' and '.join(what)}: it is another"
                " one (a virtual machine can hide the model), so its pipes are not known.",
            )
        return Microarchitecture(name, core["fma_bits"], core.get("tile_cycles"), core["source"])
    return Microarchitecture(
        name, reason=f"The number of multiply-add pipes of {name!r} is not in {_TABLE}."
    )


def flop_per_cycle(recipe: Recipe, core: Microarchitecture) -> float | None:
    """Most operations that one core can do in a cycle with an instruction; None where unknown."""
    if recipe.form == "fma" and core.fma_bits is not None:
        return 2.0 * core.fma_bits / ELEMENT_BITS[recipe.result]
    if recipe.form == "tile" and core.tile_cycles is not None:
        return recipe.flop / core.tile_cycles
    return None
