import assert from "node:assert/strict";
import { appendFile, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { openIndex } from "../../../rollouts/records/index.ts";
import { openIndexApart } from "../../../view/run/open-index-apart.ts";
import { scratchFolder } from "../../fakes/machine/scratch-folder.ts";
import { goldenTrajectory } from "../../fakes/records/golden-session.ts";

/** More than is read in the server. */
const long = "x".repeat(17_000_000);

const lineOf = (rollout_id: string): string =>
  `${JSON.stringify({ ...goldenTrajectory(), rollout_id, session_id: `ses${rollout_id}`, labels: { long } })}\n`;

async function writeRun(name: string, lines: string): Promise<string> {
  const folder = join(scratchFolder("index-apart"), name);
  await mkdir(join(folder, "sessions"), { recursive: true });
  await writeFile(join(folder, "trajectories.jsonl"), lines);
  return folder;
}

/** A program in the place of the one that makes the index. It writes its process id beside the records, which tells that it ran. */
async function writeProgram(folder: string, code = ""): Promise<string> {
  const program = join(folder, "program.mjs");
  await writeFile(
    program,
    `import { writeFileSync } from "node:fs";\nwriteFileSync(process.argv[2] + "/ran", String(process.pid));\n${code}\n`,
  );
  return program;
}

const hasRun = (folder: string): Promise<boolean> =>
  readFile(join(folder, "ran")).then(
    () => true,
    () => false,
  );

const forbidden = (sentence: string): never => assert.fail(sentence);

test("a large run's index is made by another process, and equals the one that is made here", async () => {
  const folder = await writeRun("large", lineOf("a"));
  const made = await openIndexApart(folder, { note: forbidden });
  assert.equal(made.trajectories[0]?.figures.session_id, "sesa");
  const other = await writeRun("here", lineOf("a"));
  const { files: _, ...here } = await openIndex(other);
  const { files: __, ...apart } = made;
  assert.deepEqual(apart, here);
  assert.ok((await readFile(join(folder, "index.json"), "utf8")).includes("sesa"));
});

test("a small run, and one whose index lacks little, start no process", async () => {
  const small = await writeRun("small", `${JSON.stringify(goldenTrajectory())}\n`);
  assert.equal((await openIndexApart(small, { program: await writeProgram(small), note: forbidden })).trajectories.length, 1);
  assert.equal(await hasRun(small), false);
  const grown = await writeRun("grown", lineOf("a"));
  await openIndex(grown);
  await appendFile(join(grown, "trajectories.jsonl"), `${JSON.stringify(goldenTrajectory())}\n`);
  assert.equal((await openIndexApart(grown, { program: await writeProgram(grown), note: forbidden })).trajectories.length, 2);
  assert.equal(await hasRun(grown), false);
  await appendFile(join(grown, "trajectories.jsonl"), lineOf("b"));
  await openIndexApart(grown, { program: await writeProgram(grown) });
  assert.equal(await hasRun(grown), true, "one that lacks much starts it");
});

test("if the process ends early the server makes the index, and says why and what to do", async () => {
  const folder = await writeRun("killed", lineOf("a"));
  const said: string[] = [];
  const note = (sentence: string): void => void said.push(sentence);
  const killed = await openIndexApart(folder, { program: await writeProgram(folder, "process.kill(process.pid, 'SIGKILL');"), note });
  assert.equal(killed.trajectories.length, 1);
  assert.equal(said.length, 1);
  assert.match(said[0] ?? "", /index of .*killed ended early \(SIGKILL\), so the server makes it .* alidade ls --run /);
  const failed = await writeRun("failed", lineOf("a"));
  await openIndexApart(failed, { program: await writeProgram(failed, "process.exit(3);"), note });
  assert.match(said[1] ?? "", /\(exit code 3\)/);
});

test("a process that says it is done but wrote nothing costs time alone", async () => {
  const folder = await writeRun("nothing", lineOf("a"));
  assert.equal((await openIndexApart(folder, { program: await writeProgram(folder), note: forbidden })).trajectories.length, 1);
});

test("an abort ends the process", async () => {
  const folder = await writeRun("aborted", lineOf("a"));
  const program = await writeProgram(folder, "setInterval(() => {}, 1e6);");
  const controller = new AbortController();
  const opening = openIndexApart(folder, { program, signal: controller.signal });
  opening.catch(() => undefined);
  let pid = "";
  while (pid === "") pid = await readFile(join(folder, "ran"), "utf8").catch(() => "");
  controller.abort(new Error("stopped"));
  await assert.rejects(opening, /^Error: stopped$/);
  assert.throws(() => process.kill(Number(pid), 0), { code: "ESRCH" });
});
