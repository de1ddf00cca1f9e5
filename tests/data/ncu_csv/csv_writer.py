"""Writes small pages as Nsight Compute does: every field in quotes, quotes doubled."""

PUSH_POP = "thread Domain:Push/Pop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg"
START_STOP = "Id:Domain:Start/Stop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg"
IDENTITY = (
    "ID",
    "Process ID",
    "Process Name",
    "Host Name",
    "Kernel Name",
    "Context",
    "Stream",
    "Block Size",
    "Grid Size",
    "Device",
    "CC",
)
CELL = ("Section Name", "Metric Name", "Metric Unit", "Metric Value")

DEFAULTS = {
    "ID": "0",
    "Process ID": "441",
    "Process Name": "python3.12",
    "Host Name": "node17",
    "Kernel Name": "void kernel<float>(float *)",
    "Context": "1",
    "Stream": "7",
    "Block Size": "(128, 1, 1)",
    "Grid Size": "(16, 2, 1)",
    "Device": "0",
    "CC": "9.0",
    "Section Name": "Command line profiler metrics",
    "Metric Unit": "",
}
BYTES = "dram__bytes.sum"
TIME = "gpu__time_duration.sum"
INSTRUCTIONS = "smsp__inst_executed.sum"


def line(fields, *, delimiter=",", end="\n"):
    """One record."""
    quoted = ('"' + str(field).replace('"', '""') + '"' for field in fields)
    return delimiter.join(quoted) + end


def cell(metric, value, unit="", **fields):
    """One row of a long page, by column; ``id``, ``name`` and the like are short forms."""
    return {**launch(**fields), "Metric Name": metric, "Metric Unit": unit, "Metric Value": value}


SHORT = {
    "id": "ID",
    "process": "Process ID",
    "host": "Host Name",
    "name": "Kernel Name",
    "stream": "Stream",
    "device": "Device",
    "grid": "Grid Size",
    "block": "Block Size",
    "push_pop": PUSH_POP,
    "start_stop": START_STOP,
}


def launch(**fields):
    """The columns of a launch."""
    return {**DEFAULTS, **{SHORT.get(name, name): value for name, value in fields.items()}}


def long_page(cells, titles=(*IDENTITY, *CELL)):
    """A details page."""
    return line(titles) + "".join(line(row.get(title, "") for title in titles) for row in cells)


def wide_page(launches, units, titles=IDENTITY):
    """A raw page; ``units`` by metric, and each launch has its metrics as further columns."""
    metrics = tuple(units)
    return (
        line((*titles, *metrics))
        + line((*("" for _ in titles), *units.values()))
        + "".join(line(row.get(title, "") for title in (*titles, *metrics)) for row in launches)
    )
