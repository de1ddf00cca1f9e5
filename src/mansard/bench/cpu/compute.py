"""Compute kernels at work: what is run, how it is counted, and what proves it."""

import dataclasses
from typing import Any

import numpy as np

from mansard.bench.cpu import oracle
from mansard.bench.cpu.compute_kernels import instructions_per_iteration
from mansard.bench.cpu.jit import Kernel
from mansard.bench.cpu.machine_code import innermost_loop
from mansard.bench.cpu.memory import Buffer
from mansard.bench.cpu.recipes import Recipe
from mansard.bench.cpu.team import Team, Timing
from mansard.errors import MachineError

_CHECK_ITERATIONS = 3


@dataclasses.dataclass(frozen=True, slots=True)
class ComputeWorkload:
    """A compute kernel on some threads.

    Attributes:
        recipe: the instruction.
        kernel: its machine code.
        team: the threads.
        buffers: accumulators and operands, one for each thread that takes part.
    """

    recipe: Recipe
    kernel: Kernel
    team: Team
    buffers: tuple[Buffer, ...]

    def run(self, amount: int) -> tuple[float, Timing]:
        """Do ``amount`` iterations on each thread; returns operations and times."""
        timing = self.team.run(self.kernel, [(it.address, amount, 1) for it in self.buffers])
        each = self.recipe.flop * instructions_per_iteration(self.recipe)
        return float(each * amount * len(self.buffers)), timing


def compute_workload(recipe: Recipe, kernel: Kernel, team: Team, threads: int) -> ComputeWorkload:
    """Bind a kernel to values that stay bounded and whose bits look random."""
    buffers = tuple(
        _loaded(oracle.initial_memory(recipe, seed=place, bounded=True)) for place in range(threads)
    )
    return ComputeWorkload(recipe, kernel, team, buffers)


@dataclasses.dataclass(frozen=True, slots=True)
class ClockWorkload:
    """The same loop with dependent additions woven in: its work is the cycles of one core.

    Attributes:
        additions: of one iteration, one cycle each.
        compute: the kernel that contains them.
    """

    additions: int
    compute: ComputeWorkload

    def run(self, amount: int) -> tuple[float, Timing]:
        """Do ``amount`` iterations on each thread; returns cycles of a core, and times."""
        _, timing = self.compute.run(amount)
        return float(self.additions * amount), timing


def check_code(recipe: Recipe, kernel: Kernel, architecture: str) -> dict[str, Any]:
    """Check the loop of a compute kernel in its machine code; returns the evidence.

    The loop must have the counted instructions and touch no memory: then its intensity is beyond
    every ridge, and no spilled register is hidden in the time.

    Raises:
        MachineError: the loop is not what the operation count says.
    """
    loop = innermost_loop(kernel.assembly, architecture)
    wanted = instructions_per_iteration(recipe)
    found = loop.count(recipe.mnemonic)
    if found != wanted or loop.memory_operands:
        raise MachineError(
            f"The compiler made {found} {recipe.instruction} and {loop.memory_operands} memory"
            f" accesses an iteration, not {wanted} and 0: the result would not be a ceiling."
        )
    return {
        "per_iteration": found,
        "loop_instructions": len(loop.instructions),
        "memory_operands": loop.memory_operands,
        "spills": loop.stack_operands,
    }


def check_result(recipe: Recipe, kernel: Kernel, team: Team) -> str:
    """Compare a short run with its recomputation; returns the evidence.

    Raises:
        MachineError: they differ.
    """
    memory = oracle.initial_memory(recipe, seed=1, bounded=False)
    expected = oracle.expected_accumulators(recipe, memory, _CHECK_ITERATIONS)
    buffer = _loaded(memory)
    team.run(kernel, [(buffer.address, _CHECK_ITERATIONS, 1)])
    found = buffer.view(np.uint8, 0, len(expected))
    if not np.array_equal(found, expected):
        wrong = int(np.count_nonzero(found != expected))
        raise MachineError(
            f"{recipe.instruction} gave a wrong result: {wrong} of {len(expected)} bytes differ"
            " from the recomputation."
        )
    return "equal to an exact recomputation, to the last bit"


def _loaded(memory: oracle.Array) -> Buffer:
    buffer = Buffer(len(memory))
    buffer.view(np.uint8, 0, len(memory))[:] = memory
    return buffer
