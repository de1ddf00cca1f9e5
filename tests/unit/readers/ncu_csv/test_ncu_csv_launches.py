"""What is one launch, and what is known of it besides its counters."""

import csv_writer as w
import pytest

from mansard.readers.ncu_csv.ranges import ranges_of

DEFAULT = "<default domain>"


def _range(name, domain=DEFAULT, message="none:none"):
    return f'"{domain}:{name}:none:none:none:none:{message}"'


def _cells(*launches):
    return w.long_page(
        [
            w.cell(metric, str(10 * number + place), **fields)
            for number, fields in enumerate(launches)
            for place, metric in enumerate((w.BYTES, w.TIME))
        ]
    )


def test_equal_ids_of_different_processes_and_hosts_do_not_merge_b35(read):
    found = read(
        _cells(
            {"process": "1"},
            {"process": "2"},
            {"process": "1", "host": "node18"},
            {"process": "1", "name": "other"},
        )
    )
    assert found.values(w.BYTES) == [0, 10, 20, 30]
    assert found.column("process") == [1, 2, 1, 1]
    assert found.column("host") == ["node17", "node17", "node18", "node17"]
    assert found.column("id") == ["0"] * 4


def test_rows_of_two_processes_that_take_turns_are_told_apart_b35(read):
    one, two = ({"process": process} for process in ("1", "2"))
    cells = [
        w.cell(w.BYTES, "1", **one),
        w.cell(w.BYTES, "2", **two),
        w.cell(w.TIME, "3", **one),
        w.cell(w.TIME, "4", **two),
    ]
    found = read(w.long_page(cells))
    assert found.values(w.BYTES) == [1, 2]
    assert found.values(w.TIME) == [3, 4]


def test_the_same_id_twice_in_one_process_is_two_launches(read):
    one = w.wide_page([w.launch(**{w.BYTES: "1"}), w.launch(**{w.BYTES: "2"})], {w.BYTES: ""})
    assert read(one).values(w.BYTES) == [1, 2]
    assert read(_cells({}, {})).values(w.TIME) == [1, 11]


def test_a_cut_down_page_with_the_columns_that_matter_is_enough(read):
    titles = ("Metric Value", "Kernel Name", "Metric Unit", "ID", "Metric Name")
    cells = [
        w.cell(w.BYTES, "5", "Kbyte"),
        w.cell(w.TIME, "2", "us"),
        w.cell(w.BYTES, "6", "Kbyte", id="1"),
    ]
    found = read(w.long_page(cells, titles))
    assert found.values(w.BYTES) == [5000, 6000]
    assert found.values(w.TIME) == [2e-6, None]
    for column in (
        "host",
        "process",
        "device",
        "stream",
        "grid_x",
        "block_z",
        "phase",
        "range",
        "rank",
    ):
        assert found.column(column) == [None, None]


def test_the_header_of_2020_is_read(read):
    titles = (*w.IDENTITY[:5], "Kernel Time", "Context", "Stream", *w.CELL)
    found = read(
        w.long_page(
            [{**w.cell(w.BYTES, "58240", "byte"), "Kernel Time": "2020-Jun-10 02:05:31"}], titles
        )
    )
    assert found.values(w.BYTES) == [58240]
    assert found.column("stream") == [7]
    assert found.column("grid_x") == [None]


def test_unknown_columns_are_ignored(read):
    titles = (*w.IDENTITY, "Workload", *w.CELL, "Rule Name", "Something New")
    cells = [
        {**w.cell(metric, "1"), "Something New": f"differs {place}", "Workload": "x"}
        for place, metric in enumerate((w.BYTES, w.TIME))
    ]
    assert len(read(w.long_page(cells, titles)).rows) == 1


