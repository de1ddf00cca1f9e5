"""PyTorch itself on the CPU: hooks, phases, operators and iterations of real training loops."""

import contextlib
import itertools
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch (any build)")

import mansard  # noqa: E402
from mansard.collect.launches import Launch, Trace  # noqa: E402
from mansard.collect.marks import MarkRecorder, listening, phase  # noqa: E402
from mansard.collect.torch_hooks import TorchHooks  # noqa: E402
from mansard.collect.torch_names import TorchNamer  # noqa: E402
from mansard.collect.torch_phases import find_phases  # noqa: E402
from mansard.collect.watch import PhaseRule, Watch  # noqa: E402

pytestmark = pytest.mark.filterwarnings("default")


def model():
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))


def plain(name):
    net, x = model(), torch.randn(4, 8)
    optimizer = torch.optim.Adam(net.parameters())
    with name("forward"):
        loss = net(x).square().mean()
    with name("backward"):
        loss.backward()
    with name("optimizer"):
        optimizer.step()


def accumulating(name):
    net, x = model(), torch.randn(4, 8)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(3):
        with name("forward"):
            loss = net(x).mean()
        with name("backward"):
            loss.backward()
    with name("optimizer"):
        optimizer.step()


def adversarial(name):
    x = torch.randn(4, 8)
    for net in (model(), model()):
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        with name("forward"):
            loss = net(x).mean()
        with name("backward"):
            loss.backward()
        with name("optimizer"):
            optimizer.step()


def evaluating(name):
    net, x = model(), torch.randn(4, 8)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    with name("forward"):
        loss = net(x).mean()
    with name("backward"):
        loss.backward()
    with name("optimizer"):
        optimizer.step()
    net.eval()
    with name("evaluation"), torch.no_grad():
        net(x)
    net.train()


def frozen_part(name):
    net, x = model(), torch.randn(4, 8)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    net.train()
    net[0].eval()
    with name("forward"):
        loss = net(x).mean()
    with name("backward"):
        loss.backward()
    with name("optimizer"):
        optimizer.step()


@pytest.mark.parametrize("loop", [plain, accumulating, adversarial, evaluating, frozen_part])
def test_phases_found_cover_those_that_the_program_names(loop):
    # A clock that counts its readings: the order of events is all that matters.
    clock = itertools.count().__next__
    truth = MarkRecorder(clock)
    watch = Watch(clock, PhaseRule.TORCH)
    hooks = TorchHooks(torch, watch.note)
    begin = clock()
    hooks.install()
    with listening(truth):
        loop(phase)
    hooks.remove()
    named = truth.take()
    trace = watch.name_phases(Trace((), (), begin, clock()))
    # Names come just before the hooks and end just after them, so ranges are matched by overlap.
    found = [max(trace.ranges, key=lambda one: overlap(one, each)).name for each in named]
    assert found == [each.name for each in named]


def overlap(one, other):
    return min(one.end_ns, other.end_ns) - max(one.start_ns, other.start_ns)


def test_removed_hooks_leave_pytorch_as_it_was():
    before = (torch.autograd.backward, torch.autograd.grad, torch.nn.Module.train)
    seen = []
    hooks = TorchHooks(torch, seen.append)
    hooks.install()
    assert torch.autograd.backward is not before[0]
    hooks.remove()
    plain(lambda _: contextlib.nullcontext())
    assert (torch.autograd.backward, torch.autograd.grad, torch.nn.Module.train) == before
    assert seen == []


def test_hooks_can_be_silenced_from_inside_an_optimizer_step():
    seen = []

    def stepped(_):
        seen.append("step")
        hooks.silence()

    hooks = TorchHooks(torch, lambda _: None, stepped)
    hooks.install()
    plain(lambda _: contextlib.nullcontext())
    plain(lambda _: contextlib.nullcontext())
    hooks.remove()
    assert seen == ["step"]


