/** Records hold what agents and models said: whatever the shell's umask, what Alidade makes for them is its user's alone. */
import assert from "node:assert/strict";
import { chmod, mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { ScriptedEngine } from "../../fakes/engines/scripted-engine.ts";
import { scratchFolder } from "../../fakes/machine/scratch-folder.ts";
import { cli, jsonOf, startCli } from "../../fakes/processes/cli.ts";
import { chatHarness, runFile, solve, writeTask } from "../../fakes/rollouts/small-task.ts";

const scratch = scratchFolder("private");
let umask = 0o022;
before(() => {
  umask = process.umask(0);
});
after(() => void process.umask(umask));

const modeOf = async (path: string): Promise<number> => (await stat(path)).mode & 0o777;

/** The folder and all that is in it, each with its mode where it is another than the one for its kind. */
async function open(folder: string): Promise<string[]> {
  const found = await readdir(folder, { recursive: true, withFileTypes: true });
  const all = [
    [folder, 0o700] as const,
    ...found.map((one) => [join(one.parentPath, one.name), one.isDirectory() ? 0o700 : 0o600] as const),
  ];
  const modes = await Promise.all(all.map(async ([path, wanted]) => [path, await modeOf(path), wanted] as const));
  assert.ok(modes.length > 1, `nothing was made in ${folder}`);
  return modes.filter(([, mode, wanted]) => mode !== wanted).map(([path, mode]) => `${path} ${mode.toString(8)}`);
}

async function place(name: string): Promise<string> {
  const folder = join(scratch, name);
  await mkdir(folder, { mode: 0o755 });
  return folder;
}

test("a run's folders, logs, trajectories and run.json are its user's alone, and so are an export and a page of it", async () => {
  const folder = await place("run");
  await writeTask(folder, "small");
  await using engine = await ScriptedEngine.start(solve);
  const file = join(folder, "run.yaml");
  await writeFile(file, runFile({ engine: engine.url, tasks: ["small"] }));
  const ran = await cli(["run", "-c", file, "-o", join(folder, "records", "runs"), "--json"]);
  assert.equal(ran.code, 0, ran.stderr);
  const { run } = jsonOf<{ run: string }>(ran);
  assert.deepEqual(await open(join(folder, "records")), []);
  assert.ok((await readdir(run)).includes("run.json"));

  for (const format of ["canonical", "parquet"]) {
    const out = join(folder, `rows.${format}`);
    assert.equal((await cli(["export", "--run", run, "--format", format, "--out", out])).code, 0);
    assert.equal(await modeOf(out), 0o600);
  }
  const page = join(folder, "page.html");
  assert.equal((await cli(["show", "small/0", "--run", run, "--html", page])).code, 0);
  assert.equal(await modeOf(page), 0o600);

  // What was there before keeps the mode that its owner gave it.
  await chmod(page, 0o644);
  await chmod(join(folder, "rows.parquet"), 0o640);
  assert.equal((await cli(["show", "small/0", "--run", run, "--html", page])).code, 0);
  assert.equal((await cli(["export", "--run", run, "--format", "parquet", "--out", join(folder, "rows.parquet")])).code, 0);
  assert.deepEqual([await modeOf(page), await modeOf(join(folder, "rows.parquet")), await modeOf(folder)], [0o644, 0o640, 0o755]);
  const resumed = await cli(["run", "--resume", run, "--json"]);
  assert.equal(resumed.code, 0, resumed.stderr);
  assert.deepEqual(await open(join(folder, "records")), []);
});

test("what a program says through `record` is its user's alone", async () => {
  const folder = await place("record");
  const out = join(folder, "records", "one");
  await using engine = await ScriptedEngine.start(() => ({ text: "done" }));
  const recorded = await cli(["record", "--engine", engine.url, "--out", out, "--", "node", chatHarness, "hi"]);
  assert.equal(recorded.code, 0, recorded.stderr);
  assert.deepEqual(await open(join(folder, "records")), []);
});

test("the sessions of `serve` and its lock are its user's alone, in a folder that was there before too", async () => {
  const folder = await place("serve");
  await using engine = await ScriptedEngine.start(() => ({ text: "done" }));
  const config = join(folder, "config.yaml");
  await writeFile(config, `out: ${JSON.stringify(folder)}\n`);
  await using serving = startCli(["serve", "--engine", engine.url, "-c", config, "--port", "0", "--json"]);
  await serving.until(async () =>
    (await readdir(join(folder, "serve"), { recursive: true }).catch(() => [])).some((name) => name.endsWith(".jsonl")),
  );
  assert.deepEqual(await open(join(folder, "serve")), []);
  assert.equal(await modeOf(folder), 0o755);
  assert.ok((await readFile(join(folder, "serve", "lock"), "utf8")).length > 0);
});
