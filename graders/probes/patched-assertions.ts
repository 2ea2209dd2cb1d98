import { cIncludes, cPrint } from "./forged/c-code.ts";
import { forgedLines } from "./forged/forged-lines.ts";
import { atLoad, type Probe } from "./probe.ts";

export const patchedAssertions: Probe = {
  name: "patched-assertions",
  title: "replaces what the tests assert with",
  rows: [12],
  languages: ["javascript", "python", "c"],
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
      c: failingCalls(forgedLines(target)),
    }),
};

/** What a failed `assert` of C ends in. The linker takes these before those of libc; a label keeps them clear of its declarations. */
function failingCalls(lines: string): string {
  const names = ["__assert_fail", "abort", "exit"];
  const calls = names.map(
    (name, at) => `void probe_call_${at}(void) __asm__("${name}");
__attribute__((weak)) void probe_call_${at}(void) { ${cPrint(lines)} _exit(0); }`,
  );
  return [cIncludes, ...calls].join("\n");
}
