"""The JSON report: a contract with people's scripts."""

import json
import math
from pathlib import Path

import pytest

from mansard.charts.json_report import report_dict, report_json
from mansard.charts.plain import number, plain
from mansard.model.notice import Notice
from mansard.model.provenance import Provenance

PROJECT = Path(__file__).parents[3]
SCHEMA = PROJECT / "src" / "mansard" / "charts" / "report.schema.json"
PAGE = PROJECT / "docs" / "json-report.md"

TOTALS = [
    "launches",
    "kernels",
    "duration_s",
    "flop",
    "op_int",
    "zero_flop_launches",
    "zero_flop_duration_s",
    "bytes_shared",
    "bytes_l1",
    "bytes_l2",
    "bytes_dram",
    "floor_s",
    "recoverable_s",
]
KERNEL = [
    "name",
    "short_name",
    "family",
    "launches",
    "duration_s",
    "flop",
    "flop_by_path",
    "bytes",
    "intensity",
    "flop_per_s",
    "floors_s",
    "bound",
    "efficiency",
    "recoverable_s",
]


def check(value, schema, root, path="report"):
    """Validate what report.schema.json uses of JSON Schema; lists what does not fit."""
    if "$ref" in schema:
        return check(value, root["$defs"][schema["$ref"].rsplit("/", 1)[1]], root, path)
    faults = []
    for part in schema.get("allOf", ()):
        faults += check(value, part, root, path)
    if "anyOf" in schema and all(check(value, part, root, path) for part in schema["anyOf"]):
        faults.append(f"{path}: fits none of anyOf")
    if "const" in schema and value != schema["const"]:
        faults.append(f"{path}: {value!r} is not {schema['const']!r}")
    if "enum" in schema and value not in schema["enum"]:
        faults.append(f"{path}: {value!r} is not one of {schema['enum']}")
    if "type" in schema:
        names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        if not any(_is(value, name) for name in names):
            return [*faults, f"{path}: {value!r} is not {names}"]
    if isinstance(value, dict):
        missing = [key for key in schema.get("required", ()) if key not in value]
        faults += [f"{path}: lacks {key}" for key in missing]
        for key, item in value.items():
            part = schema.get("properties", {}).get(key) or schema.get("additionalProperties")
            if part:
                faults += check(item, part, root, f"{path}.{key}")
    if isinstance(value, list) and "items" in schema:
        for place, item in enumerate(value):
            faults += check(item, schema["items"], root, f"{path}[{place}]")
    return faults


def _is(value, name):
    return {
        "null": value is None,
        "boolean": isinstance(value, bool),
        "integer": isinstance(value, int) and not isinstance(value, bool),
        "number": isinstance(value, int | float) and not isinstance(value, bool),
        "string": isinstance(value, str),
        "array": isinstance(value, list),
        "object": isinstance(value, dict),
    }[name]


def test_the_contract_keys_are_there(h200):
    report = report_dict(h200)
    assert report["schema"] == "mansard-report/1"
    assert set(report) >= {"run", "machine", "totals", "phases", "kernels", "warnings"}
    assert set(report) >= {"families", "ranks"}
    assert set(TOTALS) <= set(report["totals"])
    assert {*TOTALS, "phase"} <= set(report["phases"][0])
    assert set(KERNEL) <= set(report["kernels"][0])


@pytest.mark.parametrize("name", ["v100", "v100_two_phases", "h200"])
def test_the_report_fits_its_schema(name, request):
    schema = json.loads(SCHEMA.read_text())
    report = json.loads(report_json(request.getfixturevalue(name)))
    assert check(report, schema, schema) == []


def test_the_schema_check_can_fail(h200):
    schema = json.loads(SCHEMA.read_text())
    report = report_dict(h200)
    report["kernels"][0]["flop"] = "many"
    del report["totals"]["floor_s"]
    faults = check(report, schema, schema)
    assert faults == [
        "report.totals: lacks floor_s",
        "report.kernels[0].flop: 'many' is not ['number', 'null']",
    ]


def test_the_report_fits_its_schema_by_a_full_validator(h200):
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    jsonschema.validate(report_dict(h200), json.loads(SCHEMA.read_text()))


def test_every_required_key_is_one_that_the_code_writes_and_the_reverse(h200):
    # The schema must not fall behind: a new key of the code needs its line in the schema.
    schema = json.loads(SCHEMA.read_text())
    report = report_dict(h200)
    assert set(report) == set(schema["required"])
    assert set(report["totals"]) == set(schema["$defs"]["group"]["required"])
    assert set(report["kernels"][0]) == set(schema["$defs"]["kernel"]["required"])
    assert set(report["run"]) == set(schema["$defs"]["run"]["required"])
    assert set(report["machine"]) == set(schema["$defs"]["machine"]["required"])


def test_the_documented_schema_is_the_schema():
    page = PAGE.read_text(encoding="utf-8")
    blocks = [part.split("```", 1)[0] for part in page.split("```json\n")[1:]]
    assert SCHEMA.read_text() in blocks


def test_every_key_of_the_report_is_explained_in_the_documentation(h200):
    page = PAGE.read_text(encoding="utf-8")
    report = report_dict(h200)
    keys = {*report, *report["totals"], *report["kernels"][0], *report["run"], *report["machine"]}
    assert sorted(key for key in keys if f"`{key}`" not in page) == []


def test_a_whole_number_stays_exact(make_analysis, make_kernel):
    # 2 x 2048^3, the work of a square matrix product.
    kernel = make_kernel("gemm", flop={"tensor bf16": 17179869184.0}, moved={"l2": 2.0**40})
    text = report_json(make_analysis([kernel]))
    assert '"flop": 17179869184,' in text
    assert '"tensor bf16": 17179869184' in text
    assert '"bytes_l2": 1099511627776,' in text


