"""Measure the ceilings of this CPU."""

import dataclasses
import datetime as dt
import os
import platform

from mansard.bench.cpu import jit
from mansard.bench.cpu.ceilings import order_caveats
from mansard.bench.cpu.describe import caveats_of, facts_of, machine_name, provenance_of
from mansard.bench.cpu.limits import Microarchitecture, microarchitecture
from mansard.bench.cpu.plan import make_plan
from mansard.bench.cpu.processor import read_processor
from mansard.bench.cpu.rig import Rig
from mansard.bench.cpu.sampling import FULL, QUICK
from mansard.bench.cpu.session import Progress, Session
from mansard.bench.cpu.team import Team
from mansard.errors import DeviceError
from mansard.model.machine import Machine


@dataclasses.dataclass(frozen=True, slots=True)
class CpuOptions:
    """What to measure, and how thoroughly.

    Attributes:
        quick: fewer and shorter samples: under 20 s instead of about a minute.
        only: parts to measure, see ``plan.make_plan``; everything by default.
        threads: how many; by default one on each core that the process may use.
    """

    quick: bool = False
    only: tuple[str, ...] = ()
    threads: int | None = None


def measure_cpu(options: CpuOptions | None = None, progress: Progress | None = None) -> Machine:
    """Measure compute and bandwidth ceilings of the CPU that this process may use.

    Every value is the median of samples of all threads, one pinned to each core; samples of one
    thread stand in the evidence. An interrupt (Ctrl-C) ends the measurement and keeps what is
    finished; the machine is then ``partial``.

    Args:
        options: what to measure.
        progress: called before each part with its name and the share of parts done.

    Raises:
        DeviceError: not Linux, or an architecture without kernels.
        UsageError: options that do not fit this machine.
    """
    options = options or CpuOptions()
    processor = read_processor()
    plan = make_plan(processor, threads=options.threads, only=options.only)
    load = os.getloadavg()[0]
    began = dt.datetime.now(dt.UTC)
    try:
        core = microarchitecture(jit.host_target().cpu, processor.flags)
    except DeviceError as error:
        core = Microarchitecture("unknown", reason=str(error))
    with Team(plan.cpus) as team:
        session = Session(
            plan, Rig(processor, team), core=core, effort=QUICK if options.quick else FULL
        )
        partial = session.run(progress or (lambda _label, _share: None))
    found = session.ceilings
    return Machine(
        name=machine_name(processor, core),
        basis="measured",
        device=facts_of(processor, core),
        ceilings=tuple(found),
        caveats=(
            *caveats_of(processor, core, plan.cpus, load=load, ceilings=found),
            *session.caveats,
            *order_caveats(found),
        ),
        partial=partial,
        provenance={
            "tool": "mansard bench",
            "date": began.isoformat(timespec="seconds"),
            "effort": "quick" if options.quick else "full",
            **provenance_of(processor, core, plan.cpus),
            **jit.versions(),
            "system": f"{platform.system()} {platform.release()}",
            "load_average_before": load,
            "load_average_after": os.getloadavg()[0],
            "rule": "value = median of the samples; best and spread in the evidence",
        },
        curves=session.curves,
    )
