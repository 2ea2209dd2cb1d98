import assert from "node:assert/strict";
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { promptFormats } from "../../../tasks/prompts/prompt-formats.ts";
import { type HarborFiles, harborFolder } from "../../fakes/harbor-tasks.ts";
import { cli, jsonOf } from "../../fakes/processes/cli.ts";

type Listed = { task_sets: { id: string; version: string | null; hash: string; tasks: { task_id: string; task_hash: string }[] }[] };

/** Nine tasks of two languages, one of them broken. */
async function folderOf(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "alidade-tasks-"));
  t.after(() => rm(folder, { recursive: true }));
  for (let index = 0; index < 9; index++) {
    await mkdir(join(folder, `t${index}/files`), { recursive: true });
    await writeFile(join(folder, `t${index}/files/a.txt`), `${index}\n`);
    const labels = { language: index % 3 === 0 ? "c" : "python" };
    const grader = { kind: "script", command: ["true"] };
    const task = { task_id: `t${index}`, instruction: index === 8 ? "" : `Do ${index}.`, environment: { files: "files" }, grader, labels };
    await writeFile(join(folder, `t${index}/task.yaml`), JSON.stringify(task));
  }
  await writeFile(join(folder, "task-set.yaml"), "id: my/set\nversion: '2'\n");
  return folder;
}

const ids = ({ task_sets: [set] }: Listed) => set?.tasks.map(({ task_id }) => task_id) ?? [];
const list = async (folder: string, ...flags: string[]) => jsonOf<Listed>(await cli(["tasks", "list", folder, "--json", ...flags]));

test("a set has the id and version of its folder, and the same hash wherever it lies and whatever its name", async (t) => {
  const folder = await folderOf(t);
  const [set] = (await list(folder)).task_sets;
  const moved = join(await mkdtemp(join(tmpdir(), "alidade-tasks-")), "other");
  t.after(() => rm(join(moved, ".."), { recursive: true }));
  await cp(folder, moved, { recursive: true });
  await rm(join(moved, "task-set.yaml"));
  const [other] = (await list(moved)).task_sets;
  assert.deepEqual([set?.id, set?.version, set?.tasks.length], ["my/set", "2", 8]);
  assert.deepEqual([other?.id, other?.version, other?.hash], ["other", null, set?.hash]);
  await writeFile(join(moved, "t0/files/a.txt"), "changed\n");
  const [changed] = (await list(moved)).task_sets;
  assert.notEqual(changed?.hash, set?.hash);
  const differs = set?.tasks.filter(({ task_hash }, at) => task_hash !== changed?.tasks[at]?.task_hash).map(({ task_id }) => task_id);
  assert.deepEqual(differs, ["t0"]);
});

test("shards of a mixed order have every chosen task once, and the same word mixes alike", async (t) => {
  const folder = await folderOf(t);
  const mixed = ids(await list(folder, "--shuffle", "7"));
  assert.deepEqual(ids(await list(folder, "--shuffle", "7")), mixed);
  assert.notDeepEqual(ids(await list(folder, "--shuffle", "8")), mixed);
  const parts = await Promise.all(["1/3", "2/3", "3/3"].map(async (shard) => ids(await list(folder, "--shuffle", "7", "--shard", shard))));
  assert.deepEqual([parts.flat().sort(), parts.map(({ length }) => length)], [mixed.toSorted(), [3, 3, 2]]);
  assert.deepEqual(ids(await list(folder, "--label", "language=c", "--task", "t*")), ["t0", "t3", "t6"]);
  const wrong = await cli(["tasks", "list", folder, "--shard", "4/3"]);
  assert.deepEqual([wrong.code, /--shard is "4\/3": give the part and the number of parts, as in 2\/8/.test(wrong.stderr)], [2, true]);
});

test("validate names each task that cannot be loaded, and ends with 1", async (t) => {
  const folder = await folderOf(t);
  const { code, stdout, stderr } = await cli(["tasks", "validate", folder]);
  assert.deepEqual([code, stdout.split(",")[0]], [1, "8 tasks can be loaded"]);
  assert.match(stderr, /LEFT OUT: .*t8\/task\.yaml: instruction/);
});

