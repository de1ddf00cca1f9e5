"""The collector on a real GPU: known work, phases against their truth, graphs, compilers, exits."""

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
if not torch.cuda.is_available():
    pytest.skip("needs an NVIDIA GPU", allow_module_level=True)

import duckdb  # noqa: E402

import mansard  # noqa: E402
from mansard.collect import phase, profile, profile_callable  # noqa: E402

# Warnings of the frameworks are not ours.
pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("default")]

ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join(
        (str(Path(mansard.__file__).parents[1]), os.environ.get("PYTHONPATH", ""))
    ),
    "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
}
COMMAND = (
    "import typer; from mansard.cli.profile import CONTEXT, profile; "
    "app = typer.Typer(pretty_exceptions_enable=False); "
    "app.command(context_settings=CONTEXT)(profile); app()"
)


def rows(path, columns, where="true"):
    return duckdb.sql(
        f"SELECT {columns} FROM read_parquet('{path}') WHERE {where} ORDER BY launch"
    ).fetchall()


def totals(path, columns, where="true"):
    return duckdb.sql(f"SELECT {columns} FROM read_parquet('{path}') WHERE {where}").fetchall()


def run_command(*arguments, cwd, timeout=120, **options):
    return subprocess.run(
        [sys.executable, "-c", COMMAND, *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        env=ENVIRONMENT,
        **options,
    )


def small_model():
    return torch.nn.Sequential(
        torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.LayerNorm(512), torch.nn.Linear(512, 8)
    ).cuda()


@pytest.mark.parametrize(
    ("dtype", "column"),
    [
        (torch.bfloat16, "flop_tensor_bf16"),
        (torch.float16, "flop_tensor_fp16"),
        (torch.float64, "flop_tensor_fp64"),
    ],
    ids=str,
)
def test_work_of_a_matrix_product_is_exactly_2mnk(dtype, column, tmp_path):
    size = 1024
    a = torch.randn(size, size, device="cuda", dtype=dtype)
    run = profile_callable(torch.mm, a, a, path=tmp_path / "run.parquet", steps=2)
    found = rows(run.files[0], f"step, sum({column}) OVER (PARTITION BY step)", "kind='kernel'")
    assert {value for _, value in found} == {2.0 * size**3}, run.all_notices
    assert {step for step, _ in found} == {0, 1}
    assert {"names-unchecked", "level-lowered"}.isdisjoint(n.code for n in run.all_notices)


def test_bytes_of_an_addition_are_those_of_its_operands(tmp_path):
    a = torch.randn(1 << 26, device="cuda")
    b, out = torch.randn_like(a), torch.empty_like(a)
    run = profile_callable(lambda: torch.add(a, b, out=out), path=tmp_path / "r.parquet", steps=1)
    ((flop, l2, dram),) = rows(run.files[0], "flop_vector_fp32, bytes_l2, bytes_dram")
    # PyTorch adds as a + alpha * b: one fused multiply-add an element.
    assert flop == 2 << 26
    assert l2 == pytest.approx(3 * 4 * (1 << 26), rel=0.01)
    assert dram == pytest.approx(3 * 4 * (1 << 26), rel=0.05)


def train(named, loop, path, phases):
    """Take a trace of a loop; ``named`` says whether the program names its phases itself."""
    with profile(path, level="trace", warmup=2, phases=phases) as taken:
        while not taken.done:
            with taken.step():
                loop(phase if named else contextlib.nullcontext)
    assert taken.failure is None, taken.failure
    return rows(path, "name, phase", "kind='kernel'")


def plain_loop():
    model, x = small_model(), torch.randn(64, 256, device="cuda")
    optimizer = torch.optim.AdamW(model.parameters())

    def step(name):
        with name("forward"):
            loss = model(x).square().mean()
        optimizer.zero_grad()
        with name("backward"):
            loss.backward()
        with name("optimizer"):
            optimizer.step()

    return step


def accumulating_loop():
    model, x = small_model(), torch.randn(64, 256, device="cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(name):
        for _ in range(3):
            with name("forward"):
                loss = model(x).square().mean()
            with name("backward"):
                loss.backward()
        with name("optimizer"):
            optimizer.step()
            optimizer.zero_grad()

    return step


def adversarial_loop():
    one, two, x = small_model(), small_model(), torch.randn(64, 256, device="cuda")
    optimizers = [torch.optim.Adam(each.parameters()) for each in (one, two)]

    def step(name):
        for model, optimizer in zip((one, two), optimizers, strict=True):
            with name("forward"):
                loss = model(x).mean()
            optimizer.zero_grad()
            with name("backward"):
                loss.backward()
            with name("optimizer"):
                optimizer.step()

    return step


def evaluating_loop():
    model, x = small_model(), torch.randn(64, 256, device="cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(name):
        with name("forward"):
            loss = model(x).mean()
        with name("backward"):
            loss.backward()
        with name("optimizer"):
            optimizer.step()
        model.eval()
        with name("evaluation"), torch.no_grad():
            model(x)
        model.train()

    return step


@pytest.mark.parametrize("make", [plain_loop, accumulating_loop, adversarial_loop, evaluating_loop])
def test_phases_found_are_those_that_the_program_names(make, tmp_path):
    loop = make()
    truth = train(True, loop, tmp_path / "own.parquet", "own")
    found = train(False, loop, tmp_path / "torch.parquet", "torch")
    assert len(truth) > 10
    assert {p for _, p in truth} >= {"forward", "backward", "optimizer"}
    # Work between the named ranges has no name in the truth, so only named launches are compared.
    differing = [(a, b) for a, b in zip(truth, found, strict=True) if a[1] and a != b]
    assert differing == []


def test_a_cuda_graph_is_one_row_with_all_its_work(tmp_path):
    a = torch.randn(1024, 1024, device="cuda", dtype=torch.bfloat16)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            (a @ a).relu()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        b = (a @ a).relu()
    run = profile_callable(graph.replay, path=tmp_path / "run.parquet", steps=1)
    assert "cuda-graph" in {notice.code for notice in run.all_notices}, run.all_notices
    ((kind, name, flop, vector, duration),) = rows(
        run.files[0], "kind, name, flop_tensor_bf16, flop_vector_fp32, duration_s"
    )
    assert (kind, name, flop, vector) == ("graph", "(step)", 2.0 * 1024**3, None)
    assert 0 < duration < 1e-3
    assert b.shape == (1024, 1024)


def test_phases_level_counts_the_same_work_as_kernel_by_kernel(tmp_path):
    loop = plain_loop()
    sums = []
    for level in ("phases", "counters"):
        path = tmp_path / f"{level}.parquet"
        with profile(path, level=level) as taken:
            while not taken.done:
                with taken.step():
                    loop(contextlib.nullcontext)
        assert taken.failure is None, taken.failure
        assert taken.recording.level == level, taken.recording.notices
        sums.append(
            duckdb.sql(
                "SELECT phase, sum(flop_vector_fp32) FROM read_parquet("
                f"'{path}') WHERE phase IS NOT NULL GROUP BY phase ORDER BY phase"
            ).fetchall()
        )
    assert sums[0] == sums[1]
    assert len(sums[0]) == 3


def test_a_compiled_step_is_counted_kernel_by_kernel(tmp_path):
    model, x = small_model(), torch.randn(64, 256, device="cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    compiled = torch.compile(model)

    def step():
        loss = compiled(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    run = profile_callable(step, path=tmp_path / "run.parquet", steps=1, warmup=5)
    names = [name for (name,) in rows(run.files[0], "name", "kind='kernel'")]
    assert any(name.startswith("triton_") for name in names)
    assert not any(notice.partial for notice in run.all_notices)


def test_a_decode_step_of_a_language_model(tmp_path):
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(n_layer=4, n_head=8, n_embd=512, vocab_size=1024)
    model = transformers.GPT2LMHeadModel(config).cuda().half().eval()
    prompt = torch.randint(0, 1024, (4, 128), device="cuda")
    with torch.no_grad():
        cache = model(prompt, use_cache=True).past_key_values
        token = prompt[:, -1:]

        def step():
            out = model(token, past_key_values=cache, use_cache=True)
            cache.crop(128)
            return out

        run = profile_callable(step, path=tmp_path / "run.parquet", steps=1)
    (count, known) = totals(run.files[0], "count(*), count(bytes_dram)", "kind='kernel'")[0]
    assert count > 50
    assert known == count


def test_iterations_that_never_repeat_are_not_guessed_at(tmp_path):
    sizes = iter(range(64, 100_000, 32))

    def step():
        torch.randn(next(sizes), 256, device="cuda") * 2

    run = profile_callable(step, path=tmp_path / "run.parquet", steps=1)
    codes = [notice.code for notice in run.all_notices]
    assert "iterations-differ" in codes
    assert totals(run.files[0], "count(flop_vector_fp32)", "kind='kernel'") == [(0,)]


def test_an_error_in_the_step_is_the_programs_own_and_frees_the_counters(tmp_path):
    x = torch.randn(512, 512, device="cuda")
    path = tmp_path / "run.parquet"
    taken = profile(path, warmup=0)

    def fail_in_the_fourth_step():
        with taken:
            for number in range(100):
                with taken.step():
                    x @ x
                    if number == 3:
                        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_in_the_fourth_step()
    assert taken.run is not None
    assert taken.run.partial
    again = profile_callable(torch.mm, x, x, path=path, steps=1)
    assert not again.partial


SCRIPT = """
    import sys, torch
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = False
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1))
    model.cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x = torch.randn(128, 64, device="cuda")
    for number in range(int(sys.argv[1])):
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    print("loss", loss.item().hex(), "steps", number + 1, __name__)
"""


def test_the_command_leaves_the_programs_result_as_it_is(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(textwrap.dedent(SCRIPT))
    alone = subprocess.run(
        [sys.executable, script, "40"], capture_output=True, text=True, check=True
    )
    under = run_command("-o", tmp_path / "run.parquet", script, "40", cwd=tmp_path)
    assert under.returncode == 0, under.stderr
    assert under.stdout == alone.stdout
    found = rows(tmp_path / "run.parquet", "phase", "kind='kernel' AND phase IS NOT NULL")
    phases = {phase for (phase,) in found}
    assert phases == {"forward", "backward", "optimizer"}


def test_the_command_stops_the_program_when_asked(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(textwrap.dedent(SCRIPT))
    run = run_command(
        "--then", "stop", "-o", tmp_path / "r.parquet", script, "9999999", cwd=tmp_path
    )
    assert run.returncode == 0, run.stderr
    assert "loss" not in run.stdout
    assert (tmp_path / "r.parquet").exists()


def test_nvtx_ranges_of_the_program_are_its_phases(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(
        textwrap.dedent("""
            import torch
            x = torch.randn(256, 256, device="cuda", requires_grad=True)
            for _ in range(30):
                with torch.cuda.nvtx.range("step"):
                    with torch.cuda.nvtx.range("one"):
                        y = (x @ x).sum()
                    mark = torch.cuda.nvtx.range_start("two")
                    y.backward()
                    torch.cuda.nvtx.range_end(mark)
        """)
    )
    run = run_command(
        "--iterations-by", "range step", "--phases", "own", "-o", "r.parquet", script, cwd=tmp_path
    )
    assert run.returncode == 0, run.stderr
    found = {p for (p,) in rows(tmp_path / "r.parquet", "range", "kind='kernel'")}
    assert found == {"one", "two"} or found == {"step/one", "step/two"}, found


def test_a_jax_step_is_counted_kernel_by_kernel(tmp_path):
    pytest.importorskip("jax")
    (tmp_path / "steps.py").write_text(
        textwrap.dedent("""
            import jax, jax.numpy as jnp
            @jax.jit
            def _update(w, x):
                def loss(w):
                    return jnp.mean((x @ w) ** 2)
                return w - 0.1 * jax.grad(loss)(w)
            def update(w, x):
                return _update(w, x).block_until_ready()
        """)
    )
    script = tmp_path / "main.py"
    script.write_text(
        textwrap.dedent("""
            import steps, jax
            w = jax.random.normal(jax.random.key(0), (512, 512))
            x = jax.random.normal(jax.random.key(1), (512, 512))
            for _ in range(30):
                w = steps.update(w, x)
        """)
    )
    run = run_command(
        "--iterations-by", "call steps:update", "-o", "r.parquet", script, cwd=tmp_path
    )
    assert run.returncode == 0, run.stderr
    assert "command buffers are off" in run.stderr
    found = rows(tmp_path / "r.parquet", "kind, name, flop_tensor_tf32, flop_vector_fp32")
    kernels = [row for row in found if row[0] == "kernel"]
    assert len(kernels) >= 2, found
    assert all(row[3] is not None for row in kernels), run.stderr


def test_ctrl_c_in_a_pass_keeps_the_trace_and_ends_cleanly(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(
        textwrap.dedent("""
            import mansard, time, torch
            from mansard.collect import profile
            x = torch.randn(512, 512, device="cuda")
            with profile("r.parquet", warmup=0) as p:
                for number in range(10_000):
                    with p.step():
                        x @ x
                        if number == 4:
                            print("ready", flush=True)
                            time.sleep(30)
        """)
    )
    process = subprocess.Popen(
        [sys.executable, script],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert b"KeyboardInterrupt" in error
    # 1 or -SIGINT is Python's own end; -SIGSEGV would be ours.
    assert process.returncode in (1, 130, -signal.SIGINT), error
    assert mansard.open(tmp_path / "r.parquet").partial


def test_a_process_that_just_ends_hands_the_counters_back(tmp_path):
    script = tmp_path / "train.py"
    script.write_text(
        textwrap.dedent("""
            import torch
            from mansard.collect import profile
            x = torch.randn(512, 512, device="cuda")
            p = profile("r.parquet", warmup=0).__enter__()
            for number in range(5):
                p.begin_step()
                x @ x
                p.end_step()
        """)
    )
    run = subprocess.run(
        [sys.executable, script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env=ENVIRONMENT,
    )
    assert run.returncode == 0, run.stderr
    assert Path(tmp_path / "r.parquet").exists()


def test_operators_and_modules_are_named(tmp_path, monkeypatch):
    # Another test has compiled in this process; this program does not.
    dynamo = sys.modules.get("torch._dynamo.utils")
    if dynamo is not None:
        monkeypatch.setattr(
            dynamo, "counters", type(dynamo.counters)(dynamo.counters.default_factory)
        )
    loop = plain_loop()
    with profile(tmp_path / "run.parquet", level="trace", operators=True) as taken:
        while not taken.done:
            with taken.step():
                loop(contextlib.nullcontext)
    found = rows(tmp_path / "run.parquet", "phase, op, module", "kind='kernel'")
    assert ("forward", "aten::addmm", "0") in found
    assert any(p == "backward" and module == "3" for p, _, module in found)
    assert all(op for _, op, _ in found)