def test_counts_beyond_53_bits_survive():
    assert number(2**63 + 1) == 9223372036854775809
    assert number(2.0**63) == 9223372036854775808
    assert number(1e300) == 1e300


def test_unknown_is_null_and_zero_is_zero(make_analysis, make_kernel):
    kernel = make_kernel("k", flop={"tensor bf16": 0.0}, moved={"l1": None, "dram": 0.0})
    report = report_dict(make_analysis([kernel]))
    (written,) = report["kernels"]
    assert written["flop"] == 0
    assert written["bytes"]["l1"] is None
    assert written["bytes"]["dram"] == 0
    assert written["intensity"] == dict.fromkeys(["shared", "l1", "l2", "dram", "link"])
    assert report["machine"] is None
    assert written["bound"] is None
    assert written["floors_s"] == {}
    assert written["efficiency"] is None


def test_what_was_not_collected_is_named_with_its_counters(make_analysis, make_kernel):
    kernel = make_kernel("k", flop={"vector fp32": 5.0, "tensor bf16": None})
    origin = Provenance(missing={"flop_tensor_bf16": ("ops.bf16",)})
    report = report_dict(make_analysis([kernel], provenance=[origin]))
    assert report["totals"]["flop"] == 5
    assert report["totals"]["flop_complete"] is False
    (warning,) = report["warnings"]
    assert warning["code"] == "flop-incomplete"
    assert "tensor bf16 (needs ops.bf16)" in warning["message"]
    assert report["run"]["missing"] == {"flop_tensor_bf16": ["ops.bf16"]}


def test_a_path_that_a_notice_names_already_is_not_named_twice(make_analysis, make_kernel):
    kernel = make_kernel("k", flop={"vector fp32": 5.0, "tensor bf16": None})
    said = Notice(code="not-collected", message="tensor bf16 was not collected")
    report = report_dict(make_analysis([kernel], notices=[said]))
    assert [warning["code"] for warning in report["warnings"]] == ["not-collected"]


@pytest.mark.parametrize("hostile", [math.nan, math.inf, -math.inf])
def test_no_number_can_break_json(hostile, make_analysis, make_kernel, h200_machine):
    kernel = make_kernel(
        'k\ud800\x00"</script>',
        flop={"tensor bf16": hostile},
        moved={"dram": hostile, "l2": 1.0},
        duration_s=hostile,
        floors_s={"dram": hostile},
        floor_s=hostile,
        zero_flop_duration_s=hostile,
    )
    analysis = make_analysis([kernel], machine=h200_machine)
    analysis.options["strange"] = {"deep": [hostile, object()]}
    text = json.dumps(report_dict(analysis), allow_nan=False)
    again = json.loads(text, parse_constant=pytest.fail)
    assert again["kernels"][0]["flop"] is None
    assert again["run"]["options"]["strange"]["deep"][0] is None
    text.encode("utf-8")


def test_the_text_is_the_dictionary(h200):
    assert json.loads(report_json(h200)) == json.loads(json.dumps(report_dict(h200)))


def test_an_empty_run_has_a_report(make_analysis):
    report = report_dict(make_analysis([]))
    assert report["kernels"] == []
    assert report["totals"]["launches"] == 0


def test_files_that_disagree_leave_the_common_value_unknown(make_analysis, make_kernel):
    origins = [Provenance(clock_control="base"), Provenance(clock_control="none")]
    run = report_dict(make_analysis([make_kernel("k")], provenance=origins))["run"]
    assert run["clock_control"] is None
    assert [file["clock_control"] for file in run["files"]] == ["base", "none"]


def test_lost_launches_are_unknown_when_one_file_does_not_know(make_analysis, make_kernel):
    known = [Provenance(lost_launches=2), Provenance(lost_launches=3)]
    assert (
        report_dict(make_analysis([make_kernel("k")], provenance=known))["run"]["lost_launches"]
        == 5
    )
    unknown = [*known, Provenance(lost_launches=None)]
    assert (
        report_dict(make_analysis([make_kernel("k")], provenance=unknown))["run"]["lost_launches"]
        is None
    )


def test_refused_ceilings_stay_in_the_report_with_their_reason(h200):
    refused = [c for c in report_dict(h200)["machine"]["ceilings"] if c["status"] == "refused"]
    assert len(refused) == 1
    assert "emulated" in refused[0]["reason"]


def test_values_that_json_does_not_know_become_their_text():
    assert plain({"path": Path("a"), 1: (1.0, 0.5)}) == {"path": "a", "1": [1, 0.5]}


def test_advice_comes_with_its_numbers_and_kernels(v100):
    advice = report_dict(v100)["advice"]
    layout = next(entry for entry in advice if entry["rule"] == "layout-changes")
    assert layout["recoverable_s"] > 0
    assert layout["evidence"]["launches"] >= 1
    names = {kernel["name"] for kernel in report_dict(v100)["kernels"]}
    assert set(layout["kernels"]) <= names
    assert layout["sentence"].startswith("Layout changes and padding take")


def test_advice_without_a_time_says_null(make_analysis, make_kernel, h200_machine):
    kernel = make_kernel(
        "gemm",
        machine=h200_machine,
        flop={"tensor bf16": 2e12},
        duration_s=1e-3,
        launches_above_roof=1,
    )
    report = json.loads(report_json(make_analysis([kernel], machine=h200_machine)))
    (above,) = report["advice"]
    assert above["rule"] == "above-roof"
    assert above["recoverable_s"] is None