test("validate says which tasks want which network flag, and why", async () => {
  const task = (config: string, script: string): HarborFiles => ({
    "task.toml": `[environment]\ndocker_image = "debian:12"\nworkdir = "/app"\n${config}`,
    "instruction.md": "Do it.\n",
    "tests/test.sh": `#!/bin/bash\n# apt-get install nothing\n${script}\necho 1 > /logs/verifier/reward.txt\n`,
  });
  const usual = "apt-get update\napt-get install -y curl\ncurl -LsSf https://example.org/uv.sh | sh\nuvx -p 3.13 pytest /tests";
  const folder = await harborFolder({
    agent: task("allow_internet = true\n", "test -e /app/x"),
    usual: task("", usual),
    open: task('network_mode = "public"\n', usual),
    local: task("", "curl -s http://localhost:8000/ | grep -q x\npip --version"),
    named: task('[verifier]\nnetwork_mode = "allowlist"\nallowed_hosts = ["pypi.org"]\n', "pip install pytest"),
  });
  const { network_wants } = jsonOf<{ network_wants: object[] }>(await cli(["tasks", "validate", folder, "--json"]));
  const agents = { flag: "--allow-public-network", why: "its agent or set-up reaches the whole public network" };
  assert.deepEqual(network_wants, [
    { task_id: "agent", ...agents },
    { task_id: "open", ...agents },
    { task_id: "open", flag: "--verifier-network", why: "its tests reach the whole public network" },
    { task_id: "usual", flag: "--verifier-network", why: "its tests run apt-get, uvx, curl and reach nothing" },
  ]);
  const { stdout } = await cli(["tasks", "validate", folder]);
  assert.match(stdout, /^agent, open: its agent or set-up .*: pass --allow-public-network$/m);
  assert.match(stdout, /^usual: its tests run apt-get, uvx, curl and reach nothing: pass --verifier-network public, or names of hosts$/m);
});

test("show prints one task as it is run", async (t) => {
  const folder = await folderOf(t);
  const { code, stdout } = await cli(["tasks", "show", `${folder}/t1`]);
  assert.deepEqual([code, stdout.includes("task_id: t1"), stdout.includes("agent_seconds: 600")], [0, true, true]);
});

for (const { name } of promptFormats)
  test(`export for ${name} writes a row a task, with its id, its source, its hash and its prompt`, async (t) => {
    const folder = await folderOf(t);
    const out = join(folder, "prompts.jsonl");
    const { stderr } = await cli(["tasks", "export", folder, "--for", name, "-o", out, "--shuffle", "1", "--shard", "1/2"]);
    const rows = (await readFile(out, "utf8")).trim().split("\n");
    const [{ task_sets: [set] = [] }] = [await list(folder, "--shuffle", "1", "--shard", "1/2")];
    assert.deepEqual([rows.length, /4 rows for /.test(stderr)], [4, true]);
    for (const [at, row] of rows.entries()) {
      const { task_id = "", task_hash = "" } = set?.tasks[at] ?? {};
      for (const word of [task_id, task_hash, set?.hash ?? "", "my/set", `Do ${task_id.slice(1)}.`])
        assert.ok(row.includes(word), `${word}: ${row}`);
    }
  });

test("export without a trainer says which there are", async (t) => {
  const { code, stderr } = await cli(["tasks", "export", await folderOf(t)]);
  assert.deepEqual([code, /--for is missing: give one of verl, slime, trl, skyrl, nemo-gym, prime-rl/.test(stderr)], [2, true]);
});

test("from-git says what a wrong flag would have to be, before it copies anything", async () => {
  const how = ["tasks", "from-git", "no-such-repository", "--test", "true", "--json"];
  for (const [flags, param, message] of [
    [["--parser", "nose"], "parser", /^--parser is "nose": give one of tape, /],
    [["--parser", "pytest", "--limit", "0"], "limit", /^--limit is 0: give a whole number of 1 or more$/],
  ] as const) {
    const { error } = jsonOf<{ error: { param: string; message: string } }>(await cli([...how, ...flags]));
    assert.deepEqual([error.param, message.test(error.message)], [param, true], error.message);
  }
  const { code, stderr } = await cli(["tasks", "from-git", "r", "--parser", "pytest"]);
  assert.deepEqual([code, /required option '--test <command>' not specified/.test(stderr)], [2, true], stderr);
});
