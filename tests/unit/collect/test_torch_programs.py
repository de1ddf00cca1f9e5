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
from mansard.collect import torch_names  # noqa: E402
from mansard.collect.launches import Launch, Trace  # noqa: E402
from mansard.collect.marks import MarkRecorder, listening, phase  # noqa: E402
from mansard.collect.torch_hooks import TorchHooks  # noqa: E402
from mansard.collect.torch_names import ModuleCall, OperatorCall, TorchNamer, operators  # noqa: E402
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


def kernels_at(*times_ns):
    return [
        Launch(kind="kernel", name="k", device=0, stream=0, start_ns=0, end_ns=1, launch_ns=when)
        for when in times_ns
    ]


class Named:
    """What a namer told of a step, each operator standing for a kernel launched in its middle."""

    def __init__(self, step):
        self.namer = TorchNamer(torch, time.perf_counter_ns)
        self.namer.start()
        try:
            step()
        finally:
            self.namer.stop()
        middles = [(call.start_ns + call.end_ns) // 2 for call in self.namer._calls]
        self.found = self.namer.name(kernels_at(*middles))

    def module_of(self, operator):
        """Modules of all calls of an operator, in order."""
        return [module for name, module in self.found if name == operator]


@pytest.fixture
def nothing_compiled(monkeypatch):
    """Another test of this process may have compiled something, and PyTorch counts it for good."""
    monkeypatch.setattr(torch_names, "_compiles", lambda: False)


def convolutions():
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3),
        torch.nn.Sequential(torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.Conv2d(4, 5, 1)),
        torch.nn.Flatten(),
        torch.nn.Linear(180, 2),
    )


def test_operators_and_modules_of_forward_and_backward(nothing_compiled):
    net, x = convolutions(), torch.randn(2, 3, 8, 8)
    named = Named(lambda: net(x).mean().backward())
    assert named.module_of("aten::convolution") == ["0", "1.2"]
    assert named.module_of("aten::convolution_backward") == ["1.2", "0"]
    assert named.module_of("aten::native_batch_norm") == ["1.0"]
    assert named.module_of("aten::native_batch_norm_backward") == ["1.0"]
    assert named.module_of("aten::threshold_backward") == ["1.1"]
    # The linear layer's gradients of its input and its weight; the mean belongs to no module.
    assert named.module_of("aten::addmm") == ["3"]
    assert set(named.module_of("aten::mm")) == {"3"}
    assert named.module_of("aten::mean") == [None]


def test_the_optimizer_has_operators_and_no_module(nothing_compiled):
    net, x = convolutions(), torch.randn(2, 3, 8, 8)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, foreach=True)
    net(x).mean().backward()
    named = Named(optimizer.step)
    assert set(named.module_of("aten::_foreach_add_")) == {None}


def test_a_launch_between_operators_has_the_module_alone(nothing_compiled):
    stamps = []

    class Stamping(torch.nn.Module):
        def forward(self, value):
            stamps.append(time.perf_counter_ns())
            time.sleep(0.001)
            return value

    net = torch.nn.Sequential(torch.nn.Linear(2, 2), Stamping())
    named = Named(lambda: net(torch.ones(1, 2)))
    assert named.namer.name(kernels_at(stamps[0], None)) == ((None, "1"), (None, None))


def test_what_is_computed_again_in_backward_is_not_ascribed_by_number(nothing_compiled):
    inner = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
    calls = [OperatorCall("aten::mm", 10, 20, node=1)]
    modules = [ModuleCall("a", 0, 5, 0, 3, thread=1), ModuleCall("a", 6, 8, 0, 3, thread=2)]
    assert operators(kernels_at(15), calls, modules[:1]) == (("aten::mm", "a"),)
    assert operators(kernels_at(15), calls, modules) == (("aten::mm", None),)
    checkpoint = torch.utils.checkpoint.checkpoint
    x = torch.ones(1, 2, requires_grad=True)
    named = Named(lambda: checkpoint(inner, x, use_reentrant=False).sum().backward())
    assert named.module_of("aten::addmm") == ["0", "0"]


def test_being_watched_changes_neither_results_nor_gradients(nothing_compiled):
    torch.manual_seed(1)
    net, x = convolutions(), torch.randn(2, 3, 8, 8)
    net(x).mean().backward()
    alone = [each.grad.clone() for each in net.parameters()]
    net.zero_grad()
    Named(lambda: net(x).mean().backward())
    assert all(torch.equal(a, b.grad) for a, b in zip(alone, net.parameters(), strict=True))


def test_a_program_that_compiles_is_left_alone(monkeypatch):
    import torch._dynamo.utils

    monkeypatch.setitem(torch._dynamo.utils.counters, "frames", {"total": 1})
    named = Named(lambda: convolutions()(torch.randn(1, 3, 8, 8)))
    assert named.found == ()
    assert "torch.compile" in named.namer.obstacle


def test_an_error_in_the_watched_step_is_the_programs_own(nothing_compiled):
    net = convolutions()
    with pytest.raises(RuntimeError, match="channels"):
        Named(lambda: net(torch.randn(1, 1, 8, 8)))
    assert torch.utils._python_dispatch._get_current_dispatch_mode() is None
    Named(lambda: net(torch.randn(1, 3, 8, 8)))


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
