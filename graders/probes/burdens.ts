/** Works that burden the grading: without an end, without a bound, with files of other kinds. */
import { atStart } from "./forged/c-code.ts";
import { atLoad, type Probe } from "./probe.ts";

const hang: Probe = {
  name: "hang",
  title: "never ends",
  rows: [17],
  languages: ["javascript", "python", "c"],
  cure: "take no result of tests that did not end, and let `grade_seconds` be twice what the known solution takes",
  files: (target) => atLoad(target, { javascript: "while (true);", python: "while True: pass", c: atStart("for (;;) sleep(1);") }),
};

/** 40 MB: ten times what is kept by default. */
const flood: Probe = {
  name: "flood",
  title: "prints more than is kept, and ends the process",
  rows: [17],
  languages: ["javascript", "python", "c"],
  cure: "give no reward for a report that was cut",
  files: (target) =>
    atLoad(target, {
      javascript: `for (let at = 0; at < 40; at++) try { get("node:fs").writeSync(1, "x".repeat(1_000_000)); } catch {}\nprocess.exit(0);`,
      python: `import os\nfor _ in range(40):\n    os.write(1, b"x" * 1000000)\nos._exit(0)`,
      c: atStart(`static char text[1000000]; int at;
  memset(text, 'x', sizeof text);
  for (at = 0; at < 40; at++) if (write(1, text, sizeof text) < 0) break;
  _exit(0);`),
    }),
};

/** Small, but for the hole, which takes no space. */
const hostileFiles: Probe = {
  name: "hostile-files",
  title: "leaves links out of its folder, pipes, second names and a file that is all hole",
  rows: [22],
  languages: "any",
  cure: "take over regular files and links inside the work only",
  script: ({
    tests,
  }) => `ln -s /logs/verifier .verifier 2>/dev/null; ln -s ../../../../../../etc/passwd escape; ln -s /proc/self/environ environ
mkfifo pipe; ln README* second 2>/dev/null; truncate -s 64M hole
for d in ${[...new Set(tests.map((path) => path.split("/")[0]))].filter((name) => name !== undefined).join(" ") || "tests"}; do
  [ -e "$d" ] || ln -s /tmp "$d"
done
true`,
};

export const burdens: readonly Probe[] = [hang, flood, hostileFiles];
