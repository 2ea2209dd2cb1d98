"""Asks SWE-smith's own profile of Python what it makes of the recorded logs of pytest, and of samples.json beside this file.

    bash test/interop/swesmith/install.sh
    FOLDER/venv/bin/python test/graders/parsers/swe/smith/record.py [FILE]
"""

import json
import sys
from importlib.metadata import version
from pathlib import Path

sys.path.append(str(Path(__file__).parents[4] / "interop/swebench"))
import stand_ins  # noqa: E402, F401
from swesmith.profiles.python import PythonProfile  # noqa: E402

here = Path(__file__).parent
recorded = here.parent.parent / "recorded"


def line_of(log, key):
    return {**key, "parser": "swesmith_pytest", "statuses": PythonProfile.log_parser(None, log)}


lines = [{"commit": f"swesmith {version('swesmith')}"}]
for name, log in json.loads((here / "samples.json").read_text()).items():
    lines.append(line_of(log, {"sample": name}))
for file in sorted(recorded.glob("pytest-*.jsonl")):
    for at, text in enumerate(file.read_text().strip().split("\n")):
        lines.append(line_of(json.loads(text)["log"], {"log": f"{file.name}:{at + 1}"}))
out = Path(sys.argv[1]) if len(sys.argv) > 1 else here / "recorded.jsonl"
out.write_text("".join(f"{json.dumps(line, ensure_ascii=False)}\n" for line in lines))
