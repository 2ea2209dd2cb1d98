"""Writes down how swebench 4.1's tables test each instance of Multilingual, as hashes.

    bash test/interop/swesmith/install.sh
    FOLDER/venv/bin/python test/tasks/swe/multilingual.py [FILE]
"""

import hashlib
import json
import sys
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

sys.path.append(str(Path(__file__).parents[2] / "interop/swebench"))
import stand_ins  # noqa: E402, F401
from swebench.harness.constants import MAP_REPO_TO_EXT, MAP_REPO_VERSION_TO_SPECS
from swebench.harness.log_parsers import MAP_REPO_TO_PARSER

# Of JavaScript, these are Multimodal's.
others = {"Automattic/wp-calypso", "chartjs/Chart.js", "markedjs/marked", "processing/p5.js", "diegomura/react-pdf"}
# Parsers that go by the instance: what each of these reads is what the chosen one would read.
probe = "TestA#b = 0.00 s = .\nA step of it ..\n✓ jest\n[PASSED] json\n"


def chosen(repo, number):
    parser = MAP_REPO_TO_PARSER[repo]
    found = parser(probe, SimpleNamespace(instance_id=f"{repo.replace('/', '__')}-{number}"))
    return {"name": parser.__name__, "reads": sorted(found)}


def text(value):
    return value if isinstance(value, str) else "\n".join(value)


lines = [{"swebench": version("swebench")}]
for repo, versions in MAP_REPO_VERSION_TO_SPECS.items():
    if MAP_REPO_TO_EXT.get(repo) == "py" or repo in others:
        continue
    for number, specs in versions.items():
        tested = [text(specs.get("build", [])), text(specs["test_cmd"])]
        digest = hashlib.sha256("\0".join(tested).encode()).hexdigest()[:16]
        lines.append({"repo": repo, "version": number, "tests": digest, "parser": chosen(repo, number)})
out = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("multilingual.jsonl")
out.write_text("".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines))
