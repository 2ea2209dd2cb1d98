"""Asks the parsers of SWE-rebench-V2 what they make of samples.json, beside this file, and of the recorded logs.

    git clone https://github.com/SWE-rebench/SWE-rebench-V2 && git -C SWE-rebench-V2 checkout c71902a8
    python test/graders/parsers/swe/rebench-v2/record.py SWE-rebench-V2
"""

import json
import subprocess
import sys
from pathlib import Path

checkout = Path(sys.argv[1]).resolve()
sys.path[:0] = [str(checkout), str(checkout / "lib"), str(checkout / "scripts")]
import eval as evaluation  # noqa: E402
from agent import log_parsers  # noqa: E402

here = Path(__file__).parent
recorded = here.parent.parent / "recorded"
# The logs of a framework for the parsers that read it.
logs = {
    "pytest-6": ["parse_log_pytest", "parse_log_pytest_options", "parse_log_pytest_nebo"],
    "pytest-9": ["parse_log_pytest", "parse_log_pytest_v2", "parse_log_pytest_nebo", "parse_log_cpp"],
    "unittest-3.13": ["parse_log_django"],
    "go": ["parse_log_gotest"],
    "cargo": ["parse_log_cargo"],
    "jest": ["parse_log_jest", "parse_log_js_4", "parse_log_react_pdf"],
    "vitest": ["parse_log_vitest", "parse_log_js_4"],
    "mocha": ["parse_log_js", "parse_log_js_2", "parse_log_npx", "parse_log_js_4"],
    "maven": ["parse_java_mvn", "parse_java_mvn_v2", "parse_logs_kotlin_junit"],
    "ctest": ["parse_log_cpp_v4", "parse_log_cpp_v3"],
}


def read(parser, log):
    try:
        found = evaluation.get_parser(parser)(log)
    except Exception:
        return None  # the set gives such a log up
    return {evaluation._normalize_test_name(name): status for name, status in found.items()}


lines = [{"commit": subprocess.check_output(["git", "-C", checkout, "rev-parse", "HEAD"], text=True).strip()}]
for parser, log in json.loads((here / "samples.json").read_text()).items():
    lines.append({"sample": parser, "parser": parser, "statuses": read(parser, log)})
for framework, parsers in logs.items():
    # Every other one: they are the same scenarios with other flags.
    for at, text in list(enumerate((recorded / f"{framework}.jsonl").read_text().strip().split("\n")))[::2]:
        for parser in parsers:
            lines.append({"log": f"{framework}.jsonl:{at + 1}", "parser": parser, "statuses": read(parser, json.loads(text)["log"])})
(here / "recorded.jsonl").write_text("".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines))
