"""LLVM text of the kernels and of the code that measures them.

A module has three functions: ``kernel`` does the work, ``chain`` spends a known number of cycles,
``measure`` takes the times around both. All take plain pointers, so one entry fits every kernel.

``kernel(ptr args)`` reads 64-bit arguments:
    compute: accumulators and operands, iterations;
    streams: destination, first source, second source, iterations of a pass, passes, scalar, bytes
    of one iteration in one array.
"""

from mansard.bench.cpu.recipes import TILE_BYTES, Recipe

#: Steps of each chain in one iteration of a compute loop.
COMPUTE_UNROLL = 4
#: Vectors of each stream in one iteration of a memory loop.
STREAM_UNROLL = 16
#: Additions of the clock chain in one link; each waits for the one before.
CHAIN_LINK = 64
#: Vectors that a read kernel gives back, to show that it has read.
READ_KEPT = 8

#: Streams of an access: how many arrays it reads and writes.
STREAMS = {
    "read": (1, 0),
    "write": (0, 1),
    "write nt": (0, 1),
    "copy": (1, 1),
    "copy nt": (1, 1),
    "triad": (2, 1),
    "triad nt": (2, 1),
}

# Register to register: an addition of a small constant is free on recent processors, which
# would make the clock look several times too high.
_ADDITION = {"x86_64": "addq $1, $0", "aarch64": "add $0, $0, $1"}
#: A gate that far below zero stays closed, however many threads still arrive.
_CLOSED = 1 << 62
_PAUSE = {"x86_64": "pause", "aarch64": "yield"}
_ATTRIBUTES = (
    'attributes #0 = { nounwind "prefer-vector-width"="512" "min-legal-vector-width"="512" }\n'
)


def compute_module(recipe: Recipe, architecture: str, additions: int = 0) -> str:
    """A loop of one instruction, wholly in registers.

    Args:
        recipe: the instruction.
        architecture: ``x86_64`` or ``aarch64``.
        additions: dependent additions woven into the loop. When they take longer than the other
            work, the time of an iteration is their number of cycles: a clock under load.
    """
    return compute_kernel(recipe, architecture, additions) + _harness(architecture)


def compute_kernel(recipe: Recipe, architecture: str, additions: int = 0) -> str:
    """The function ``kernel`` of ``compute_module`` alone."""
    kernel = _tile_kernel if recipe.form == "tile" else _vector_kernel
    slots = instructions_per_iteration(recipe)
    return kernel(recipe, _additions(architecture, additions, slots)) + _ATTRIBUTES


def stream_module(access: str, architecture: str, width: int) -> str:
    """A loop over arrays with one kind of access.

    Args:
        access: a key of ``STREAMS``; ``nt`` are stores that go around the caches.
        architecture: ``x86_64`` or ``aarch64``.
        width: bytes of a vector.
    """
    return stream_kernel(access, width) + _harness(architecture)


def stream_kernel(access: str, width: int) -> str:
    """The function ``kernel`` of ``stream_module`` alone."""
    kind = access.removesuffix(" nt")
    return _stream_kernel(kind, width, nt=kind != access) + _ATTRIBUTES


def instructions_per_iteration(recipe: Recipe) -> int:
    """How many of the measured instruction one iteration of its compute loop has."""
    return recipe.accumulators * COMPUTE_UNROLL


def _argument(index: int, name: str, kind: str = "i64") -> str:
    return (
        f"  %{name}.at = getelementptr i64, ptr %args, i64 {index}\n"
        f"  %{name} = load {kind}, ptr %{name}.at, align 8\n"
    )


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
            body = r"\0A".join([_ADDITION[architecture]] * length)
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
        _argument(0, "memory", "ptr") + _argument(1, "iterations") + _argument(2, "more"),
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
    lines.append(_next_iteration())
    lines += [
        f"  store {vector} %y{k}.{COMPUTE_UNROLL}, ptr %x{k}.at, align {size}\n" for k in chains
    ]
    lines.append("  store volatile i64 %chain.end, ptr %more.at, align 8\n  ret void\n}\n")
    return "".join(lines)