def test_a_backward_without_training_loop_is_still_a_backward():
    watch = Watch(time.time_ns, PhaseRule.TORCH)
    hooks = TorchHooks(torch, watch.note)
    hooks.install()
    x = torch.randn(3, requires_grad=True)
    torch.autograd.grad(x.sum(), x)
    hooks.remove()
    names = {each.name for each in find_phases(watch._events, 0, time.time_ns())}
    assert names == {"forward", "backward"}


def test_operators_and_modules_of_forward_and_backward():
    net, x = model(), torch.randn(4, 8)
    namer = TorchNamer(torch, time.time_ns)
    stamps = {}

    class Stamp(torch.autograd.Function):
        """Notes the time in forward and in backward, where a kernel would be launched."""

        @staticmethod
        def forward(context, value):
            stamps["forward"] = time.time_ns()
            time.sleep(0.001)
            return value.clone()

        @staticmethod
        def backward(context, gradient):
            stamps["backward"] = time.time_ns()
            time.sleep(0.001)
            return gradient.clone()

    class Stamping(torch.nn.Module):
        def forward(self, value):
            return Stamp.apply(value)

    net.insert(1, Stamping())
    namer.start()
    net(x).mean().backward()
    namer.stop()
    launches = [
        Launch(kind="kernel", name="k", device=0, stream=0, start_ns=0, end_ns=1, launch_ns=when)
        for when in (stamps["forward"] + 500_000, stamps["backward"] + 500_000)
    ]
    (forward_op, forward_module), (backward_op, backward_module) = namer.name(launches)
    assert (forward_op, forward_module) == ("Stamp", "1")
    assert "Stamp" in backward_op
    assert backward_module == "1"


PROGRAM = """
import sys, torch
net = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(int(sys.argv[1])):
    net(torch.ones(2, 4)).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
print(__name__, sys.argv)
"""

DRIVER = """
import sys, pathlib
from mansard.collect import program
from mansard.collect.boundaries import Rule, boundaries
class Steps:
    done = False
    def __init__(self): self.seen = []
    def next_step(self): self.seen.append("next"); self.done = len(self.seen) == 5
    def begin_step(self): self.seen.append("begin")
    def end_step(self): self.seen.append("end")
    def note(self, event): pass
steps = Steps()
with boundaries(Rule.parse(sys.argv[1]), steps):
    program.run_script(sys.argv[2:])
print(steps.seen)
"""


def run_driver(tmp_path, rule, program, *arguments):
    script = tmp_path / "train.py"
    script.write_text(program)
    return subprocess.run(
        [sys.executable, "-c", DRIVER, rule, str(script), *arguments],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(mansard.__file__).parents[1])},
    ).stdout.splitlines()


def test_each_optimizer_step_of_an_unchanged_script_ends_an_iteration(tmp_path):
    shown, seen = run_driver(tmp_path, "optimizer", PROGRAM, "9")
    assert shown == f"__main__ ['{tmp_path / 'train.py'}', '9']"
    assert seen == "['next', 'next', 'next', 'next', 'next']"


def test_ranges_of_torch_nvtx_are_iterations(tmp_path):
    program = (
        "import torch\n"
        "torch.cuda.nvtx._nvtx = type('N', (), {n: staticmethod(lambda *a: 7) for n in "
        "('rangePushA', 'rangePop', 'rangeStartA', 'rangeEnd')})\n"
        "for _ in range(2):\n"
        "    with torch.cuda.nvtx.range('step'):\n"
        "        with torch.cuda.nvtx.range('inner'):\n"
        "            pass\n"
        "token = torch.cuda.nvtx.range_start('step'); torch.cuda.nvtx.range_end(token)\n"
    )
    (seen,) = run_driver(tmp_path, "range step", program)
    assert seen == "['begin', 'end', 'begin', 'end', 'begin', 'end']"


def test_calls_of_a_function_are_iterations(tmp_path):
    (tmp_path / "mylib.py").write_text("class A:\n    def go(self, x):\n        return x + 1\n")
    program = "import mylib\nprint([mylib.A().go(n) for n in range(2)])\n"
    shown, seen = run_driver(tmp_path, "call mylib:A.go", program)
    assert shown == "[1, 2]"
    assert seen == "['begin', 'end', 'begin', 'end']"
