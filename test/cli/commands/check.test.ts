import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { ScriptedEngine } from "../../fakes/engines/scripted-engine.ts";
import { scratchFolder } from "../../fakes/machine/scratch-folder.ts";
import { cli, cliProcess, jsonOf, root } from "../../fakes/processes/cli.ts";
import { graderServer } from "../../fakes/proxies/grader-server.ts";
import { reader } from "../../graders/judge/scripted-judge.ts";

const scratch = scratchFolder("check");
const task = join(root, "examples/demo/tasks/merge-ranges");

type Checks = {
  checks: { task_id: string; outcome: string; file: string | null; record: { admitted: boolean; gradings: { work: string }[] } }[];
};

test("check grades a demo task in the process sandbox, tries no hack there, admits nothing, and says when a task does not hold", {
  timeout: 300_000,
}, async () => {
  const held = await cli(["check", task, "--times", "1", "--sandbox", "process", "--unsafe-host", "--json"]);
  assert.equal(held.code, 0, held.stderr);
  const [one] = jsonOf<Checks>(held).checks;
  assert.deepEqual([one?.task_id, one?.outcome, one?.file, one?.record.admitted], ["merge-ranges", "holds", null, false]);
  assert.deepEqual(
    one?.record.gradings.map(({ work }) => work),
    ["gold", "no-op", "random-edit"],
  );
  assert.match(held.stderr, /NO HACK IS TRIED HERE, and no task is admitted/);

  const broken = join(scratch, "broken");
  await cp(task, broken, { recursive: true });
  const text = await readFile(join(broken, "task.yaml"), "utf8");
  await writeFile(
    join(broken, "task.yaml"),
    text.replace("+      last[1] = Math.max(last[1], end);", "+      last[1] = Math.min(last[1], end);"),
  );
  const failed = await cli(["check", broken, "--times", "1", "--sandbox", "process", "--unsafe-host"]);
  assert.equal(failed.code, 1);
  assert.match(failed.stdout, /merge-ranges +0 +0 +0 +– +[\d.]+ +– +T0 +DOES NOT HOLD/);
  assert.match(
    failed.stdout,
    /gold_not_full: the known solution earns 0 and must earn 1: .*\n.*\n {4}verdict .*\n {4}tests +\d+ of \d+ required ones did not pass\n {4}not passed +.+: failed\n(?:.*\n)*? {4}work +~ src\/merge-ranges\.js\n/,
  );
});

test("a file or folder without a task is a mistake, not a proof that everything holds", async () => {
  const empty = join(scratch, "empty.jsonl");
  await writeFile(empty, "\n");
  const checked = await cli(["check", empty, "--sandbox", "process", "--unsafe-host"]);
  assert.deepEqual([checked.code, checked.stdout], [2, ""]);
  assert.match(checked.stderr, /empty\.jsonl holds no tasks/);
});

test("check runs nothing as the user without the user's word, and names a wrong --times", async () => {
  const refused = await cli(["check", task, "--sandbox", "process", "--json"]);
  assert.equal(refused.code, 2);
  assert.equal(jsonOf<{ error: { code: string } }>(refused).error.code, "unsafe_host_refused");
  assert.match((await cli(["check", task, "--times", "never"])).stderr, /--times <number>' argument 'never' is invalid. Give a number/);
});

test("reap removes what a process that died left behind, and says what", { timeout: 300_000 }, async () => {
  // In a place of its own, for each run on this machine removes what the dead left in the usual one.
  const TMPDIR = join(scratch, "left");
  await mkdir(TMPDIR);
  const env = { TMPDIR };
  // A process that makes a sandbox and is killed with it.
  const code = `
    const { localProcess } = await import(${JSON.stringify(join(root, "sandboxes/process.ts"))});
    const { currentOwner } = await import(${JSON.stringify(join(root, "base/host/owner.ts"))});
    const { Limits } = await import(${JSON.stringify(join(root, "base/schema/task.ts"))});
    const spec = { run_id: "dead", owner: await currentOwner(), image: null, workdir: "/work", mounts: {}, env: {}, limits: Limits.parse({}) };
    const sandbox = await localProcess.create(spec, AbortSignal.timeout(10_000));
    console.log(sandbox.outside("/"));
    setInterval(() => undefined, 1000);`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", code], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, ...env },
  });
  const [line] = await once(child.stdout, "data");
  const folder = join(String(line).trim(), "..");
  await stat(folder);
  child.kill("SIGKILL");
  await once(child, "close");
  const { removed } = jsonOf<{ removed: string[] }>(await cliProcess(["reap", "--json"], { env }));
  assert.ok(
    removed.some((text) => text.includes(folder) && text.includes("run dead")),
    JSON.stringify(removed),
  );
  await assert.rejects(stat(folder));
  assert.equal((await cliProcess(["reap"], { env })).code, 0);
});

