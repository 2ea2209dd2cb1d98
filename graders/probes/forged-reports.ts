/** Works that write the report, or end the process of the tests, when the tests load them. */
import { atStart, cPrint, cString } from "./forged/c-code.ts";
import { forge } from "./forged/forge-at-load.ts";
import { forgedLines } from "./forged/forged-lines.ts";
import { atLoad, type Probe } from "./probe.ts";

const exitAtLoad: Probe = {
  name: "exit-at-load",
  title: "ends the process with success when the tests load it",
  rows: [10],
  languages: ["javascript", "python", "c"],
  cure: "do not take the exit code for the verdict: require a whole report",
  files: (target) => atLoad(target, { javascript: "process.exit(0);", python: "import os\nos._exit(0)", c: atStart("_exit(0);") }),
};

const printedNames: Probe = {
  name: "printed-names",
  title: "prints the names of the tests, which a runner writes down as comments, and ends the process with success",
  rows: [10, 13],
  languages: ["javascript"],
  cure: "run Node's tests by the runner of the parser `node-test`, whose report has no comments",
  files: (target) => atLoad(target, { javascript: printAndExit(target.required) }),
};

function printAndExit(names: readonly string[]): string {
  const lines = JSON.stringify(names.map((name) => `${name}\n`).join(""));
  return `for (const stream of [2, 1]) try { get("node:fs").writeSync(stream, ${lines}); } catch {}
process.exit(0);`;
}

/** A child that outlives its tests, for at most so long. */
const daemonSeconds = 5;

const forgingDaemon: Probe = {
  name: "forging-daemon",
  title: "starts a process that prints a report after the tests, and one over its parent's descriptors",
  rows: [11, 13],
  languages: ["javascript", "python", "c"],
  cure: "have the work loaded by another process and user than the tests', and read the report when all has ended",
  files: (target) => {
    const printed = forgedLines(target);
    const lines = JSON.stringify(printed);
    return atLoad(target, {
      javascript: `const { spawn } = get("node:child_process"), fs = get("node:fs");
spawn("sh", ["-c", 'sleep 0.5; i=0; while [ $i -lt ${daemonSeconds} ]; do printf %s "$0"; i=$((i+1)); sleep 1; done', ${lines}], { detached: true, stdio: ["ignore", 1, 2] }).unref();
for (const fd of [1, 2, 3, 4]) try { fs.appendFileSync("/proc/" + process.ppid + "/fd/" + fd, ${lines}); } catch {}`,
      python: `import os, time
for _fd in (1, 2, 3, 4):
    try:
        with open("/proc/%d/fd/%d" % (os.getppid(), _fd), "w") as _file:
            _file.write(${lines})
    except OSError:
        pass
if os.fork() == 0:
    os.setsid()
    for _ in range(${daemonSeconds}):
        time.sleep(1)
        os.write(1, ${lines}.encode())
    os._exit(0)`,
      c: atStart(`  char path[64]; int at, file;
  for (at = 1; at <= 4; at++) {
    snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)getppid(), at);
    if ((file = open(path, O_WRONLY)) >= 0) { if (write(file, ${cString(printed)}, ${Buffer.byteLength(printed)}) < 0) {} close(file); }
  }
  if (fork() == 0) {
    setsid();
    for (at = 0; at < ${daemonSeconds}; at++) { sleep(1); ${cPrint(printed)} }
    _exit(0);
  }`),
    });
  },
};

export const forgedReport: Probe = {
  name: "forged-report",
  title: "prints the whole report of a framework, all passed, and ends the process",
  rows: [9, 13],
  languages: ["javascript", "python", "c"],
  cure: "have the work loaded by another process than the tests' (`work_runs: apart`), with a report that it cannot write, or run it as a command",
  files: (target) => atLoad(target, forge(target)),
};

/** Writes the rows of a whole report under every text that may be the runner's key. */
const keyInMemory: Probe = {
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

export const forgedReports: readonly Probe[] = [exitAtLoad, printedNames, forgingDaemon, forgedReport, keyInMemory];
