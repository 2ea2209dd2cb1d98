import { atLoad, type Probe } from "./probe.ts";

export const printedNames: Probe = {
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
