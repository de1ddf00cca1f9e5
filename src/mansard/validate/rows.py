"""Sums over the launches of each phase of a run."""

from mansard import engine
from mansard.model.columns import QUANTITY_COLUMNS
from mansard.model.run import Run


def sums_by_phase(run: Run) -> dict[str, tuple[int, dict[str, float | None]]]:
    """Kernels and summed quantities of each phase.

    A sum is None where the quantity of one launch is unknown. The clock is the mean, not a sum.
    """
    names = [column.name for column in QUANTITY_COLUMNS]
    parts = [
        f"CASE WHEN count({quoted}) = count(*) THEN "
        f"{'avg' if name == 'sm_clock_hz' else 'sum'}({quoted}) END"
        for name, quoted in ((name, engine.identifier(name)) for name in names)
    ]
    with engine.connect() as connection:
        rows = connection.execute(
            f"SELECT phase, count(*), {', '.join(parts)} FROM {engine.parquet(run.files)} "
            "WHERE kind = 'kernel' AND phase IS NOT NULL GROUP BY phase"
        ).fetchall()
    return {
        phase: (int(launches), dict(zip(names, values, strict=True)))
        for phase, launches, *values in rows
    }
