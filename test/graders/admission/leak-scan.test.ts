/** What is found where, in a sandbox of a few texts whose `find`, `grep` and `env` are played here. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { leakScan } from "../../../graders/admission/leak-scan.ts";
import type { TellingLines } from "../../../graders/admission/telling-lines.ts";
import type { ExecOptions, Sandbox } from "../../../sandboxes/sandbox.ts";

/** As many as the scan takes. */
const mostFiles = 50;

function sandboxWith(files: Record<string, string>): Sandbox {
  let sought: string[] = [];
  const has = (text: string) => sought.filter((line) => text.includes(line));
  const exec = async (argv: string[], { stdin }: ExecOptions = {}) => {
    const [, , script = "", , path = ""] = argv;
    const play = (): string[] => {
      if (script.startsWith("cat >")) sought = String(stdin).trim().split("\n");
      if (script.startsWith("find /"))
        return Object.keys(files)
          .filter((name) => has(files[name] ?? "").length > 0)
          .slice(0, mostFiles);
      return script.startsWith("grep") ? has(files[path] ?? "") : [];
    };
    const stdout = play().join("\n");
    return { exit_code: script.includes("cat-file") ? 3 : 0, stdout, stderr: "", timed_out: false, out_of_memory: false, dropped_bytes: 0 };
  };
  return { facts: { image: null }, exec } as unknown as Sandbox;
}

const telling = (what: TellingLines["what"], ...lines: string[]): TellingLines => ({ what, lines });
const solution = telling("solution", "return Math.min(high, Math.max(low, value));");

async function leaksIn(files: Record<string, string>, ...lines: TellingLines[]) {
  const { leaks } = await leakScan(sandboxWith(files), "/work", lines, undefined, AbortSignal.timeout(10_000));
  return leaks.map(({ what, place, found, of }) => [what, place, found, of]);
}

test("a name that stands in three files outside of the work is a common one, and no leak anywhere", async () => {
  const framework = { "/usr/lib/a.py": "test_add", "/usr/lib/b.py": "def test_add", "/usr/lib/c.py": "test_add()" };
  assert.deepEqual(await leaksIn({ ...framework, "/work/x.py": "test_add" }, telling("names", "test_add")), []);
  const both = telling("names", "test_add", "test_folds_all_accents");
  assert.deepEqual(await leaksIn({ ...framework, "/usr/lib/d.py": "test_folds_all_accents" }, both), [["names", "/usr/lib/d.py", 1, 1]]);
});

test("a name in many files of the work is none of those", async () => {
  const files = Object.fromEntries([1, 2, 3].map((number) => [`/work/${number}.py`, "test_add"]));
  assert.equal((await leaksIn(files, telling("names", "test_add"))).length, 3);
});

test("names in more files than are looked at hide no file that holds the solution", async () => {
  const framework = Object.fromEntries(Array.from({ length: mostFiles }, (_, number) => [`/usr/lib/${number}.py`, "test_add"]));
  const files = { ...framework, "/var/kept.js": solution.lines.join() };
  assert.deepEqual(await leaksIn(files, solution, telling("names", "test_add")), [["solution", "/var/kept.js", 1, 1]]);
});