def test_rows_of_rules_and_launches_without_metrics_are_no_launches(read):
    cells = [w.cell(w.BYTES, "1"), {**w.cell("", ""), "Rule Name": "Bottleneck"}]
    page = w.long_page(cells, (*w.IDENTITY, *w.CELL, "Rule Name"))
    assert read(page).values(w.BYTES) == [1]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(16, 32, 1)", [16, 32, 1]),
        ("(65536,1,1)", [65536, 1, 1]),
        ("16x32x1", [16, 32, 1]),
        ("(2147483647, 65535, 65535)", [2147483647, 65535, 65535]),
        ("", [None] * 3),
        ("16", [None] * 3),
        ("(9999999999999999999, 1, 1)", [None, 1, 1]),
        ("(1, 2, 3, 4)", [None] * 3),
    ],
)
def test_grid_and_block_come_from_their_columns(read, text, expected):
    (row,) = read(_cells({"grid": text, "block": text})).rows
    for shape in ("grid", "block"):
        assert [row[f"{shape}_{axis}"] for axis in "xyz"] == expected


@pytest.mark.parametrize("page", ["long", "wide"])
def test_launch_metrics_stand_in_for_columns_that_are_missing(read, page):
    facts = {
        "launch__grid_dim_x": "65,536",
        "launch__grid_dim_y": "3",
        "launch__block_dim_x": "256",
        "launch__device_id": "2",
        "launch__stream_id": "13",
    }
    titles = ("ID", "Kernel Name")
    if page == "long":
        cells = [w.cell(metric, value) for metric, value in facts.items()]
        (row,) = read(w.long_page(cells, (*titles, *w.CELL))).rows
    else:
        units = dict.fromkeys(facts, "")
        (row,) = read(w.wide_page([w.launch(**facts)], units, titles)).rows
    assert (row["grid_x"], row["grid_y"], row["grid_z"]) == (65536, 3, None)
    assert (row["block_x"], row["device"], row["stream"]) == (256, 2, 13)
    assert row["counter.launch__grid_dim_x"] == 65536


def test_facts_of_the_machine_are_no_counters(read):
    found = read(
        w.wide_page(
            [
                w.launch(
                    **{w.BYTES: "1", "device__attribute_warp_size": "32", "nvlink__max_count": "18"}
                )
            ],
            {
                w.BYTES: "",
                "device__attribute_warp_size": "",
                "nvlink__max_count": "",
                "numa__id_cpu": "",
            },
        )
    )
    assert found.capture.counters == (w.BYTES,)


@pytest.mark.parametrize("page", ["long", "wide"])
def test_each_gpu_is_listed_once_in_the_order_of_its_index(read, page):
    names = {"1": "NVIDIA B", "0": "NVIDIA A"}
    attribute = "device__attribute_display_name"
    order = ["1", "0", "1"]
    if page == "long":
        cells = [w.cell(attribute, names[d], id=str(i), device=d) for i, d in enumerate(order)]
        found = read(w.long_page(cells))
    else:
        launches = [
            w.launch(id=str(i), device=d, **{attribute: names[d]}) for i, d in enumerate(order)
        ]
        found = read(w.wide_page(launches, {attribute: ""}))
    devices = found.capture.provenance.devices
    assert [device.name for device in devices] == ["NVIDIA A", "NVIDIA B"]
    assert {device.compute_capability for device in devices} == {"9.0"}
    assert found.column("device") == [1, 0, 1]
    assert found.capture.counters == ()


def test_without_attributes_the_compute_capability_is_all_that_is_known(read):
    (device,) = read(_cells({"CC": "7.0"})).capture.provenance.devices
    assert (device.compute_capability, device.sm_count, device.name) == ("7.0", None, None)
    assert read(_cells({"CC": ""})).capture.provenance.devices == ()


def test_results_of_graphs_and_ranges_are_no_kernels(read):
    found = read(
        _cells({"name": "graph"}, {"name": "range", "id": "1"}, {"name": "graph(int)", "id": "2"})
    )
    assert found.column("kind") == ["graph", "range", "kernel"]


