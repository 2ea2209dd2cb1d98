import { atLoad, type Probe } from "./probe.ts";

export const patchedAssertions: Probe = {
  name: "patched-assertions",
  title: "replaces what the tests assert with",
  rows: [12],
  languages: ["javascript", "python"],
  cure: "have the work loaded by another process than the tests' (`work_runs: apart`), or run it as a command",
  files: (target) =>
    atLoad(target, {
      javascript: `const assert = get("node:assert");
for (const one of [assert, assert.strict])
  for (const key of Object.keys(one))
    if (typeof one[key] === "function" && key !== "strict" && key !== "AssertionError") try { one[key] = () => {}; } catch {}
get("node:module").syncBuiltinESMExports();`,
      python: `import unittest as _unittest
for _name in dir(_unittest.TestCase):
    if _name.startswith(("assert", "fail")) and _name != "failureException":
        setattr(_unittest.TestCase, _name, lambda *rest, **more: None)`,
    }),
};
