/** Rollouts whose task has skills: what of its folder arrives where the harness looks, and for which harness they begin. */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { Environment, type Task } from "../../base/schema/task.ts";
import { commandHarness, type Harness, harnesses } from "../../harnesses/index.ts";
import { assertTakesTask } from "../../rollouts/accepted/index.ts";
import { type RolloutOutcome, rolloutsOn } from "../../rollouts/index.ts";
import { pickBackend } from "../../sandboxes/index.ts";
import { runner } from "../fakes/rollouts/small-run.ts";
import { chatHarness, writeTask } from "../fakes/rollouts/small-task.ts";

const command = commandHarness({ argv: ["node", chatHarness, "{instruction}"] });
const harness: Harness = { ...command, skills: ".own/skills" };

/** `makes`: the set-up, which puts the skills into the workdir. */
async function outcomeWith(t: TestContext, skills: string, makes: string): Promise<RolloutOutcome> {
  const place = await mkdtemp(join(tmpdir(), "alidade-skills-"));
  t.after(() => rm(place, { recursive: true }));
  await writeTask(place, "small");
  const { backend } = await pickBackend("process", t.signal);
  const outcomes: RolloutOutcome[] = [];
  const looks = 'cd ~/.own/skills && find . ! -type d | sort | tr "\\n" " "; cat one/SKILL.md; one/run.sh; cd - && echo yes > done.txt';
  const run = await runner(t, place, {
    path: join(place, "run"),
    retries: 0,
    reply: ({ messages }) =>
      messages.some(({ role }) => role === "assistant")
        ? { text: "done" }
        : { tool_calls: [{ name: "bash", arguments: JSON.stringify({ command: looks }) }] },
    does: async (setup, { tasks: [task] }, signal) => {
      assert.ok(task);
      const set = { command: ["sh", "-c", makes], network: "none" as const, user: "sandbox" as const };
      const own = { ...task, environment: { ...task.environment, skills, setup: set } };
      const plan = { rollout_id: "alone", attempt: 1, group_id: "g", group_size: 1, sample_index: 0, retries: 0, task_hash: "hash" };
      outcomes.push(await rolloutsOn(setup).submit({ ...plan, task: own, harness, session: { purpose: "train" } }, signal));
      return outcomes.map(({ record }) => record);
    },
  });
  await run(backend);
  return outcomes[0] ?? assert.fail();
}

test("skills arrive in the harness's folder: regular files alone, programs as programs, nothing hidden at the top", async (t) => {
  const makes = [
    "mkdir -p skills/one/.keep skills/.git && cd skills",
    "echo Fold it. > one/SKILL.md; echo a > one/.keep/a; echo b > .git/b; echo c > .hidden",
    'printf "#!/bin/sh\\necho it ran\\n" > one/run.sh; chmod +x one/run.sh',
    "ln -s /etc/passwd one/passwd; ln -s /etc one/etc; mkfifo one/pipe",
  ].join("\n");
  const { record, trajectory } = await outcomeWith(t, "/work/skills", makes);
  assert.deepEqual([record.error, record.verdict?.reward], [null, 1]);
  const said = JSON.stringify(Object.values(trajectory?.messages ?? {}));
  assert.ok(said.includes("./one/.keep/a ./one/SKILL.md ./one/run.sh Fold it.\\nit ran\\n"), said);
});

for (const [title, skills, makes, said] of [
  ["a folder that is not there", "/work/none", "true", /environment\.skills is \/work\/none: There is no folder/],
  ["a link to a folder", "/work/link", "mkdir real; ln -s real link", /environment\.skills is \/work\/link: There is no folder/],
  [
    "a folder without a skill",
    "/work/a",
    "mkdir -p a/b/c; echo x > a/SKILL.md; echo x > a/b/c/SKILL.md",
    /is \/work\/a: no folder in it has a SKILL\.md/,
  ],
  [
    "too many files",
    "/work/a",
    "mkdir -p a/b; cd a/b; echo x > SKILL.md; for i in $(seq 2001); do : > $i; done",
    /environment\.skills is \/work\/a: .*2000/,
  ],
] as const)
  test(`${title} in the place of skills measures nothing, and the error says so`, async (t) => {
    const { record } = await outcomeWith(t, skills, makes);
    assert.deepEqual([record.error?.code, record.verdict], ["sandbox_unavailable", null]);
    assert.match(record.error?.message ?? "", said);
  });

test("a task with skills is refused by name for a harness that reads none", () => {
  const task = { environment: Environment.parse({ skills: "/skills" }) } as Task;
  for (const one of [...harnesses, command, harness])
    if (one.skills) assertTakesTask(task, one);
    else
      assert.throws(() => assertTakesTask(task, one), {
        code: "task_invalid",
        message: `environment.skills is /skills, and ${one.title} reads no folder of skills: use another harness than ${one.name}.`,
      });
});