def _tile_kernel(recipe: Recipe, additions: list[str]) -> str:
    """Two by two tiles: each a meets each b; tmm0-3 accumulate, tmm4-5 are a, tmm6-7 are b."""
    lines = [
        "define void @kernel(ptr %args) #0 {\nentry:\n",
        _argument(0, "memory", "ptr") + _argument(1, "iterations") + _argument(2, "more"),
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
    lines.append(_next_iteration())
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


def _next_iteration() -> str:
    return (
        "  %less = sub i64 %left, 1\n  %done = icmp eq i64 %less, 0\n"
        "  br i1 %done, label %end, label %loop\nend:\n"
    )


def _stream_kernel(access: str, width: int, *, nt: bool) -> str:
    lanes = width // 8
    vector = f"<{lanes} x double>"
    reads, writes = STREAMS[access]
    body: list[str] = []
    for place in range(STREAM_UNROLL):
        for stream in ("first", "second")[:reads]:
            # Volatile: a load whose value nobody needs would be dropped.
            volatile = "volatile " if access == "read" else ""
            body.append(
                f"  %{stream}{place}.at = getelementptr {vector}, ptr %{stream}.row, i64 {place}\n"
                f"  %{stream}{place} = load {volatile}{vector}, ptr %{stream}{place}.at,"
                f" align {width}\n"
            )
        if writes:
            value = {"write": "%scalars", "copy": f"%first{place}", "triad": f"%sum{place}"}[access]
            if access == "triad":
                body.append(
                    f"  %sum{place} = call {vector} @llvm.fma.v{lanes}f64({vector} %second{place},"
                    f" {vector} %scalars, {vector} %first{place})\n"
                )
            hint = ", !nontemporal !0" if nt else ""
            body.append(
                f"  %out{place}.at = getelementptr {vector}, ptr %out.row, i64 {place}\n"
                f"  store {vector} {value}, ptr %out{place}.at, align {width}{hint}\n"
            )
    arrays = (["out"] if writes else []) + ["first", "second"][:reads]
    # A pointer for each array, and steps that the compiler cannot know to be equal: with one common
    # index, a load inside an arithmetic instruction takes one more micro-operation on Intel.
    steps = "  %step.at = getelementptr i64, ptr %args, i64 6\n" + "".join(
        f"  %{name}.step = load volatile i64, ptr %step.at, align 8\n" for name in arrays
    )
    rows = "".join(
        f"  %{name}.row = phi ptr [%{name}, %pass], [%{name}.next, %loop]\n" for name in arrays
    )
    following = "".join(
        f"  %{name}.next = getelementptr i8, ptr %{name}.row, i64 %{name}.step\n" for name in arrays
    )
    kept = ""
    if access == "read":
        for index in range(READ_KEPT):
            source = STREAM_UNROLL - READ_KEPT + index
            kept += (
                f"  %kept{index}.at = getelementptr {vector}, ptr %out, i64 {index}\n"
                f"  store {vector} %first{source}, ptr %kept{index}.at, align {width}\n"
            )
    return (
        f"declare {vector} @llvm.fma.v{lanes}f64({vector}, {vector}, {vector})\n"
        "define void @kernel(ptr %args) #0 {\nentry:\n"
        + _argument(0, "out", "ptr")
        + _argument(1, "first", "ptr")
        + _argument(2, "second", "ptr")
        + _argument(3, "iterations")
        + _argument(4, "passes")
        + _argument(5, "scalar", "double")
        + f"  %scalar0 = insertelement {vector} poison, double %scalar, i32 0\n"
        f"  %scalars = shufflevector {vector} %scalar0, {vector} poison,"
        f" <{lanes} x i32> zeroinitializer\n" + steps + "  br label %pass\npass:\n"
        "  %passes.left = phi i64 [%passes, %entry], [%passes.less, %pass.end]\n"
        "  br label %loop\nloop:\n"
        "  %left = phi i64 [%iterations, %pass], [%less, %loop]\n"
        + rows
        + "".join(body)
        + following
        + "  %less = sub i64 %left, 1\n  %done = icmp eq i64 %less, 0\n"
        "  br i1 %done, label %pass.end, label %loop\npass.end:\n"
        "  %passes.less = sub i64 %passes.left, 1\n"
        "  %passes.done = icmp eq i64 %passes.less, 0\n"
        "  br i1 %passes.done, label %end, label %pass\nend:\n"
        + kept
        + "  ret void\n}\n!0 = !{i32 1}\n"
    )


def _harness(architecture: str) -> str:
    """``chain`` and ``measure``.

    ``measure(gate, threads, patience, links, times, args)`` returns 1, or 0 if it gave up. Times
    are pairs of seconds and nanoseconds: 0-1 around the first chain, 2 and 5 of the time that the
    thread had a core, 3 and 4 around the kernel, 6-7 around the second chain.

    Threads wait for each other at the gate, a counter, so that their kernels start together. A
    thread that waits too long closes the gate for all (a negative count): it has used up its turn
    on the core, and the system would take it away just when the last thread comes. The fence makes
    stores that go around the caches part of the time.
    """
    body = r"\0A".join([_ADDITION[architecture]] * CHAIN_LINK)
    monotonic, of_thread = 1, 3
    times = "".join(
        f"  %time{index} = getelementptr i64, ptr %times, i64 {2 * index}\n" for index in range(8)
    )

    def stamp(index: int, clock: int) -> str:
        return f"  call i32 @clock_gettime(i32 {clock}, ptr %time{index})\n"

    return (
        "declare i32 @clock_gettime(i32, ptr)\n"
        "define i64 @chain(i64 %links) #0 {\nentry:\n  br label %loop\nloop:\n"
        "  %left = phi i64 [%links, %entry], [%less, %loop]\n"
        "  %value = phi i64 [1, %entry], [%sum, %loop]\n"
        f'  %sum = call i64 asm sideeffect "{body}", "=r,r,0"(i64 %links, i64 %value)\n'
        + _next_iteration()
        + "  ret i64 %sum\n}\n"
        "define i32 @measure(ptr %gate, i64 %threads, i64 %patience, i64 %links, ptr %times,"
        " ptr %args) #0 {\nentry:\n"
        + times
        + stamp(0, monotonic)
        + "  call i64 @chain(i64 %links)\n"
        + stamp(1, monotonic)
        + "  atomicrmw add ptr %gate, i64 1 seq_cst\n  br label %wait\nwait:\n"
        "  %turns = phi i64 [%patience, %entry], [%turns.less, %again], [1, %close]\n"
        f'  call void asm sideeffect "{_PAUSE[architecture]}", ""()\n'
        "  %arrived = load atomic i64, ptr %gate acquire, align 8\n"
        "  %open = icmp sge i64 %arrived, %threads\n"
        "  br i1 %open, label %go, label %shut\nshut:\n"
        "  %closed = icmp slt i64 %arrived, 0\n"
        "  br i1 %closed, label %give.up, label %again\nagain:\n"
        "  %turns.less = sub i64 %turns, 1\n"
        "  %tired = icmp eq i64 %turns.less, 0\n"
        "  br i1 %tired, label %close, label %wait\nclose:\n"
        f"  cmpxchg ptr %gate, i64 %arrived, i64 {-_CLOSED} seq_cst seq_cst\n"
        "  br label %wait\ngive.up:\n  ret i32 0\ngo:\n"
        + stamp(2, of_thread)
        + stamp(3, monotonic)
        + "  call void @kernel(ptr %args)\n  fence seq_cst\n"
        + stamp(4, monotonic)
        + stamp(5, of_thread)
        + stamp(6, monotonic)
        + "  call i64 @chain(i64 %links)\n"
        + stamp(7, monotonic)
        + "  ret i32 1\n}\n"
    )
