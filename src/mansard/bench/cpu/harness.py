"""LLVM text around a kernel: the code that starts threads together and takes their times.

A module has three functions: ``kernel`` does the work, ``chain`` spends a known number of cycles,
``measure`` takes the times around both. All take plain pointers, so one entry fits every kernel.
``kernel(ptr args)`` reads 64-bit arguments.
"""

#: Additions of the clock chain in one link; each waits for the one before.
CHAIN_LINK = 64
#: Register to register: an addition of a small constant is free on recent processors, which would
#: make the clock look several times too high.
ADDITION = {"x86_64": "addq $1, $0", "aarch64": "add $0, $0, $1"}
#: Of every function: LLVM does not use the widest vectors on its own.
ATTRIBUTES = (
    'attributes #0 = { nounwind "prefer-vector-width"="512" "min-legal-vector-width"="512" }\n'
)
#: A gate that far below zero stays closed, however many threads still arrive.
_CLOSED = 1 << 62
_PAUSE = {"x86_64": "pause", "aarch64": "yield"}


def harness(architecture: str) -> str:
    """``chain`` and ``measure``.

    ``measure(gate, threads, patience, links, times, args)`` returns 1, or 0 if it gave up. Times
    are pairs of seconds and nanoseconds: 0-1 around the first chain, 2 and 5 of the time that the
    thread had a core, 3 and 4 around the kernel, 6-7 around the second chain.

    Threads wait for each other at the gate, a counter, so that their kernels start together. A
    thread that waits too long closes the gate for all (a negative count): it has used up its turn
    on the core, and the system would take it away just when the last thread comes. The fence makes
    stores that go around the caches part of the time.
    """
    body = r"\0A".join([ADDITION[architecture]] * CHAIN_LINK)
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
        + next_iteration()
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


def argument(index: int, name: str, kind: str = "i64") -> str:
    """Load an argument of the kernel into ``%name``."""
    return (
        f"  %{name}.at = getelementptr i64, ptr %args, i64 {index}\n"
        f"  %{name} = load {kind}, ptr %{name}.at, align 8\n"
    )


def next_iteration() -> str:
    """Count ``%left`` down, and go on to ``loop`` or leave to ``end``."""
    return (
        "  %less = sub i64 %left, 1\n  %done = icmp eq i64 %less, 0\n"
        "  br i1 %done, label %end, label %loop\nend:\n"
    )
