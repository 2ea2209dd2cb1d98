/** Checks which actions earn a reward on pages of MiniWoB++, on a screen in Docker. */
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import type { AdmissionRecord } from "../../base/schema/admission.ts";
import type { Task, ToolCallOrder } from "../../base/schema/task.ts";
import { examineCalls } from "../../rollouts/accepted/examine-calls.ts";
import { pickBackend } from "../../sandboxes/index.ts";
import { loadTasks } from "../../tasks/index.ts";
import { scratchFolder } from "../fakes/machine/scratch-folder.ts";
import { cli, jsonOf } from "../fakes/processes/cli.ts";
import { need } from "../needs.ts";

const scratch = scratchFolder("miniwob");
const isWhole = process.env.ALIDADE_TEST_SCREENS === "all";
const timeout = isWhole ? 14_400_000 : 1_800_000;

/** A button, a field and a part that unfolds. ALIDADE_TEST_SCREENS=all checks all pages with a known solution. */
const short = ["click-test-2", "login-user", "click-collapsible"];
const solvable = 50;
/** Escape closes their dialog, and it is one of the keys that `check` presses. So these keys earn the reward of the page. */
const closedByEscape = ["miniwob-click-dialog-0", "miniwob-click-dialog-2-0"];

test("the known clicks earn 1 on each page; nothing and the keys of the browser earn 0", { timeout }, async (t) => {
  if (!(await need(t, "docker")) || !(await need(t, "pip"))) return;
  const tasks = await loadTasks(await setFile(isWhole ? null : short), { signal: t.signal });
  const known = tasks.filter(({ gold_calls }) => gold_calls !== undefined).map(({ labels }) => String(labels.page));
  assert.ok(isWhole ? known.length >= solvable : known.length === short.length, known.join(", "));
  const flags = ["--again", "--times", "1", "--sandbox", "docker", "--json"];
  const result = await cli(["check", await setFile(known), ...flags]);
  const { checks } = jsonOf<{ checks: { task_id: string; outcome: string; record: AdmissionRecord | null }[] }>(result);
  assert.equal(checks.length, known.length, result.stderr);
  for (const { task_id, outcome, record } of checks) {
    const rewards = Object.fromEntries(record?.gradings.map(({ work, reward }) => [work, reward]) ?? []);
    const isClosed = closedByEscape.includes(task_id);
    const wanted = { gold: 1, "no-op": 0, "the right calls twice": 1, "the keys of the browser": isClosed ? 1 : 0 };
    assert.deepEqual([task_id, outcome, rewards], [task_id, isClosed ? "quarantined" : "admitted", wanted]);
  }
});

test("one try: the right words after wrong ones earn nothing, also where the page was loaded again", { timeout }, async (t) => {
  if (!(await need(t, "docker")) || !(await need(t, "pip"))) return;
  const [login] = await loadTasks(await setFile(["login-user"]), { signal: t.signal });
  assert.ok(login?.gold_calls);
  const again = computer({ action: "key", key: "F5" });
  const rest = computer({ action: "wait", seconds: 2 });
  const submit = login.gold_calls.slice(-2);
  const found = await rewardsOf(login, {
    "submitted empty, then right": [...submit, ...login.gold_calls],
    "submitted empty, loaded again, then right": [...submit, again, rest, ...login.gold_calls],
    "loaded again, and not submitted": [...login.gold_calls.slice(0, -2), again, rest],
  });
  assert.deepEqual(found, {
    gold: 1,
    "no-op": 0,
    "bad calls submitted empty, then right": 0,
    "bad calls submitted empty, loaded again, then right": 0,
    "bad calls loaded again, and not submitted": 0,
  });
});

test("the instruction has what the page asks, also where the page tells the parts of it too", { timeout }, async (t) => {
  if (!(await need(t, "docker")) || !(await need(t, "pip"))) return;
  const tasks = await loadTasks(await setFile(["click-test-2", "email-inbox-nl-turk"]), { signal: t.signal });
  const asked = tasks.map(({ task_id, instruction }) => [task_id, instruction.split("The task: ")[1]]);
  assert.deepEqual(asked[0], ["miniwob-click-test-2-0", "Click button ONE."]);
  assert.match(asked[1]?.[1] ?? "", /^[A-Z][\w ,.']+$/);
});

const computer = (args: ToolCallOrder["arguments"]): ToolCallOrder => ({ server: "computer", tool: "computer", arguments: args });

async function rewardsOf(task: Task, bad_calls: Record<string, ToolCallOrder[]>) {
  const signal = AbortSignal.timeout(timeout);
  const { backend } = await pickBackend("docker", signal);
  await backend.prepare([task.environment], { signal, progress: () => undefined });
  const { gold_calls = [], ...rest } = task;
  const options = { run_id: "miniwob", owner: "test", times: 1, word: "word", signal };
  const { gradings } = await examineCalls({ ...rest, gold_calls, bad_calls }, backend, options);
  const probes = ["the right calls twice", "the keys of the browser"];
  return Object.fromEntries(
    gradings.filter(({ work }) => !probes.includes(work) && !work.startsWith("one more write")).map(({ work, reward }) => [work, reward]),
  );
}

/** null: all pages. */
async function setFile(pages: string[] | null): Promise<string> {
  const path = join(scratch, `${pages?.join("-").slice(0, 100) ?? "all"}.set.yaml`);
  await writeFile(path, pages === null ? "set: miniwob\n" : `set: miniwob\npages: ${JSON.stringify(pages)}\n`);
  return path;
}
