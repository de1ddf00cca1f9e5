"""LLVM text of the compute kernels: one instruction, in registers.

Arguments: accumulators and operands in memory, iterations, any number for the clock chain.
"""

from mansard.bench.cpu.harness import ADDITION, ATTRIBUTES, argument, harness, next_iteration
from mansard.bench.cpu.recipes import TILE_BYTES, Recipe

#: Steps of each chain in one iteration of a compute loop.
COMPUTE_UNROLL = 4


def compute_module(recipe: Recipe, architecture: str, additions: int = 0) -> str:
    """A loop of one instruction, wholly in registers.

    Args:
        recipe: the instruction.
        architecture: ``x86_64`` or ``aarch64``.
        additions: dependent additions woven into the loop. When they take longer than the other
            work, the time of an iteration is their number of cycles: a clock under load.
    """
    return compute_kernel(recipe, architecture, additions) + harness(architecture)


def compute_kernel(recipe: Recipe, architecture: str, additions: int = 0) -> str:
    """The function ``kernel`` of ``compute_module`` alone."""
    kernel = _tile_kernel if recipe.form == "tile" else _vector_kernel
    slots = instructions_per_iteration(recipe)
    return kernel(recipe, _additions(architecture, additions, slots)) + ATTRIBUTES


def instructions_per_iteration(recipe: Recipe) -> int:
    """How many of the measured instruction one iteration of its compute loop has."""
    return recipe.accumulators * COMPUTE_UNROLL


def _additions(architecture: str, count: int, slots: int) -> list[str]:
    """Dependent additions from ``%chain.0`` to ``%chain.end``, in one piece for each slot.

    One piece follows each instruction: in one block they would fill the queue of the core, and
    keep the other instructions out of it.
    """
    pieces: list[str] = []
    name = "%chain.0"
    for slot in range(slots):
        length = (slot + 1) * count // slots - slot * count // slots
        last = slot == slots - 1
        following = "%chain.end" if last else f"%chain.{slot + 1}"
        if length:
            body = r"\0A".join([ADDITION[architecture]] * length)
            pieces.append(
                f'  {following} = call i64 asm sideeffect "{body}", "=r,r,0"'
                f"(i64 %more, i64 {name})\n"
            )
            name = following
        elif last:
            pieces.append(f"  {following} = add i64 {name}, 0\n")
        else:
            pieces.append("")
    return pieces


def _vector_kernel(recipe: Recipe, additions: list[str]) -> str:
    vector, chains, size = recipe.vector, range(recipe.accumulators), recipe.register_bytes
    lines = [
        recipe.declare + "define void @kernel(ptr %args) #0 {\nentry:\n",
        argument(0, "memory", "ptr") + argument(1, "iterations") + argument(2, "more"),
    ]
    names = [(f"x{k}", vector) for k in chains]
    names += [(f"{letter}{k}", recipe.operand) for letter in "ab" for k in range(recipe.operands)]
    lines += [
        f"  %{name}.at = getelementptr i8, ptr %memory, i64 {place * size}\n"
        f"  %{name} = load {kind}, ptr %{name}.at, align {size}\n"
        for place, (name, kind) in enumerate(names)
    ]
    lines.append(
        "  br label %loop\nloop:\n"
        "  %left = phi i64 [%iterations, %entry], [%less, %loop]\n"
        "  %chain.0 = phi i64 [%more, %entry], [%chain.end, %loop]\n"
    )
    lines += [
        f"  %y{k}.0 = phi {vector} [%x{k}, %entry], [%y{k}.{COMPUTE_UNROLL}, %loop]\n"
        for k in chains
    ]
    for step in range(COMPUTE_UNROLL):
        for k in chains:
            # Over the steps of an iteration a chain meets every b: operands change with each
            # instruction, and where the b are b, -b the sum comes back and stays bounded.
            operation = recipe.operation.format(
                out=f"%y{k}.{step + 1}",
                acc=f"%y{k}.{step}",
                a=f"%a{k % recipe.operands}",
                b=f"%b{(k // recipe.operands + step) % recipe.operands}",
            )
            lines.append(f"  {operation}\n" + additions[step * len(chains) + k])
    lines.append(next_iteration())
    lines += [
        f"  store {vector} %y{k}.{COMPUTE_UNROLL}, ptr %x{k}.at, align {size}\n" for k in chains
    ]
    lines.append("  store volatile i64 %chain.end, ptr %more.at, align 8\n  ret void\n}\n")
    return "".join(lines)


def _tile_kernel(recipe: Recipe, additions: list[str]) -> str:
    """Two by two tiles: each a meets each b; tmm0-3 accumulate, tmm4-5 are a, tmm6-7 are b."""
    lines = [
        "define void @kernel(ptr %args) #0 {\nentry:\n",
        argument(0, "memory", "ptr") + argument(1, "iterations") + argument(2, "more"),
        f"  %config = getelementptr i8, ptr %memory, i64 {8 * TILE_BYTES}\n",
        '  call void asm sideeffect "ldtilecfg ($0)", "r,~{memory}"(ptr %config)\n',
    ]
    lines += [
        f"  %t{tile} = getelementptr i8, ptr %memory, i64 {tile * TILE_BYTES}\n"
        f'  call void asm sideeffect "tileloadd ($0,$1,1), %tmm{tile}", "r,r,~{{memory}}"'
        f"(ptr %t{tile}, i64 64)\n"
        for tile in range(8)
    ]
    lines.append(
        "  br label %loop\nloop:\n"
        "  %left = phi i64 [%iterations, %entry], [%less, %loop]\n"
        "  %chain.0 = phi i64 [%more, %entry], [%chain.end, %loop]\n"
    )
    for step in range(COMPUTE_UNROLL):
        for k in range(recipe.accumulators):
            operation = recipe.operation.format(
                acc=f"%tmm{k}",
                a=f"%tmm{4 + k % recipe.operands}",
                b=f"%tmm{6 + (k // recipe.operands + step) % recipe.operands}",
            )
            lines.append(
                f'  call void asm sideeffect "{operation}", ""()\n'
                + additions[step * recipe.accumulators + k]
            )
    lines.append(next_iteration())
    lines += [
        f'  call void asm sideeffect "tilestored %tmm{k}, ($0,$1,1)", "r,r,~{{memory}}"'
        f"(ptr %t{k}, i64 64)\n"
        for k in range(recipe.accumulators)
    ]
    lines.append(
        '  call void asm sideeffect "tilerelease", ""()\n'
        "  store volatile i64 %chain.end, ptr %more.at, align 8\n  ret void\n}\n"
    )
    return "".join(lines)
