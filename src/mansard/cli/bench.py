"""``mansard bench``: what this machine can do."""

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mansard.cli import INTERRUPTED

if TYPE_CHECKING:
    from mansard.model.machine import Machine

_PICTURES = (".png", ".svg", ".pdf")


def bench(
    device: Annotated[
        str | None,
        typer.Option("--device", "-d", help="cpu or cuda:N; by default cuda:0 if usable."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Machine file to write (- is standard output); a folder with --all.",
        ),
    ] = None,
    every_gpu: Annotated[
        bool, typer.Option("--all", help="Every GPU of this node, one after another.")
    ] = False,
    together: Annotated[
        bool, typer.Option("--together", help="With --all: all at the same time.")
    ] = False,
    everything: Annotated[
        bool,
        typer.Option("--extra", help="Also add-only, multiply-only, WMMA, more types and sizes."),
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only", help="Only ceilings whose name contains this, or matches *; repeat."
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer samples, no curves.")] = False,
    study: Annotated[
        str | None, typer.Option("--study", help="fp16: the four kernels of the Roofline authors.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the machine as JSON.")] = False,
    chart: Annotated[
        Path | None, typer.Option("--chart", help="Draw the roofs: .png, .svg or .pdf.")
    ] = None,
) -> None:
    """Measure every ceiling of a GPU (or CPU) with its evidence.

    A whole GPU takes about half a minute. Ctrl-C keeps what is finished and exits with 130.
    """
    from mansard.bench.entry import Options
    from mansard.bench.entry import bench as measure
    from mansard.cli.progress import progress_bar

    to_stdout = json or str(output) == "-"
    if every_gpu or together:
        _check_all(every_gpu=every_gpu, device=device, output=output, chart=chart)
    else:
        _check_targets(output, chart)
    options = Options(everything=everything, quick=quick, only=tuple(only or ()), study=study)
    if every_gpu:
        from mansard.cli.bench_node import run_node

        with _no_gpu_told():
            run_node(options, output, together=together, json=json)
        return
    with _no_gpu_told(), progress_bar() as advance:
        machine = measure(device, options=options, progress=advance)
    machine = _named(machine if quick else _with_chip_limits(machine, device), output)
    _print(machine, to_stderr=to_stdout)
    if to_stdout:
        _write_stdout(machine)
    if output is not None and str(output) != "-":
        from mansard.store.machine_file import save_machine

        save_machine(machine, output)
        sys.stderr.write(f"wrote {output}\n")
    elif not to_stdout:
        sys.stderr.write("to keep it: mansard bench -o machine.json\n")
    if chart is not None:
        _draw(machine, chart)
    if machine.partial:
        raise typer.Exit(INTERRUPTED)


@contextlib.contextmanager
def _no_gpu_told() -> Iterator[None]:
    """Where there is no GPU to measure, the message names the paragraph that says what to do."""
    from mansard.bench.gpu import NoGpuError

    try:
        yield
    except NoGpuError as error:
        error.slug = error.slug or "no-gpu"
        raise


def _check_all(
    *, every_gpu: bool, device: str | None, output: Path | None, chart: Path | None
) -> None:
    from mansard.cli.bench_node import check_folder
    from mansard.errors import UsageError

    if not every_gpu:
        raise UsageError("--together is for --all: give both")
    if device is not None or chart is not None:
        other = "--device" if device is not None else "--chart"
        raise UsageError(f"--all measures every GPU: leave out {other}")
    if str(output) == "-":
        raise UsageError("--all writes a file for each GPU: give a folder to -o, or use --json")
    check_folder(output)


def _check_targets(output: Path | None, chart: Path | None) -> None:
    """Say before the long measurement what would fail after it."""
    from mansard.errors import OutputError, UsageError

    if chart is not None and chart.suffix.lower() not in _PICTURES:
        raise UsageError(f"cannot draw '{chart}': the name must end in {', '.join(_PICTURES)}")
    for target in (output, chart):
        if target is None or str(target) == "-":
            continue
        folder = target.absolute().parent
        if target.exists() and not target.is_file():
            raise OutputError(f"cannot write {target}: it is not a regular file; give a file name")
        if not folder.is_dir():
            raise OutputError(f"cannot write {target}: there is no folder {folder}")
        if not os.access(folder, os.W_OK):
            raise OutputError(f"cannot write {target}: the folder {folder} cannot be written to")


def _named(machine: "Machine", output: Path | None) -> "Machine":
    """A machine takes the name of its file."""
    import msgspec

    if output is None or str(output) == "-" or not output.stem.strip():
        return machine
    return msgspec.structs.replace(machine, name=output.stem)


def _with_chip_limits(machine: "Machine", device: str | None) -> "Machine":
    """What the chip's own counters state, in the evidence; where they can be read."""
    import msgspec

    from mansard.errors import MansardError
    from mansard.validate import beside_ceilings, chip_limits

    if machine.device.compute_capability is None or machine.partial:
        return machine
    try:
        return beside_ceilings(machine, chip_limits(device or "cuda:0"))
    except MansardError as error:
        why = str(error)
    except KeyboardInterrupt:  # the ceilings are measured by now, and must not be lost
        why = "interrupted"
    said = {"counter_limits": f"not read: {why}"}
    return msgspec.structs.replace(machine, provenance={**machine.provenance, **said})


def _write_stdout(machine: "Machine") -> None:
    import msgspec

    fields = {"schema": machine.schema, **msgspec.to_builtins(machine, order="deterministic")}
    text = msgspec.json.format(msgspec.json.encode(fields), indent=2)
    sys.stdout.buffer.write(text + b"\n")
    sys.stdout.buffer.flush()


def _draw(machine: "Machine", chart: Path) -> None:
    from mansard.charts.static import machine_figure, save_figure
    from mansard.cli.write import write_whole

    figure = machine_figure(machine)
    write_whole(chart, lambda stream: save_figure(figure, stream, chart.suffix[1:]))
    sys.stderr.write(f"wrote {chart}\n")


def _print(machine: "Machine", *, to_stderr: bool) -> None:
    from mansard.cli.machine_table import print_machine

    print_machine(machine, to_stderr=to_stderr)
