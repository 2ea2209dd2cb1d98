import { atStart, cPrint, cString } from "./forged/c-code.ts";
import { forgedLines } from "./forged/forged-lines.ts";
import { atLoad, type Probe } from "./probe.ts";

/** A child that outlives its tests, for at most so long. */
const seconds = 5;

export const forgingDaemon: Probe = {
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
spawn("sh", ["-c", 'sleep 0.5; i=0; while [ $i -lt ${seconds} ]; do printf %s "$0"; i=$((i+1)); sleep 1; done', ${lines}], { detached: true, stdio: ["ignore", 1, 2] }).unref();
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
    for _ in range(${seconds}):
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
    for (at = 0; at < ${seconds}; at++) { sleep(1); ${cPrint(printed)} }
    _exit(0);
  }`),
    });
  },
};
