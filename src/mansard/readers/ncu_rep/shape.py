"""Grid and block of a launch, with the meaning that field 10 had in 2019."""

import math

Shape = tuple[int, int, int]


def grid_in_blocks(
    grid: Shape | None,
    block: Shape | None,
    *,
    grid_size: float | None,
    has_grid_metric: bool,
    before_2020: bool,
) -> Shape | None:
    """The grid in blocks; None for a launch that failed (block of 0 threads) or has no shape.

    Reports of 2019 store threads along each axis (grid x block). They are known by their own
    ``grid_size``, and where they have none, by not storing a version.

    Args:
        grid: field 10 of the result.
        block: threads along x, y, z.
        grid_size: number of blocks, where a metric says it.
        has_grid_metric: whether the result has the grid as metrics too, as from 2020 on.
        before_2020: whether the file stores no version of Nsight Compute.
    """
    if grid is None or block is None or 0 in block or 0 in grid:
        return None
    if has_grid_metric or any(along % size for along, size in zip(grid, block, strict=True)):
        return grid
    divided = (grid[0] // block[0], grid[1] // block[1], grid[2] // block[2])
    if grid_size is not None:
        return divided if math.prod(divided) == grid_size else grid
    return divided if before_2020 else grid