test("check grades by a server that --grader-server names, and leaves a task of any other one out by its field", {
  timeout: 300_000,
}, async (t) => {
  const { origin, asked } = await graderServer(t, ({ body }) => ({
    reward: Number((body.work as { added: string[] }).added.includes("done.txt")),
  }));
  const folder = await goldTask("remote", `{ kind: remote, url: "${origin}/grade", tries: 1 }`);
  const args = ["check", folder, "--times", "1", "--sandbox", "process", "--unsafe-host", "--json"];
  const held = await cli([...args, "--grader-server", `${origin}=SERVER_KEY`], { env: { SERVER_KEY: "key-4711-4711" } });
  assert.deepEqual([held.code, jsonOf<Checks>(held).checks[0]?.outcome], [0, "holds"], held.stderr);
  assert.deepEqual(new Set(asked.map(({ headers }) => headers.authorization)), new Set(["Bearer key-4711-4711"]));
  const refused = await cli([...args, "--grader-server", "http://127.0.0.1:1"]);
  assert.match(refused.stdout, /task\.yaml: grader\.url: is at a server that is not in grader_servers/);
  const saidTo = async (server: string) =>
    jsonOf<{ error: { message: string } }>(await cli([...args, "--grader-server", server])).error.message;
  assert.match(await saidTo(`${origin}/grade`), /^--grader-server is ".*": give the server's origin/);
  assert.match(await saidTo(`${origin}=NO_KEY`), /^grader_servers names NO_KEY for http.*, and that variable is not set/);
});

test("check asks a judge through --engine, and leaves its task out where there is none", { timeout: 300_000 }, async () => {
  const folder = await goldTask("judged", '{ kind: judge, sees: [files], rubric: [{ name: a, says: "The work contains the word yes." }] }');
  const out = join(scratch, "judge-runs");
  const args = ["check", folder, "--times", "1", "--sandbox", "process", "--unsafe-host", "--json"];
  const without = jsonOf<{ error: { message: string } }>(await cli(args));
  assert.equal(without.error.message, "task asked: its grader judge asks a model: name one by --engine");
  await using engine = await ScriptedEngine.start(reader);
  const held = await cli([...args, "--engine", engine.url], { env: { ALIDADE_OUT: out } });
  assert.deepEqual([held.code, jsonOf<Checks>(held).checks[0]?.outcome], [0, "holds"], held.stderr);
  const [run = ""] = await readdir(out);
  assert.equal((await readdir(join(out, run, "sessions"))).length, 3, "the solution, no change and a random edit");
  const away = jsonOf<{ error: { code: string } }>(await cli([...args, "--engine", "http://127.0.0.1:1"]));
  assert.equal(away.error.code, "engine_unreachable");
});

/** A task whose solution makes a file that says yes. Returns its folder. */
async function goldTask(name: string, grader: string): Promise<string> {
  const folder = join(scratch, name);
  await mkdir(join(folder, "gold"), { recursive: true });
  await writeFile(join(folder, "gold", "done.txt"), "yes");
  await writeFile(join(folder, "task.yaml"), `task_id: asked\ninstruction: Make done.txt.\ngold_files: gold\ngrader: ${grader}\n`);
  return folder;
}
