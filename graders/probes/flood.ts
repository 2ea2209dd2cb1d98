import { atStart } from "./forged/c-code.ts";
import { atLoad, type Probe } from "./probe.ts";

/** 40 MB: ten times what is kept by default. */
export const flood: Probe = {
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
