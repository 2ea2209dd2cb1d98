import { forge } from "./forged/forge-at-load.ts";
import { atLoad, type Probe } from "./probe.ts";

export const forgedReport: Probe = {
  name: "forged-report",
  title: "prints the whole report of a framework, all passed, and ends the process",
  rows: [9, 13],
  languages: ["javascript", "python", "c"],
  cure: "have the work loaded by another process than the tests' (`work_runs: apart`), with a report that it cannot write, or run it as a command",
  files: (target) => atLoad(target, forge(target)),
};
