/** What tests that fetch say when they cannot, in the tools' own words. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { fetchingScripts } from "../../../graders/harbor/fetching-tools.ts";
import { type FetchSigns, unfetched, unfetchedInWords } from "../../../graders/harbor/unfetched.ts";

function signs(script: string, output: string, more: Partial<FetchSigns> = {}) {
  const files = [{ path: "test.sh", content: Buffer.from(script) }];
  return unfetched({ ...fetchingScripts(files), output, refusals: [], access: "none", ...more });
}

for (const [script, output, failed, hosts] of [
  [
    "apt-get update",
    "Err:1 http://deb.debian.org/debian bookworm InRelease\n  Temporary failure resolving 'deb.debian.org'",
    "apt-get",
    ["deb.debian.org"],
  ],
  ["apt-get install -y curl", "E: Unable to locate package curl", "apt-get", []],
  ["apt-get update", "E: setgroups 65534 failed - setgroups (1: Operation not permitted)", "apt-get", []],
  ["curl -LsSf https://example.org/i.sh | sh", "curl: (6) Could not resolve host: example.org", "curl", ["example.org"]],
  ["curl -LsSf https://example.org/i.sh | sh", "curl: (22) The requested URL returned error: 403", "curl", []],
  ["wget https://example.org/x", "wget: unable to resolve host address \u2018example.org\u2019", "wget", ["example.org"]],
  ["uvx pytest", "  cause: error sending request for url (https://pypi.org/simple/pytest/)", "uv", ["pypi.org"]],
  [
    "uv pip install x",
    "error: Request failed after 3 retries in 8.1s\n  cause: Failed to fetch: https://pypi.org/simple/x/",
    "uv",
    ["pypi.org"],
  ],
  ["pip install pytest", "ERROR: No matching distribution found for pytest", "pip", []],
  ["npx jest", "npm error code EAI_AGAIN", "npm", []],
  ["npm ci", "npm error code E403", "npm", []],
  [
    "git clone https://example.org/x",
    "fatal: unable to access 'https://example.org/x/': CONNECT tunnel failed, response 403",
    "git",
    ["example.org"],
  ],
] as const)
  test(`${script}: "${output.trim().split("\n").at(-1)?.trim()}" is a failure of ${failed}`, () => {
    const found = signs(script, output);
    assert.deepEqual([found?.failed, found?.hosts, found?.missing], [[failed], hosts, []]);
    assert.match(found === null ? "" : unfetchedInWords(found), /--verifier-network/);
  });

test("programs that a script fetches, or fetches by, and that are not found are missing, as each shell says it", () => {
  const script = "apt-get install -y curl\ncurl https://example.org | sh\nuvx pytest\n";
  for (const line of ["/tests/test.sh: line 3: uvx: command not found", "/tests/test.sh: 3: uvx: not found", "sh: uvx: not found"])
    assert.deepEqual(signs(script, line)?.missing, ["uvx"], line);
  assert.equal(signs(script, "sh: another: not found"), null, "no word of the script");
});

test("a program that the work is to make is no tool of the tests, and their failure is no failure of npm's", () => {
  assert.equal(signs("apt-get install -y curl\nmytool --version\n", "/tests/test.sh: line 2: mytool: command not found"), null);
  for (const code of ["ELIFECYCLE", "ERESOLVE", "EJSONPARSE", "ENOENT", "E404"])
    assert.equal(signs("npm ci\nnpm test\n", `npm ERR! code ${code}`), null, code);
});

test("tests that fetch nothing lack nothing, whatever is printed", () => {
  const output = "curl: command not found\nE: Unable to locate package x\n";
  const refusals = [{ phase: "grading", host: "a.org", port: 443, reason: "name_not_allowed", times: 1 }] as const;
  for (const script of ["pytest /tests", "# apt-get install curl", "curl http://localhost:8000/", "pip --version"])
    assert.equal(signs(script, output, { refusals: [...refusals] }), null, script);
});

test("what the door refused is named with its reason, before what was printed", () => {
  const refusals = [{ phase: "grading", host: "a.org", port: 443, reason: "name_not_allowed", times: 1 }] as const;
  const found = signs("pip install x", "", { refusals: [...refusals], access: { allow: ["b.org"] } });
  assert.deepEqual([found?.hosts, found?.reach], [["a.org:443 (name_not_allowed)"], "allow"]);
});

test("an output of many long lines is read in little time", () => {
  const output = `${"x".repeat(100_000)}: not found\n`.repeat(100) + `${"https://".repeat(10_000)}\n`.repeat(20);
  assert.equal(signs("apt-get install x", output), null);
});
