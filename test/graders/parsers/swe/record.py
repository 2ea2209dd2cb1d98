"""Asks swebench's own parsers and its own grading what they make of the recorded logs and of samples.json, beside this file.

    bash test/interop/swebench/install.sh
    FOLDER/venv/bin/python test/graders/parsers/swe/record.py [FILE]
"""

import json
import os
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

sys.path.append(str(Path(__file__).parents[3] / "interop/swebench"))
import stand_ins  # noqa: E402, F401
from swebench.harness.constants import END_TEST_OUTPUT, START_TEST_OUTPUT
from swebench.harness.grading import get_eval_report
from swebench.harness.log_parsers import PARSER_REGISTRY
from swebench.types import TestSpec

here = Path(__file__).parent
recorded = here.parent / "recorded"
# A set's parser for the logs of each framework.
asked = {
    "pytest": ["parse_log_pytest", "parse_log_pytest_v2", "parse_log_pytest_options", "parse_log_seaborn"],
    "unittest": ["parse_log_django"],
    "go-test": ["parse_log_gotest"],
    "cargo": ["parse_log_cargo"],
    "jest": ["parse_log_jest"],
    "vitest": ["parse_log_vitest"],
    "mocha": ["parse_log_jest"],
    "maven": ["parse_log_maven"],
}


def report(parser, log, fail_to_pass, pass_to_pass):
    spec = TestSpec("task-1", "image", [], "o/r", "1", fail_to_pass, pass_to_pass, log_parser=parser, eval_type="pass_and_fail")
    prediction = {"instance_id": "task-1", "model_patch": "a patch", "model_name_or_path": "m"}
    with tempfile.NamedTemporaryFile("w", suffix=".txt", delete=False) as file:
        file.write(f"{START_TEST_OUTPUT}\n{log}\n{END_TEST_OUTPUT}\n")
    try:
        one = get_eval_report(spec, prediction, file.name, True)["task-1"]
    finally:
        os.unlink(file.name)
    tests = one.get("tests_status", {})
    return {"resolved": one["resolved"], **{name: tests.get(name, {}).get("success", []) for name in ("FAIL_TO_PASS", "PASS_TO_PASS")}}


def line_of(parser, log, key):
    statuses = PARSER_REGISTRY[parser](f"\n{log}\n", TestSpec("task-1", "", [], "o/r", "1", [], []))
    names = sorted(statuses)
    # Half of the names in each list; one that is absent, and one that is cut off in its parameters.
    cut = [name[: name.index("[") + 1] for name in names if "[" in name and name.endswith("]")][:1]
    lists = [names[0::2] + cut, [*names[1::2], "absent"] if len(names) % 3 == 0 else names[1::2]]
    return {**key, "parser": parser, "statuses": statuses, "lists": lists, "report": report(parser, log, *lists)}


lines = []
for file in sorted(recorded.glob("*.jsonl")):
    for at, text in enumerate(file.read_text().strip().split("\n")):
        log = json.loads(text)
        for parser in asked.get(log["parser"], []):
            lines.append(line_of(parser, log["log"], {"log": f"{file.name}:{at + 1}"}))
for parser, log in json.loads((here / "samples.json").read_text()).items():
    lines.append(line_of(parser, log, {"sample": parser}))
header = {"swebench": version("swebench")}
out = Path(sys.argv[1]) if len(sys.argv) > 1 else here / "swebench.jsonl"
out.write_text("".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in [header, *lines]))
