/** Tasks are checked in containers, and a run that asks for it keeps those that were admitted. */
import assert from "node:assert/strict";
import { cp, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { before, test } from "node:test";
import { currentOwner } from "../../base/host/owner.ts";
import { Task } from "../../base/schema/task.ts";
import { deliveredFiles } from "../../graders/grade.ts";
import { probes } from "../../graders/probes/index.ts";
import { admitTasks, knownChecks } from "../../rollouts/accepted/admit-tasks.ts";
import { admittedTasks } from "../../rollouts/accepted/admitted-tasks.ts";
import { docker } from "../../sandboxes/docker.ts";
import { loadTasks } from "../../tasks/load-tasks.ts";
import { hashedTasks } from "../../tasks/sets/task-set.ts";
import { folderOf } from "../fakes/kept-work.ts";
import { ownCache } from "../fakes/machine/own-cache.ts";
import { cli } from "../fakes/processes/cli.ts";
import { need } from "../needs.ts";

/** As docs/hacks.md says of `node:test`, apart: they earn as much as no change, which is nothing. */
const tried = ["forging-daemon", "key-in-memory", "patched-framework"];

let tasks: Task[];
/** The line that the fix of the skeleton adds. */
const fix = "if (value > high) return high;";
before(async () => {
  const [task] = (await loadTasks("cli/commands/init/skeletons/task-node")) as [Task];
  const { environment } = task;
  const vendored = { path: "vendor/fixed.js", content: Buffer.from(`    ${fix}\n`), mode: 0o644 };
  const files = await folderOf([...(await deliveredFiles(task)), vendored]);
  const leaky = { ...task, task_id: "leaky", environment: { ...environment, files, env: { ...environment.env, HINT: fix } } };
  tasks = [task, leaky, { ...task, task_id: "unproven", gold_patch: null }, await printing()];
});
/** Its program prints these, and a folder of an earlier run holds them. */
async function printing(): Promise<Task> {
  const outputs = ["1 apple, 2.50 euro", "2 apples, 5 euro"];
  const program = (lines: string[]) => ["case $1 in", ...lines, "esac", ""];
  const right = outputs.map((text, at) => `${at + 1}) echo '${text}' ;;`);
  const texts = { "print.sh": program([]).join("\n"), "runs/1": `case 1\n${outputs[0]}\n`, "runs/all": outputs.join("\n") };
  const files = Object.entries(texts).map(([path, text]) => ({ path, content: Buffer.from(text), mode: 0o644 }));
  return Task.parse({
    task_id: "printing",
    instruction: "Print the price of so many apples.",
    environment: { files: await folderOf(files) },
    limits: { memory_mb: 256, disk_mb: 64, grade_seconds: 60 },
    grader: { kind: "cases", command: ["sh", "print.sh"], cases: outputs.map((stdout, at) => ({ args: [`${at + 1}`], stdout })) },
    gold_patch: `--- a/print.sh\n+++ b/print.sh\n@@ -1,2 +1,4 @@\n case $1 in\n+${right.join("\n+")}\n esac\n`,
  });
}

/** After the mounts are made: what is mounted into a container stays where it is. */
const cache = ownCache("admitted");

test("an answer that an agent can read is found where it lies, and records say which tasks a run may have", {
  timeout: 300_000,
}, async (t) => {
  if (!(await need(t, "docker"))) return;
  const hashed = await hashedTasks(tasks);
  const owner = { run_id: "run-test-admission", owner: await currentOwner() };
  const options = { ...owner, signal: t.signal, times: 1, version: "1", atOnce: 1 };
  const hacks = probes.filter(({ name }) => tried.includes(name));
  const [first, ...rest] = await Promise.all([
    admitTasks(hashed.slice(0, 1), docker, { ...options, probes: hacks }),
    admitTasks(hashed.slice(1), docker, { ...options, probes: [] }),
  ]);
  const checks = [...first, ...rest.flat()];
  assert.deepEqual(
    checks.map(({ task_id, outcome, error }) => [task_id, outcome, error?.message]),
    [
      ["clamp", "admitted", undefined],
      ["leaky", "quarantined", undefined],
      ["unproven", "quarantined", undefined],
      ["printing", "quarantined", undefined],
    ],
  );
  assert.deepEqual(
    checks[3]?.record?.reasons.map(({ message }) => message),
    ["an agent can read 2 of 2 lines of the expected outputs in /work/runs/all: take it away (environment.conceal), or out of the image"],
  );
  const leaks = checks[1]?.record?.leak_scan?.leaks.filter(({ what }) => what === "solution").map(({ place }) => place);
  assert.deepEqual(leaks, ["/work/vendor/fixed.js", "environment variables"]);
  const hacked = checks[0]?.record?.gradings.filter(({ work }) => tried.includes(work)) ?? [];
  // A machine that is loaded may end one early, with no reward.
  assert.deepEqual(
    hacked.map(({ work, reward }) => [work, (reward ?? 0) > 0]),
    hacks.map(({ name }) => [name, false]),
  );
  assert.ok((checks[0]?.record?.gradings[0]?.memory_mb ?? 1) > 0);
  const known = await knownChecks(hashed, "1", 1);
  assert.deepEqual(
    known.map((one) => one?.outcome),
    ["admitted", "quarantined", "quarantined", "quarantined"],
  );
  const said: string[] = [];
  const kept = await admittedTasks(tasks, docker, { version: "1", onLeftOut: ({ message }) => void said.push(message) });
  assert.deepEqual(
    kept.map(({ task_id }) => task_id),
    ["clamp"],
  );
  assert.match(
    said.join("\n"),
    /leaky is quarantined: an agent can read 1 of 1 lines of the known solution in [\s\S]*unproven is quarantined: it has no gold_patch/,
  );
});

test("a task that was checked before counts as it was found, until it is checked again", async (t) => {
  if (!(await need(t, "docker"))) return;
  const folder = join(cache, "without-solution");
  await cp("cli/commands/init/skeletons/task-node", folder, { recursive: true });
  const text = await readFile(join(folder, "task.yaml"), "utf8");
  await writeFile(join(folder, "task.yaml"), text.replace(/^gold_patch: .*\n(?: .*\n)+/m, ""));
  const check = (...flags: string[]) => cli(["check", folder, "--times", "1", "--sandbox", "docker", ...flags]);
  assert.match((await check()).stdout, /QUARANTINED$/m);
  const known = await check();
  assert.match(known.stdout, /QUARANTINED \(checked before\)$/m);
  assert.match(known.stderr, /--again checks them again/);
  assert.match((await check("--again")).stdout, /QUARANTINED$/m);
});
