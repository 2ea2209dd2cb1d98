import { atStart } from "./forged/c-code.ts";
import { atLoad, type Probe } from "./probe.ts";

export const exitAtLoad: Probe = {
  name: "exit-at-load",
  title: "ends the process with success when the tests load it",
  rows: [10],
  languages: ["javascript", "python", "c"],
  cure: "do not take the exit code for the verdict: require a whole report",
  files: (target) => atLoad(target, { javascript: "process.exit(0);", python: "import os\nos._exit(0)", c: atStart("_exit(0);") }),
};
