"""The public function: measure the device that the user names, or the best one there is."""

import dataclasses
from collections.abc import Callable

import msgspec

from mansard.errors import UsageError
from mansard.model.machine import Machine

#: Called before each part with its name and the share that is done.
Progress = Callable[[str, float], None]


@dataclasses.dataclass(frozen=True, slots=True)
class Options:
    """What to measure, and how thoroughly.

    Attributes:
        everything: also ceilings that most users do not need (add and multiply alone, more types,
            plain WMMA, more library sizes).
        quick: fewer and shorter samples, no curves.
        only: patterns of names of ceilings.
        study: ``fp16``: the four kernels of the Roofline authors.
    """

    everything: bool = False
    quick: bool = False
    only: tuple[str, ...] = ()
    study: str | None = None


def bench(
    device: str | None = None,
    *,
    options: Options | None = None,
    progress: Progress | None = None,
) -> Machine:
    """Measure the ceilings of a GPU or of this computer's CPU.

    Args:
        device: ``cuda:N`` or ``cpu``; by default the first GPU, or the CPU where there is none.
        options: what to measure.
        progress: called before each part with its name and the share that is done.

    Returns:
        The machine: every ceiling with samples, clock, limit and evidence. It is ``partial`` when
        an interrupt (Ctrl-C) ended the measurement.

    Raises:
        DeviceError: the device cannot be used.
        UsageError: options that do not fit the device.
    """
    options = options or Options()
    kind, _, number = (device or "cuda:0").partition(":")
    if kind == "cpu" and not number:
        return _cpu(options, progress)
    if kind != "cuda" or not (number or "0").isdecimal():
        raise UsageError(f"no device '{kind[:40]}': give cpu, or cuda:0 (or another number)")
    from mansard.bench.gpu import NoGpuError, measure_gpu  # noqa: PLC0415
    from mansard.bench.plan import Choice  # noqa: PLC0415

    choice = Choice(
        everything=options.everything,
        quick=options.quick,
        only=options.only,
        study=options.study,
    )
    try:
        return measure_gpu(int(number or 0), choice, progress)
    except NoGpuError as error:
        if device is not None or options.study is not None:
            raise
        why = f"No GPU is used, the CPU is measured: {error}."
        if progress is not None:
            progress(why, 0.0)
        machine = _cpu(options, progress)
        return msgspec.structs.replace(machine, caveats=(*machine.caveats, why))


def _cpu(options: Options, progress: Progress | None) -> Machine:
    if options.study is not None:
        raise UsageError(f"the study '{options.study}' needs a GPU: give --device cuda:0")
    from mansard.bench.cpu import CpuOptions, measure_cpu  # noqa: PLC0415

    return measure_cpu(CpuOptions(quick=options.quick, only=options.only), progress)
