"""LLVM text of the memory kernels: one kind of access over arrays.

Arguments: destination, first source, second source, iterations of a pass, passes, scalar, bytes of
one iteration in one array.
"""

from mansard.bench.cpu.harness import ATTRIBUTES, argument, harness

#: Vectors of each stream in one iteration of a memory loop.
STREAM_UNROLL = 16
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


def stream_module(
    access: str, architecture: str, width: int, *, vectors: int = STREAM_UNROLL
) -> str:
    """A loop over arrays with one kind of access.

    Args:
        access: a key of ``STREAMS``; ``nt`` are stores that go around the caches.
        architecture: ``x86_64`` or ``aarch64``.
        width: bytes of a vector.
        vectors: of each stream in one iteration.
    """
    return stream_kernel(access, width, vectors=vectors) + harness(architecture)


def stream_kernel(access: str, width: int, *, vectors: int = STREAM_UNROLL) -> str:
    """The function ``kernel`` of ``stream_module`` alone."""
    kind = access.removesuffix(" nt")
    return _stream_kernel(kind, width, vectors=vectors, nt=kind != access) + ATTRIBUTES


def kept_vectors(vectors: int) -> int:
    """How many vectors a read kernel gives back."""
    return min(READ_KEPT, vectors)


def _stream_kernel(access: str, width: int, *, vectors: int, nt: bool) -> str:
    lanes = width // 8
    vector = f"<{lanes} x double>"
    reads, writes = STREAMS[access]
    body: list[str] = []
    for place in range(vectors):
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
        for index in range(kept_vectors(vectors)):
            source = vectors - kept_vectors(vectors) + index
            kept += (
                f"  %kept{index}.at = getelementptr {vector}, ptr %out, i64 {index}\n"
                f"  store {vector} %first{source}, ptr %kept{index}.at, align {width}\n"
            )
    return (
        f"declare {vector} @llvm.fma.v{lanes}f64({vector}, {vector}, {vector})\n"
        "define void @kernel(ptr %args) #0 {\nentry:\n"
        + argument(0, "out", "ptr")
        + argument(1, "first", "ptr")
        + argument(2, "second", "ptr")
        + argument(3, "iterations")
        + argument(4, "passes")
        + argument(5, "scalar", "double")
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