def test_a_repeated_column_counts_once_and_is_said(read):
    page = w.line([*w.IDENTITY, w.BYTES, w.BYTES])
    page += w.line([""] * len(w.IDENTITY) + ["Kbyte", "byte"])
    page += w.line([*(w.DEFAULTS[title] for title in w.IDENTITY), "1", "7"])
    found = read(page)
    assert found.values(w.BYTES) == [1000]
    assert w.BYTES in found.notice("columns-repeated").message


def test_names_that_differ_in_case_only_do_not_clash(read):
    cells = [
        w.cell("Memory Busy", "1"),
        w.cell("Memory busy", "2"),
        w.cell("memory busy", "3", id="1"),
    ]
    found = read(w.long_page(cells))
    assert found.values("Memory Busy") == [1, 3]
    both = w.wide_page([w.launch(**{w.BYTES: "1"})], {w.BYTES: ""})
    assert read(both + both.replace(w.BYTES, w.BYTES.upper().lower())).values(w.BYTES) == [1, 1]


def test_a_label_of_two_metrics_is_told_apart_by_the_unit(read):
    cells = [
        {**w.cell("Memory Throughput", "85.5", "%"), "Section Name": "Speed Of Light"},
        {**w.cell("Memory Throughput", "3.2", "Tbyte/s"), "Section Name": "Memory"},
        w.cell("Duration", "5", "us"),
    ]
    found = read(w.long_page(cells))
    assert found.values("Memory Throughput (%)") == [85.5]
    assert found.values("Memory Throughput (byte/s)") == [3.2e12]
    assert "--print-metric-name name" in found.notice("metric-labels").message


def test_ranges_of_both_kinds_are_joined_outermost_first(read):
    fields = {
        "push_pop": f"441  {_range('step 3')}  {_range('layer')} ",
        "start_stop": f"1  {_range('backward')} ",
    }
    titles = (*w.IDENTITY, w.PUSH_POP, w.START_STOP, *w.CELL)
    cells = [w.cell(w.BYTES, "1", **fields), w.cell(w.BYTES, "2", id="1")]
    found = read(w.long_page(cells, titles))
    assert found.column("range") == ["backward/step 3/layer", None]
    assert found.column("phase") == ["backward", None]


@pytest.mark.parametrize(
    ("push_pop", "start_stop", "expected"),
    [
        ("", "", (None, None)),
        ("441 ", "", (None, None)),
        (f"1  {_range('a')}", "", ("a", "a")),
        (f"1  {_range('a')}  {_range('b')} ", "", ("a/b", "a")),
        (f"1  {_range('void f::g<x>(y)')} ", "", ("void f::g<x>(y)", "void f::g<x>(y)")),
        (f"1  {_range('model.layers.0: attention')}", "", ("model.layers.0: attention",) * 2),
        (
            f"1  {_range('sort')}  " + _range("cub::Sort", "CCCL", "REGISTERED:cub::Sort"),
            "",
            ("sort/cub::Sort", "sort"),
        ),
        (
            "1  " + _range("ncclAllReduce", "NCCL") + "  " + _range("mine"),
            "",
            ("ncclAllReduce/mine", "mine"),
        ),
        ("1  " + _range("cublasGemmEx", "cuBLAS"), "", ("cublasGemmEx",) * 2),
        ("1  " + _range("epoch", "my app"), "", ("epoch", "epoch")),
        (f"1  {_range('in')}", f"7  {_range('out')} ", ("out/in", "out")),
        (f"1  {_range('')}  {_range('x')}", "", ("x", "x")),
        (
            '1  "<default domain>:say ""hi"":none:none:none:none:none:none" ',
            "",
            ('say ""hi""',) * 2,
        ),
        ("no ranges here", '"', (None, None)),
        ('1  "nonsense" ', "", (None, None)),
    ],
)
def test_the_text_of_nvtx_columns(push_pop, start_stop, expected):
    assert ranges_of(push_pop, start_stop) == expected
