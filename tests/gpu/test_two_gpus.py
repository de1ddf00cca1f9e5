"""Several GPUs of one host: data-parallel training with NCCL, counted on every rank; NVLink."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="needs PyTorch")
if torch.cuda.device_count() < 2:
    pytest.skip("needs two NVIDIA GPUs", allow_module_level=True)

import duckdb  # noqa: E402

import mansard  # noqa: E402

pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("default")]

SOURCE = Path(mansard.__file__).parents[1]
ENVIRONMENT = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join((str(SOURCE), os.environ.get("PYTHONPATH", ""))),
}
#: A network with a product of known work: 2 x 512 x 1024 x 1024 FLOP forward on each rank.
TRAINING = """
import os, sys, torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
torch.manual_seed(0)
net = torch.nn.Sequential(*(torch.nn.Linear(1024, 1024, bias=False) for _ in range(8)))
net = DistributedDataParallel(net.cuda().bfloat16(), bucket_cap_mb=4)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
x = torch.randn(512, 1024, device="cuda", dtype=torch.bfloat16)
for step in range(int(sys.argv[1])):
    if step == int(os.environ.get("DIES_AT", -1)) and rank == 1:
        os._exit(9)
    net(x).float().square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
torch.cuda.synchronize()
print("rank", rank, "done", flush=True)
dist.destroy_process_group()
"""


def free_port():
    """A port of this machine; a job that ended a moment ago may still hold the usual one."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def train(folder, *, steps=60, timeout=150, **environment):
    """Profile the training on two ranks; returns the finished process and its seconds."""
    script = folder / "train.py"
    script.write_text(TRAINING, encoding="utf-8")
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    command += ["--master-addr", "127.0.0.1", "--master-port", free_port()]
    command += ["--no-python", sys.executable, "-m", "mansard", "profile"]
    command += ["-o", str(folder / "run.parquet"), str(script), str(steps)]
    start = time.monotonic()
    process = subprocess.Popen(
        command,
        cwd=folder,
        env={**ENVIRONMENT, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        pytest.fail(f"the job hung: {process.communicate()[0][-3000:]}")
    return process.returncode, output, time.monotonic() - start


def asked(path, question):
    """The rows that a query over a run file gives."""
    with duckdb.connect() as connection:
        return connection.execute(question, [str(path)]).fetchall()


def found_in(path):
    """What a run file holds, for the message of a test that fails."""
    by_phase = asked(
        path,
        "SELECT step, phase, kind, count(*), count(flop_tensor_bf16), sum(flop_tensor_bf16) "
        "FROM read_parquet(?) GROUP BY ALL ORDER BY ALL",
    )
    (origin,) = mansard.open(path).provenance
    return "\n".join(map(str, [*by_phase, *origin.notices]))


def test_every_rank_is_counted_and_nothing_hangs(tmp_path):
    code, output, _ = train(tmp_path)
    assert code == 0, output[-3000:]
    assert output.count("done") == 2
    for rank in (0, 1):
        path = tmp_path / "run" / f"rank{rank}.parquet"
        counted = asked(
            path,
            "SELECT sum(flop_tensor_bf16) FROM read_parquet(?) WHERE phase = 'forward'",
        )
        assert counted == [(8 * 2 * 512 * 1024 * 1024,)], f"{found_in(path)}\n{output[-3000:]}"
        gathered = asked(
            path,
            "SELECT count(*) FROM read_parquet(?) WHERE lower(name) LIKE '%nccl%allreduce%'",
        )
        assert gathered >= [(1,)], found_in(path)
    run = mansard.open(tmp_path / "run")
    assert {each.rank for each in mansard.analyze(run).fleet.ranks} == {0, 1}


def test_a_rank_that_dies_leaves_the_file_of_the_other(tmp_path):
    code, output, seconds = train(tmp_path, steps=5000, DIES_AT="400")
    assert code != 0
    assert seconds < 150, output[-3000:]
    assert (tmp_path / "run" / "rank0.parquet").exists(), output[-3000:]


def test_the_link_to_a_neighbour_is_measured_and_never_called_pcie(tmp_path):
    path = tmp_path / "machine.json"
    subprocess.run(
        [sys.executable, "-m", "mansard", "bench", "--quick", "--only", "link*", "-o", str(path)],
        check=True,
        env=ENVIRONMENT,
        timeout=120,
    )
    links = {
        each["access"]: each
        for each in json.loads(path.read_text(encoding="utf-8"))["ceilings"]
        if each["instruction"] in ("NVLink", "peer link")
    }
    assert {*links} == {"read", "write", "copy"}
    for each in links.values():
        assert each.get("status", "measured") == "measured", each["reason"]
        assert each["evidence"]["link_sources"]["NVLink P2P"]
        assert each.get("share_of_limit", 0) <= 1
        assert ("limit_at_clock" in each) == (each["instruction"] == "NVLink")
    # The engines of both GPUs work at the same time, so both ways are more than one.
    assert links["copy"]["value"] > 1.5 * links["read"]["value"]
