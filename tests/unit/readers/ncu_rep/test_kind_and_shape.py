"""What a result is, and how large its grid."""

import pytest

from mansard.readers.ncu_rep.kind import Evidence, result_kind
from mansard.readers.ncu_rep.shape import grid_in_blocks


def _kind(name="k", *, code=True, shape=True, marks=False, replay="kernel", graphs="node"):
    evidence = Evidence(name, has_code=code, has_shape=shape, has_graph_metrics=marks)
    return result_kind(evidence, replay=replay, graph_profiling=graphs)


def test_a_result_with_code_and_shape_is_a_kernel():
    assert _kind() == "kernel"
    assert _kind(replay=None, graphs=None) == "kernel"
    assert _kind(replay="application") == "kernel"


def test_a_kernel_without_a_module_is_a_kernel_by_its_name_and_shape():
    assert _kind(code=False) == "kernel"


@pytest.mark.parametrize("replay", ["range", "app-range"])
def test_range_replay_gives_ranges_only(replay):
    assert _kind(replay=replay) == "range"


def test_a_result_called_range_is_one_unless_it_has_code_of_its_own():
    assert _kind("range", code=False) == "range"
    # extern "C" __global__ void range(...)
    assert _kind("range") == "kernel"


def test_graph_metrics_without_code_make_a_graph():
    assert _kind(code=False, marks=True) == "graph"


def test_a_node_of_a_graph_is_a_kernel_though_it_has_graph_metrics():
    assert _kind(marks=True) == "kernel"


def test_with_graph_profiling_marked_results_and_those_without_code_are_graphs():
    assert _kind(marks=True, graphs="graph") == "graph"
    assert _kind(code=False, graphs="graph") == "graph"
    # A kernel launched outside of any graph.
    assert _kind(graphs="graph") == "kernel"


def test_what_cannot_be_told_has_no_kind():
    assert _kind(None, code=False, shape=False) is None
    assert _kind("something", shape=False) is None


def _grid(grid, block, *, size=None, metric=False, before_2020=False):
    return grid_in_blocks(
        grid, block, grid_size=size, has_grid_metric=metric, before_2020=before_2020
    )


def test_the_grid_is_in_blocks_from_2020_on():
    assert _grid((256, 4, 1), (128, 2, 1), metric=True) == (256, 4, 1)
    assert _grid((256, 4, 1), (128, 2, 1)) == (256, 4, 1)


def test_the_grid_of_2019_is_in_threads_when_its_size_says_so():
    # 256 x 4 threads in blocks of 128 x 2 make 2 x 2 blocks.
    assert _grid((256, 4, 1), (128, 2, 1), size=4.0) == (2, 2, 1)


def test_the_grid_is_in_blocks_when_its_size_says_so():
    assert _grid((256, 4, 1), (128, 2, 1), size=1024.0, before_2020=True) == (256, 4, 1)


def test_without_a_size_a_report_of_2019_is_taken_by_its_age():
    assert _grid((256, 4, 1), (128, 2, 1), before_2020=True) == (2, 2, 1)


def test_threads_that_do_not_fill_blocks_cannot_be_threads():
    assert _grid((100, 1, 1), (128, 1, 1), before_2020=True) == (100, 1, 1)


@pytest.mark.parametrize(
    ("grid", "block"),
    [((0, 0, 0), (0, 0, 0)), (None, (1, 1, 1)), ((1, 1, 1), None), ((1, 1, 1), (0, 1, 1))],
)
def test_a_failed_launch_has_no_grid(grid, block):
    assert _grid(grid, block) is None
