"""What the compiler really made: the instructions of the innermost loop of a kernel."""

import dataclasses
import re

_LABEL = re.compile(r"^(\.?[A-Za-z_][\w.$]*):")
# Jumps of x86-64 and branches of aarch64, with the label they go to.
_BRANCH = re.compile(
    r"^(?:j[a-z]+|b(?:\.[a-z]+)?|cbn?z|tbn?z)\s+(?:.*[\s,])?(\.?[A-Za-z_][\w.$]*)$"
)
_MEMORY = {"x86_64": re.compile(r"\([^)]*%r"), "aarch64": re.compile(r"\[\s*(?:x|sp)")}
_STACK = {
    "x86_64": re.compile(r"\([^)]*%r[sb]p"),
    "aarch64": re.compile(r"\[\s*(?:sp|x29)"),
}


@dataclasses.dataclass(frozen=True, slots=True)
class Loop:
    """The innermost loop of a function.

    Attributes:
        instructions: its instructions, comments and directives taken away.
        architecture: ``x86_64`` or ``aarch64``.
    """

    instructions: tuple[str, ...]
    architecture: str

    def count(self, mnemonic: str) -> int:
        """Instructions whose name matches the regular expression."""
        pattern = re.compile(rf"(?:\{{vex\}}\s+)?(?:{mnemonic})\b")
        return sum(1 for line in self.instructions if pattern.match(line))

    @property
    def memory_operands(self) -> int:
        """Instructions that touch memory."""
        return sum(1 for line in self.instructions if _MEMORY[self.architecture].search(line))

    @property
    def stack_operands(self) -> int:
        """Instructions that touch the stack: a register did not suffice."""
        return sum(1 for line in self.instructions if _STACK[self.architecture].search(line))

    def vector_bytes(self, width: int) -> tuple[int, int]:
        """Bytes that vector instructions of one iteration read, and write, in memory.

        Args:
            width: bytes of the vectors that the kernel was written with.
        """
        if self.architecture == "aarch64":
            return self._neon_bytes()
        register = {64: "zmm", 32: "ymm", 16: "xmm"}[width]
        read = written = 0
        for line in self.instructions:
            if not _MEMORY["x86_64"].search(line) or f"%{register}" not in line:
                continue
            # AT&T order: the destination stands last.
            if line.rstrip().endswith(")"):
                written += width
            else:
                read += width
        return read, written

    def _neon_bytes(self) -> tuple[int, int]:
        read = written = 0
        sizes = {"q": 16, "d": 8}
        for line in self.instructions:
            name, _, rest = line.partition(" ")
            names = rest.strip().split(",")
            kind = names[0].strip()[:1]
            if kind not in sizes or "[" not in rest:
                continue
            registers = 2 if name in ("ldp", "ldnp", "stp", "stnp") else 1
            moved = registers * sizes[kind]
            if name.startswith("ld"):
                read += moved
            elif name.startswith("st"):
                written += moved
        return read, written


def innermost_loop(assembly: str, architecture: str, function: str = "kernel") -> Loop:
    """The innermost loop of a function; the longest one if it has several.

    Args:
        assembly: text as LLVM emits it (AT&T syntax on x86-64).
        architecture: ``x86_64`` or ``aarch64``.
        function: its name.

    Returns:
        The loop; without instructions where there is none.
    """
    lines = _function(assembly, architecture, function)
    labels: dict[str, int] = {}
    spans: list[tuple[int, int]] = []
    for place, line in enumerate(lines):
        label = _LABEL.match(line)
        if label:
            labels[label[1]] = place
        branch = _BRANCH.match(line)
        if branch and branch[1] in labels:
            spans.append((labels[branch[1]], place))
    innermost = [
        span
        for span in spans
        if not any(span[0] <= other[0] and other[1] <= span[1] and other != span for other in spans)
    ]
    start, end = max(innermost, key=lambda span: span[1] - span[0], default=(0, -1))
    body = (line for line in lines[start : end + 1] if not _LABEL.match(line))
    return Loop(tuple(body), architecture)


def _function(assembly: str, architecture: str, function: str) -> list[str]:
    comment = "//" if architecture == "aarch64" else "#"
    lines: list[str] = []
    inside = False
    for raw in assembly.splitlines():
        line = raw.split(comment, 1)[0].replace("\t", " ").strip()
        if line == f"{function}:":
            inside = True
        elif line.startswith((".size", ".Lfunc_end")) and inside:
            break
        elif inside and line and (not line.startswith(".") or _LABEL.match(line)):
            lines.append(line)
    return lines
