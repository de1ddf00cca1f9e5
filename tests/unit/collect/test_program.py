"""Unchanged programs: import hooks, hooks in a stand-in for PyTorch, iterations, command line."""

import contextlib
import itertools
import sys
import textwrap
import types

import pytest
import typer

from mansard.cli.profile import CONTEXT
from mansard.cli.profile import profile as profile_command
from mansard.collect import frameworks, marks, program
from mansard.collect.boundaries import Rule, boundaries
from mansard.collect.imports import after_import
from mansard.collect.instruments import Level
from mansard.collect.program import prepare_environment, profile_program
from mansard.collect.torch_hooks import TorchHooks
from mansard.collect.torch_phases import Event
from mansard.errors import CollectError, DeviceError, InputError, UsageError

TORCH = """
import types
from torch.optim import optimizer

class Module:
    def __init__(self, *children): self.children, self.training = children, True
    def train(self, mode=True):
        self.training = mode
        for child in self.children: child.train(mode)
        return self
    def eval(self): return self.train(False)

class Optimizer:
    def step(self):
        for hook in list(optimizer.before.values()): hook(self, (), {})
        for hook in optimizer.after.values(): hook(self, (), {})

nn = types.SimpleNamespace(Module=Module)
autograd = types.SimpleNamespace(backward=lambda: "gradients", grad=lambda: "gradients")
cuda = types.SimpleNamespace(nvtx=types.SimpleNamespace(
    range_push=lambda name: 1, range_pop=lambda: 0,
    range_start=lambda name: 42, range_end=lambda token: None))
_C = types.SimpleNamespace(_cudart=types.SimpleNamespace(
    cudaProfilerStart=lambda: 0, cudaProfilerStop=lambda: 0))
"""
OPTIMIZER = """
before, after = {}, {}
class Handle:
    def __init__(self, table, hook): self.table, self.key = table, id(self); table[self.key] = hook
    def remove(self): self.table.pop(self.key, None)
def register_optimizer_step_pre_hook(hook): return Handle(before, hook)
def register_optimizer_step_post_hook(hook): return Handle(after, hook)
"""


@pytest.fixture
def torch_folder(tmp_path, monkeypatch):
    """A folder with a stand-in for PyTorch: the parts that are hooked, and nothing else."""
    for name in [name for name in sys.modules if name.split(".")[0] == "torch"]:
        monkeypatch.delitem(sys.modules, name)
    folder = tmp_path / "site"
    (folder / "torch/optim").mkdir(parents=True)
    (folder / "torch/__init__.py").write_text(TORCH)
    (folder / "torch/optim/__init__.py").write_text("")
    (folder / "torch/optim/optimizer.py").write_text(OPTIMIZER)
    monkeypatch.syspath_prepend(str(folder))
    yield folder
    for name in [name for name in sys.modules if name.split(".")[0] == "torch"]:
        sys.modules.pop(name)


class Steps:
    """Notes what boundaries tell."""

    def __init__(self, most=1000):
        self.seen, self.events, self.most = [], [], most

    @property
    def done(self):
        return len(self.seen) >= self.most

    def begin_step(self):
        self.seen.append("begin")

    def end_step(self):
        self.seen.append("end")

    def next_step(self):
        self.seen.append("next")

    def note(self, event):
        self.events.append(event)


def run(tmp_path, rule, text, steps=None):
    steps = steps or Steps()
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(text))
    with boundaries(Rule.parse(rule), steps):
        program.run_script([str(script), "--lr", "1"])
    return steps


