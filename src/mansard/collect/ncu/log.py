"""What ncu says while it works, read piece by piece: progress, errors, how the program ended."""

import dataclasses
import re

#: ncu's own lines start so; the mark can also stand in the middle of a line that it interrupted.
_MARK = re.compile(r"==(PROF|ERROR|WARNING)== ?")
_PROFILING = re.compile(r'Profiling "(.*?)"(?: - (\d+))?(?: \((\d+)/(\d+)\))?(?::|$)', re.DOTALL)
_PERCENT = re.compile(r"(\d{1,3})%")
_PASSES = re.compile(r"- (\d+) pass(?:es)?\b")
_APPLICATION_PASS = re.compile(r"[Aa]pplication replay pass (\d+)")
_EXIT_CODE = re.compile(r"application returned an error code \((-?\d+)\)")
_NO_KERNELS = "No kernels were profiled"
_SHUT_DOWN = "Trying to shutdown target application"
#: Messages kept; a program that fails at each launch would fill the memory.
_MOST_MESSAGES = 1000
#: A piece of a line without an end is cut here: kernel names are shortened by ncu.
_LONGEST_LINE = 1 << 16


@dataclasses.dataclass(frozen=True, slots=True)
class Step:
    """How far ncu is.

    Attributes:
        kernels: launches that are counted.
        name: kernel under way, as ncu shortens it; None before the first.
        passes: passes of one launch, once known.
        share: part of the launch under way that is done, 0 to 1.
    """

    kernels: int = 0
    name: str | None = None
    passes: int | None = None
    share: float = 0.0

    @property
    def current_pass(self) -> int | None:
        """Number of the pass under way, from 1; None while the number of passes is unknown."""
        if not self.passes:
            return None
        return min(self.passes, int(self.share * self.passes) + 1)


class Log:
    """The log of one run of ncu; grows by ``feed``.

    Attributes:
        messages: errors and warnings, with their mark.
        exit_code: code with which ncu says that the program ended; None when it says nothing.
        shut_down: whether ncu ended the program by itself.
        no_kernels: whether ncu says that nothing was profiled.
        processes: processes that ncu connected to.
    """

    def __init__(self) -> None:
        self.messages: list[str] = []
        self.exit_code: int | None = None
        self.shut_down = False
        self.no_kernels = False
        self.processes = 0
        self._step = Step()
        self._open = ""

    @property
    def has_errors(self) -> bool:
        """Whether ncu spoke of an error."""
        return any(message.startswith("==ERROR==") for message in self.messages)

    @property
    def step(self) -> Step:
        """How far ncu is."""
        return self._step

    def add(self, other: "Log") -> None:
        """Take what another run said, after what this one did."""
        self.messages += [each for each in other.messages if each not in self.messages]
        self.exit_code = other.exit_code if self.exit_code is None else self.exit_code
        self.shut_down |= other.shut_down
        self.no_kernels |= other.no_kernels
        self.processes = max(self.processes, other.processes)
        self._step = dataclasses.replace(
            other.step, kernels=self._step.kernels + other.step.kernels
        )

    def feed(self, text: str) -> None:
        """Take what was added to the log."""
        *whole, self._open = (self._open + text).split("\n")
        for line in whole:
            self._line(line)
        self._open = self._open[-_LONGEST_LINE:]
        # The line of a launch grows while it is counted.
        for kind, body in _parts(self._open):
            if kind == "PROF":
                self._profiling(body, ended=False)

    def close(self) -> None:
        """Take what is left as a line."""
        rest, self._open = self._open, ""
        if rest:
            self._line(rest)

    def _line(self, line: str) -> None:
        for kind, body in _parts(line):
            if kind == "PROF":
                self._profiling(body, ended=True)
                self.processes += body.startswith("Connected to process")
                self.shut_down |= body.startswith(_SHUT_DOWN)
                continue
            self.no_kernels |= _NO_KERNELS in body
            code = _EXIT_CODE.search(body)
            if code is not None:
                self.exit_code = int(code[1])
            if len(self.messages) < _MOST_MESSAGES:
                self.messages.append(f"=={kind}== {body}")

    def _profiling(self, body: str, *, ended: bool) -> None:
        found = _PROFILING.match(body)
        if found is None:
            return
        rest = body[found.end() :]
        again = _APPLICATION_PASS.search(rest)
        passes = _PASSES.search(rest) or again
        share = max((int(percent) / 100 for percent in _PERCENT.findall(rest)), default=0.0)
        # A line that a signal or an error cut off is a launch that was not counted.
        # Where the program runs once a pass, each launch has a line in each of these runs.
        whole = ended and (passes or share >= 1) and (again is None or int(again[1]) == 1)
        self._step = Step(
            kernels=self._step.kernels + bool(whole),
            name=found[1],
            passes=int(passes[1]) if passes else self._step.passes,
            share=0.0 if ended else min(1.0, share),
        )


def _parts(line: str) -> list[tuple[str, str]]:
    """Kind and text of each of ncu's messages in a line; the program's own text is left out."""
    marks = list(_MARK.finditer(line))
    ends = [mark.start() for mark in marks[1:]] + [len(line)]
    return [
        (mark[1], line[mark.end() : end].strip()) for mark, end in zip(marks, ends, strict=False)
    ]
