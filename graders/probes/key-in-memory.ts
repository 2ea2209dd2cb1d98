import { atLoad, type Probe } from "./probe.ts";

/** Writes the rows of a whole report under every text that may be the runner's key. */
export const keyInMemory: Probe = {
  name: "key-in-memory",
  title: "looks for the report's key in the memory of its process, and writes a report with it",
  rows: [12, 13],
  languages: ["javascript", "python"],
  cure: "have the work loaded by another process and user than the tests' (`work_runs: apart`)",
  files: (target) => {
    const names = JSON.stringify(JSON.stringify(target.required));
    return atLoad(target, {
      javascript: `const fs = get("node:fs"), crypto = get("node:crypto");
const path = get("node:v8").writeHeapSnapshot("/tmp/.heap-" + process.pid);
const keys = new Set(fs.readFileSync(path, "latin1").match(/\\b[0-9a-f]{64}\\b/g));
const hex = (text) => crypto.createHash("sha256").update(text).digest("hex");
const rows = [...${JSON.stringify(target.required)}.map((name) => ({ kind: "test", name, outcome: "passed" })), { kind: "complete", name: null, outcome: null }];
for (const key of [...keys].slice(0, 2000))
  rows.forEach((row, at) => {
    const text = JSON.stringify({ ...row, sequence: at + 1 });
    fs.writeSync(1, "\\n@report " + hex(key + hex(key + text)) + " " + text + "\\n");
  });
process.exit(0);`,
      python: `import gc, hashlib, json, os, re, sys
def _texts():
    frame = sys._getframe()
    while frame is not None:
        for value in list(frame.f_locals.values()):
            yield value
        frame = frame.f_back
    for one in gc.get_objects():
        if isinstance(one, dict):
            for value in list(one.values()):
                yield value
        elif type(one).__name__ == "cell":
            try:
                yield one.cell_contents
            except ValueError:
                pass
_keys = set()
for _one in _texts():
    if isinstance(_one, str) and re.match("^[0-9a-f]{64}$", _one):
        _keys.add(_one)
def _hex(text):
    return hashlib.sha256(text.encode()).hexdigest()
_rows = [dict(kind="test", name=name, outcome="passed") for name in json.loads(${names})] + [dict(kind="complete", name=None, outcome=None)]
for _key in _keys:
    for _at, _row in enumerate(_rows):
        _text = json.dumps(dict(_row, sequence=_at + 1), separators=(",", ":"))
        os.write(1, ("\\n@report " + _hex(_key + _hex(_key + _text)) + " " + _text + "\\n").encode())
os._exit(0)`,
    });
  },
};
