"""Asks the classes of Multi-SWE-bench what they make of samples.json, beside this file, and of the recorded logs.

    git clone https://github.com/multi-swe-bench/multi-swe-bench && git -C multi-swe-bench checkout 24f493f8
    pip install dataclasses-json unidiff docker tqdm toml pyyaml gitpython requests PyGithub
    python test/graders/parsers/swe/multi-swe/record.py multi-swe-bench
"""

import importlib
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

checkout = Path(sys.argv[1]).resolve()
sys.path.insert(0, str(checkout))
from multi_swe_bench.harness.instance import Instance  # noqa: E402

here = Path(__file__).parent
recorded = here.parent.parent / "recorded"
# Our parser: the module and the repository that it reads, and a number where these read by numbers.
asked = json.loads((here / "asked.json").read_text())
# The logs of a framework for the parsers that read it.
logs = {
    "cargo": ["multi_swe_cargo"],
    "go": ["multi_swe_go", "multi_swe_go_subtests"],
    "ctest": ["multi_swe_ctest", "multi_swe_ctest_timed", "multi_swe_catch2"],
    "jest": ["multi_swe_jest", "multi_swe_jest_files", "multi_swe_darkreader", "multi_swe_insomnia"],
    "vitest": ["multi_swe_vitest", "multi_swe_insomnia"],
    "mocha": ["multi_swe_mocha"],
    "maven": ["multi_swe_maven", "multi_swe_maven_coloured"],
}


def read(parser, log):
    module, repo, *number = asked[parser]
    importlib.import_module(f"multi_swe_bench.harness.repos.{module.replace('/', '.')}")
    kind = Instance._registry[repo]
    me = SimpleNamespace(pr=SimpleNamespace(number=number[0] if number else 1))
    if hasattr(kind, "parse_json_log"):
        me.parse_json_log = lambda text: kind.parse_json_log(me, text)
    try:
        found = kind.parse_log(me, log)
    except Exception:
        return None  # the set gives such a log up
    words = {"PASSED": found.passed_tests, "FAILED": found.failed_tests, "SKIPPED": found.skipped_tests}
    return {name: word for word, names in words.items() for name in sorted(names)}


lines = [{"commit": subprocess.check_output(["git", "-C", checkout, "rev-parse", "HEAD"], text=True).strip()}]
for parser, log in json.loads((here / "samples.json").read_text()).items():
    lines.append({"sample": parser, "parser": parser, "statuses": read(parser, log)})
for framework, parsers in logs.items():
    for at, text in enumerate((recorded / f"{framework}.jsonl").read_text().strip().split("\n")):
        for parser in parsers:
            lines.append({"log": f"{framework}.jsonl:{at + 1}", "parser": parser, "statuses": read(parser, json.loads(text)["log"])})
(here / "recorded.jsonl").write_text("".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines))