def test_a_module_is_acted_on_right_after_its_import(tmp_path, monkeypatch):
    (tmp_path / "fresh_module.py").write_text("value = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    seen = []
    with after_import("fresh_module", lambda module: seen.append(module.value)):
        assert seen == []
        import fresh_module

        assert seen == [1]
    assert type(fresh_module.__spec__.loader).__name__ == "SourceFileLoader"
    assert not [each for each in sys.meta_path if type(each).__module__ == after_import.__module__]
    sys.modules.pop("fresh_module")


def test_a_module_that_is_loaded_already_is_acted_on_at_once():
    seen = []
    with after_import("json", seen.append):
        assert seen == [sys.modules["json"]]


def test_a_module_that_does_not_exist_stays_missing():
    with after_import("no_such_module_here", lambda _: None), pytest.raises(ImportError):
        import no_such_module_here  # noqa: F401


def test_hooks_see_backward_optimizer_and_the_outermost_train(torch_folder):
    import torch

    events = []
    hooks = TorchHooks(torch, events.append)
    hooks.install()
    model = torch.nn.Module(torch.nn.Module(), torch.nn.Module())
    model.eval()
    model.train()
    assert torch.autograd.backward() == "gradients"
    torch.Optimizer().step()
    hooks.remove()
    torch.Optimizer().step()
    torch.autograd.backward()
    assert events == [
        Event.EVAL,
        Event.TRAIN,
        Event.BACKWARD_BEGIN,
        Event.BACKWARD_END,
        Event.OPTIMIZER_BEGIN,
        Event.OPTIMIZER_END,
    ]


def test_a_wrapper_put_over_ours_is_not_torn_away(torch_folder):
    import torch

    hooks = TorchHooks(torch, lambda _: None)
    hooks.install()
    ours = torch.autograd.backward
    torch.autograd.backward = lambda: ("theirs", ours())
    hooks.remove()
    assert torch.autograd.backward() == ("theirs", "gradients")


def test_a_failing_backward_still_ends_its_phase(torch_folder):
    import torch

    def fail():
        raise KeyError

    torch.autograd.backward = fail
    events = []
    hooks = TorchHooks(torch, events.append)
    hooks.install()
    with pytest.raises(KeyError):
        torch.autograd.backward()
    hooks.remove()
    assert events == [Event.BACKWARD_BEGIN, Event.BACKWARD_END]


def test_optimizer_steps_of_an_unchanged_script_are_iterations(torch_folder, tmp_path, capsys):
    steps = run(
        tmp_path,
        "optimizer",
        """
        import sys, torch
        optimizer = torch.Optimizer()
        for _ in range(4):
            optimizer.step()
        print(__name__, sys.argv[1:], sys.path[0] == __file__.rsplit("/", 1)[0])
        """,
    )
    assert steps.seen == ["next"] * 3
    assert capsys.readouterr().out == "__main__ ['--lr', '1'] True\n"


def test_hooks_fall_silent_inside_a_step_when_all_is_collected(torch_folder, tmp_path):
    steps = run(
        tmp_path,
        "optimizer",
        """
        import torch
        optimizer = torch.Optimizer()
        for _ in range(20):
            optimizer.step()
            torch.autograd.backward()
        """,
        Steps(most=2),
    )
    assert steps.seen == ["next", "next"]
    assert len(steps.events) < 12


@pytest.mark.parametrize("calls", ["range_push('step'); n.range_pop()", None])
def test_nvtx_ranges_of_a_name_are_iterations(torch_folder, tmp_path, calls):
    body = calls or "range_end(n.range_start('step'))"
    steps = run(
        tmp_path,
        "range step",
        f"""
        import torch
        n = torch.cuda.nvtx
        for _ in range(2):
            n.range_push('other')
            n.{body}
            n.range_pop()
        """,
    )
    assert steps.seen == ["begin", "end"] * 2


def test_phases_of_a_name_are_iterations(tmp_path):
    steps = run(
        tmp_path,
        "range step",
        """
        from mansard.collect import phase
        for _ in range(2):
            with phase("step"), phase("forward"):
                pass
        """,
    )
    assert steps.seen == ["begin", "end"] * 2


def test_start_and_stop_of_the_cuda_profiler_are_iterations(torch_folder, tmp_path):
    steps = run(
        tmp_path,
        "cudaProfilerStart",
        """
        import torch
        runtime = torch._C._cudart
        assert runtime.cudaProfilerStart() == 0
        assert runtime.cudaProfilerStop() == 0
        """,
    )
    assert steps.seen == ["begin", "end"]


def test_calls_of_a_function_or_method_are_iterations(tmp_path, monkeypatch):
    (tmp_path / "steplib.py").write_text(
        "class Trainer:\n    def fit(self, x):\n        return x + 1\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    steps = run(tmp_path, "call steplib:Trainer.fit", "import steplib; steplib.Trainer().fit(1)")
    assert steps.seen == ["begin", "end"]
    sys.modules.pop("steplib")


def test_a_function_that_does_not_exist_is_told(tmp_path, monkeypatch):
    (tmp_path / "steplib2.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(UsageError, match="steplib2 has no 'fit'"):
        run(tmp_path, "call steplib2:fit", "import steplib2")
    sys.modules.pop("steplib2", None)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("optimizer", Rule("optimizer")),
        ("cudaProfilerStart", Rule("cudaProfilerStart")),
        ("range train step", Rule("range", "train step")),
        ("range:step", Rule("range", "step")),
        ("call pkg.mod:f", Rule("call", "pkg.mod:f")),
    ],
)
def test_rules_for_iterations_are_read(text, rule):
    assert Rule.parse(text) == rule


@pytest.mark.parametrize("text", ["", "range", "call f", "optimiser", "call:f"])
def test_other_rules_are_refused_with_those_that_exist(text):
    with pytest.raises(UsageError, match="cudaProfilerStart"):
        Rule.parse(text)


class FakeProfile:
    """A profile that is done after some steps."""

    def __init__(self, steps=3):
        self.left, self.events, self.closed, self.inside = steps, [], 0, False
        self.watch = types.SimpleNamespace(note=self.events.append)

    @property
    def done(self):
        return self.left <= 0

    def __enter__(self):
        return self

    def begin_step(self):
        assert not self.inside
        self.inside = True

    def end_step(self):
        assert self.inside
        self.inside = False
        self.left -= 1

    def close(self):
        self.closed += 1


@pytest.fixture
def fake_profile(monkeypatch):
    made = FakeProfile()
    monkeypatch.setattr(program, "Profile", lambda *_, **__: made)
    monkeypatch.setattr(program, "load_driver", lambda: None)
    monkeypatch.setattr(program, "prepare_environment", lambda _: False)
    return made


LOOP = """
from mansard.collect import phase
for number in range(10):
    with phase("step"):
        pass
print("ran", number + 1)
"""


def test_the_program_goes_on_after_the_collection(fake_profile, tmp_path, capsys):
    script = tmp_path / "s.py"
    script.write_text(LOOP)
    options = program.ProgramOptions(iterations_by=Rule("range", "step"))
    taken = profile_program([str(script)], tmp_path / "r.parquet", options=options)
    assert taken is fake_profile
    assert fake_profile.left == 0
    assert fake_profile.closed == 1
    assert capsys.readouterr().out == "ran 10\n"


@pytest.mark.parametrize(("line", "told"), [("", []), ("import jax", ["command buffers"])])
def test_command_buffers_are_told_to_those_who_use_jax(
    fake_profile, tmp_path, monkeypatch, line, told
):
    monkeypatch.setattr(program, "prepare_environment", lambda _: True)
    (tmp_path / "jax.py").write_text("")
    monkeypatch.delitem(sys.modules, "jax", raising=False)
    script = tmp_path / "s.py"
    script.write_text(line + LOOP)
    said = []
    options = program.ProgramOptions(iterations_by=Rule("range", "step"))
    profile_program([str(script)], tmp_path / "r.parquet", options=options, say=said.append)
    assert [word in text for text in said for word in told] == [True] * len(told)
    assert len(said) == len(told)


def test_the_program_is_stopped_when_asked(fake_profile, tmp_path, capsys):
    script = tmp_path / "s.py"
    script.write_text(LOOP)
    options = program.ProgramOptions(iterations_by=Rule("range", "step"), then="stop")
    profile_program([str(script)], tmp_path / "r.parquet", options=options)
    assert fake_profile.closed == 1
    assert capsys.readouterr().out == ""


def test_an_error_of_the_program_is_its_own(fake_profile, tmp_path):
    script = tmp_path / "s.py"
    script.write_text(LOOP + "raise LookupError('mine')\n")
    options = program.ProgramOptions(iterations_by=Rule("range", "step"))
    argv, path = list(sys.argv), list(sys.path)
    with pytest.raises(LookupError, match="mine"):
        profile_program([str(script)], tmp_path / "r.parquet", options=options)
    assert fake_profile.closed == 1
    assert (sys.argv, sys.path) == (argv, path)
    assert marks._listeners == []


def test_a_program_without_iterations_is_told_what_to_say(fake_profile, tmp_path):
    script = tmp_path / "s.py"
    script.write_text("x = 1\n")
    with pytest.raises(CollectError, match="--iterations-by range, call or cudaProfilerStart"):
        profile_program([str(script)], tmp_path / "r.parquet")


def test_a_script_or_module_that_does_not_exist_is_told(fake_profile, tmp_path):
    with pytest.raises(InputError, match=r"there is no script .*nowhere\.py"):
        profile_program([str(tmp_path / "nowhere.py")], tmp_path / "r.parquet")
    with pytest.raises(InputError, match="there is no module nowhere_at_all"):
        profile_program(["nowhere_at_all.train"], tmp_path / "r.parquet", run=program.run_module)


def test_a_module_runs_as_with_python_m(fake_profile, tmp_path, monkeypatch, capsys):
    package = tmp_path / "somepackage"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "train.py").write_text(LOOP + "import sys; print(__name__, sys.argv[1:])\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    options = program.ProgramOptions(iterations_by=Rule("range", "step"))
    profile_program(
        ["somepackage.train", "-x"], tmp_path / "r", options=options, run=program.run_module
    )
    assert capsys.readouterr().out == "ran 10\n__main__ ['-x']\n"
    for name in ("somepackage", "somepackage.train"):
        sys.modules.pop(name, None)


def test_command_buffers_of_jax_are_switched_off_once(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--other")
    monkeypatch.setattr(program, "find_cupti", lambda: "/lib/libcupti.so.13")
    monkeypatch.delenv("NVTX_INJECTION64_PATH", raising=False)
    monkeypatch.setattr(program.importlib.util, "find_spec", lambda name: name == "jax")
    assert prepare_environment(Level.COUNTERS)
    assert program.os.environ["XLA_FLAGS"] == "--other --xla_gpu_enable_command_buffer="
    assert program.os.environ["NVTX_INJECTION64_PATH"] == "/lib/libcupti.so.13"
    assert not prepare_environment(Level.COUNTERS)


def test_a_users_own_choice_of_command_buffers_and_nvtx_stays(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_gpu_enable_command_buffer=FUSION")
    monkeypatch.setenv("NVTX_INJECTION64_PATH", "/mine.so")
    monkeypatch.setattr(program, "find_cupti", lambda: "/lib/libcupti.so.13")
    assert not prepare_environment(Level.COUNTERS)
    assert program.os.environ["XLA_FLAGS"] == "--xla_gpu_enable_command_buffer=FUSION"
    assert program.os.environ["NVTX_INJECTION64_PATH"] == "/mine.so"


def invoke(*arguments):
    app = typer.Typer(pretty_exceptions_enable=False)
    app.command(context_settings=CONTEXT)(profile_command)
    app(args=list(arguments), standalone_mode=False)


def test_options_after_the_program_belong_to_the_program(monkeypatch, tmp_path):
    seen = {}

    def spy(command, output, *, options, run):
        seen.update(command=command, output=output, options=options, run=run.__name__)
        run_made = types.SimpleNamespace(all_notices=(), partial=False)
        return types.SimpleNamespace(run=run_made, failure=None)

    monkeypatch.setattr(program, "profile_program", spy)
    invoke("--steps", "2", "-o", "x.parquet", "train.py", "--steps", "7", "-o", "y")
    assert seen["command"] == ["train.py", "--steps", "7", "-o", "y"]
    assert seen["options"].profile.procedure.steps == 2
    assert str(seen["output"]) == "x.parquet"
    assert seen["run"] == "run_script"
    invoke("--columns", "bytes_dram*", "-m", "pkg.train", "--lr", "1")
    assert seen["command"] == ["pkg.train", "--lr", "1"]
    assert seen["run"] == "run_module"
    assert seen["options"].profile.columns == (
        "duration_s",
        "sm_clock_hz",
        "bytes_dram",
        "bytes_dram_read",
        "bytes_dram_write",
    )


def test_a_pattern_without_columns_is_told():
    with pytest.raises(UsageError, match="no column matches dram_bytes"):
        invoke("--columns", "dram_bytes", "train.py")


def test_without_a_gpu_the_command_says_so_before_the_program_starts(tmp_path, monkeypatch):
    def no_driver():
        raise DeviceError("no NVIDIA driver was found")

    monkeypatch.setattr(program, "load_driver", no_driver)
    script = tmp_path / "s.py"
    script.write_text("raise SystemExit('it ran')\n")
    with pytest.raises(DeviceError):
        invoke(str(script))


def module_with(monkeypatch, name, **names):
    module = types.ModuleType(name)
    vars(module).update(names)
    parts = name.split(".")
    for depth in range(1, len(parts)):
        outer = ".".join(parts[:depth])
        if outer not in sys.modules:
            monkeypatch.setitem(sys.modules, outer, types.ModuleType(outer))
    monkeypatch.setitem(sys.modules, name, module)


class Taken:
    def __init__(self):
        self.seen = []
        self.count = itertools.count()

    def begin_step(self):
        self.seen.append("begin")

    def end_step(self):
        self.seen.append("end")

    def close(self):
        self.seen.append("close")


def test_callbacks_make_each_batch_a_step(monkeypatch):
    base = type("Callback", (), {})
    module_with(monkeypatch, "lightning.pytorch.callbacks", Callback=base)
    module_with(monkeypatch, "transformers", TrainerCallback=base)
    module_with(monkeypatch, "keras.callbacks", Callback=base)
    for make, begin, end in (
        (frameworks.lightning_callback, "on_train_batch_start", "on_train_batch_end"),
        (frameworks.transformers_callback, "on_step_begin", "on_step_end"),
        (frameworks.keras_callback, "on_train_batch_begin", "on_train_batch_end"),
    ):
        taken = Taken()
        callback = make(taken)
        assert isinstance(callback, base)
        getattr(callback, begin)("trainer", "module", batch=3, logs=None)
        getattr(callback, end)("trainer", batch=3)
        assert taken.seen == ["begin", "end"]


def test_an_exception_in_lightning_keeps_what_was_recorded(monkeypatch):
    module_with(monkeypatch, "lightning.pytorch.callbacks", Callback=type("Callback", (), {}))
    taken = Taken()
    frameworks.lightning_callback(taken).on_exception("trainer", "module", KeyError())
    assert taken.seen == ["close"]


def test_the_older_name_of_lightning_is_found_too(monkeypatch):
    monkeypatch.setitem(sys.modules, "lightning.pytorch.callbacks", None)
    base = type("Callback", (), {})
    module_with(monkeypatch, "pytorch_lightning.callbacks", Callback=base)
    with contextlib.suppress(ModuleNotFoundError):
        assert isinstance(frameworks.lightning_callback(Taken()), base)
