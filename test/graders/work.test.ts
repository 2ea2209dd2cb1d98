/** What of a hostile work reaches the sandbox that grades it. */
import assert from "node:assert/strict";
import { Readable } from "node:stream";
import { test } from "node:test";
import { keepLayer, type LayerEntry, temporaryLayers } from "../../base/files/layer.ts";
import { currentOwner } from "../../base/host/owner.ts";
import { Task } from "../../base/schema/task.ts";
import { deliveredFiles, deliveredSandbox } from "../../graders/grade.ts";
import { type Except, placeWork, takeWork } from "../../graders/work/work.ts";
import { localProcess } from "../../sandboxes/process.ts";
import { folderOf } from "../fakes/kept-work.ts";

const { signal } = new AbortController();
const owner = { run_id: "run-test-work", owner: await currentOwner() };
const file = (path: string, text: string) => ({ path, content: Buffer.from(text), mode: 0o644 });

async function taskOf(more: Record<string, unknown> = {}): Promise<Task> {
  const files = await folderOf([file("pkg/check", "base"), file("pkg/other", "base"), file("src", "base")]);
  return Task.parse({ task_id: "work", instruction: "i", environment: { files, ...more }, grader: { kind: "script", command: ["true"] } });
}

/** What `look` prints in a fresh sandbox with the work of an agent that ran `script`. */
async function after(script: string, except: Except, look = "cat pkg/check; ls pkg", more: Record<string, unknown> = {}): Promise<string> {
  const task = await taskOf(more);
  await using kept = await temporaryLayers();
  await using sandbox = await deliveredSandbox(task, localProcess, owner, signal);
  const { exit_code, stderr } = await sandbox.exec(["sh", "-ec", script]);
  assert.equal(exit_code, 0, stderr);
  const work = await takeWork(sandbox, task, await deliveredFiles(task), kept.folder, signal);
  await using fresh = await deliveredSandbox(task, localProcess, owner, signal);
  await placeWork(fresh, task, work, except, signal);
  return (await fresh.exec(["sh", "-c", look])).stdout;
}

for (const glob of ["**/check", "*/check", "pkg/*"])
  for (const [what, script] of [
    ["a link to the agent's own", "mkdir evil; echo forged > evil/check; rm -r pkg; ln -s evil pkg"],
    ["a file", "rm -r pkg; echo forged > pkg"],
    ["nothing", "rm -r pkg"],
  ] as const)
    test(`${what} in the place of a folder leaves what ${glob} protects in it`, async () => {
      assert.match(await after(script, { protected: [glob] }), /^basecheck\n/);
    });

test("a folder that goes takes along all in it that is not protected", async () => {
  assert.equal(await after("rm -r pkg", { protected: ["**/check"] }), "basecheck\n");
});

test("a link where protected files would be found brings none of its own", async () => {
  const script = "mkdir evil; echo forged > evil/rule; ln -s ../evil pkg/more";
  assert.equal(await after(script, { protected: ["pkg/*/rule"] }, "cat pkg/more/rule evil/rule"), "forged\n");
});

test("nothing of a work lies in the graders' own folders, where a task lets HOME cross", async () => {
  const script = "mkdir -p $HOME/.alidade-report; echo forged > $HOME/.alidade-report/report.xml; echo own > $HOME/.own";
  const environment = { work: ["/home/agent"] };
  assert.equal(await after(script, {}, "cat $HOME/.alidade-report/report.xml; cat $HOME/.own", environment), "own\n");
});

test("a second name of a file that is not placed has its content", async () => {
  const task = await taskOf();
  await using kept = await temporaryLayers();
  const rest = { kind: "added", mode: 0o644, owner: null, mtime: new Date(0), target: null, content: null } as const;
  const entries: LayerEntry[] = [
    { ...rest, path: "/work/a.pyc", type: "file", size: 4, content: Readable.from([Buffer.from("mine")]) },
    { ...rest, path: "/work/b", type: "hardlink", size: 0, target: "/work/a.pyc" },
    { ...rest, path: "/work/c", type: "hardlink", size: 0, target: "/work/a.pyc" },
  ];
  const work = await keepLayer(Readable.from(entries), kept.folder);
  await using fresh = await deliveredSandbox(task, localProcess, owner, signal);
  await placeWork(fresh, task, work, {}, signal);
  assert.equal((await fresh.exec(["sh", "-c", "cat b c; ls; test b -ef c && echo same"])).stdout, "minemineb\nc\npkg\nsrc\nsame\n");
});
