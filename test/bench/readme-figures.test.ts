/** The figures of the README are of a commit that is not long ago, and the command that makes them runs. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { commitsOf, withTable } from "../../bench/readme-table.ts";
import { scratchFolder } from "../fakes/machine/scratch-folder.ts";
import { root } from "../fakes/processes/cli.ts";
import { need } from "../needs.ts";

const run = promisify(execFile);
const scratch = scratchFolder("readme-figures");
const bench = join(root, "bench/readme-figures.ts");

/** By then enough has changed that they say nothing of what is read today. */
const oldest = 200;

test(`the README's figures name the commit at which they were measured, at most ${oldest} commits ago`, async (t) => {
  const commits = commitsOf(await readFile(join(root, "README.md"), "utf8"));
  assert.ok(commits.length >= 2, "there are rows");
  const [commit] = commits;
  assert.ok(commit, "a row names its commit");
  assert.deepEqual(new Set(commits), new Set([commit]), "all rows are of one run");

  if (!(await need(t, "git"))) return;
  const git = async (...args: string[]) => (await run("git", ["-C", root, ...args])).stdout.trim();
  const isShallow = await git("rev-parse", "--is-shallow-repository").catch(() => null);
  if (isShallow === null) return t.skip("this is no clone of git's: how old the figures are is not known");
  if (isShallow === "true") return t.skip("this clone is shallow: how old the figures are is not known; git fetch --unshallow");
  await git("merge-base", "--is-ancestor", commit, "HEAD").catch(() =>
    assert.fail(`${commit} is no commit of this history: measure at one that is`),
  );
  const count = Number(await git("rev-list", "--count", `${commit}..HEAD`));
  assert.ok(count <= oldest, `${commit} is ${count} commits ago: node bench/readme-figures.ts --write, on a quiet machine`);
});

test("a row that names no commit is found", () => {
  const readme = withTable(
    "<!-- figures: node bench/readme-figures.ts --write --><!-- end of the figures -->",
    "| a | b |\n| --- | --- |\n| x | `0123abc` |\n| y | 5 |",
  );
  assert.deepEqual(commitsOf(readme), ["0123abc", null]);
  assert.throws(() => commitsOf("no marks"), /README\.md lacks the line/);
});

// How long anything takes is not asserted: the numbers of a quick run mean nothing.
test("the command prints a row for Alidade, one for the pass-through, and two for the gateway of a Polar checkout", async (t) => {
  if (!(await need(t, "git")) || !(await need(t, "python"))) return;
  const checkout = await polarCheckout();
  const { stdout } = await run(process.execPath, [bench, "--quick", "--polar", checkout]);
  const rows = stdout.split("\n").filter((line) => line.startsWith("|"));
  const polar = (await run("git", ["-C", checkout, "rev-parse", "--short=8", "HEAD"])).stdout.trim();
  assert.deepEqual(
    rows.slice(2).map((line) => line.split(" | ")[0]),
    ["| **Alidade**, durable", "| a bare pass-through, nothing kept", `| Polar ${polar}, in memory`, `| Polar ${polar}, on disk`],
  );
  for (const line of rows.slice(2)) assert.match(line, /\| `[0-9a-f]{7,}[^`]*` \| -?[\d.]+ ms.* \| [\d.]+ ms.* \| \d+.* \| (yes|no) \|$/);
  assert.match(stdout, /One run of 1 interleaved rounds/);
});

test("figures of a quick run are not written", async () => {
  await assert.rejects(run(process.execPath, [bench, "--quick", "--write"]), /--quick measures nothing that may be written/);
});

/** A gateway with the command line and the topology of Polar's, that hands bytes on. */
async function polarCheckout(): Promise<string> {
  const folder = join(scratch, "polar");
  await mkdir(join(folder, "src/polar"), { recursive: true });
  await writeFile(join(folder, "src/polar/__init__.py"), "");
  await writeFile(join(folder, "src/polar/cli.py"), gateway);
  const git = (...args: string[]) => run("git", ["-C", folder, "-c", "user.name=a", "-c", "user.email=a@b", ...args]);
  await git("init", "-q");
  await git("add", "-A");
  await git("commit", "-qm", "one");
  return folder;
}

const gateway = `
import argparse, http.server, json, urllib.request
asked = argparse.ArgumentParser()
asked.add_argument("command", choices=["serve_gateway"])
asked.add_argument("-c")
asked.add_argument("--node-id")
args = asked.parse_args()
topology = json.load(open(args.c))
[node] = [node for node in topology["gateway"]["nodes"] if node["id"] == args.node_id]
assert topology["gateway"]["completion_persistence"]["enabled"] == ("save_dir" in topology["rollout"])
class Relay(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *_): pass
    def do_GET(self): self.answer(b"{}")
    def do_POST(self):
        assert self.headers["x-session-id"], "no session"
        body = self.rfile.read(int(self.headers["content-length"]))
        with urllib.request.urlopen(urllib.request.Request(node["inference"]["base_url"] + self.path, data=body)) as answered:
            self.answer(answered.read())
    def answer(self, body):
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
http.server.ThreadingHTTPServer((node["host"], node["port"]), Relay).serve_forever()
`;
