import { atStart } from "./forged/c-code.ts";
import { atLoad, type Probe } from "./probe.ts";

export const hang: Probe = {
  name: "hang",
  title: "never ends",
  rows: [17],
  languages: ["javascript", "python", "c"],
  cure: "take no result of tests that did not end, and let `grade_seconds` be twice what the known solution takes",
  files: (target) => atLoad(target, { javascript: "while (true);", python: "while True: pass", c: atStart("for (;;) sleep(1);") }),
};
