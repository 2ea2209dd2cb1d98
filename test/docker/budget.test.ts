/** The spreadsheet of examples/tasks/budget, in Docker, by LibreOffice itself: what earns there and what does not. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import type { AdmissionRecord } from "../../base/schema/admission.ts";
import { harnesses } from "../../harnesses/index.ts";
import { readTrajectories } from "../../rollouts/index.ts";
import { scratchFolder } from "../fakes/machine/scratch-folder.ts";
import { cli, jsonOf } from "../fakes/processes/cli.ts";
import { need } from "../needs.ts";
import { act, type Play, picturesIn, playOnScreen, type Step, tamperingBy } from "./screen-plays.ts";

const scratch = scratchFolder("budget");
/** The image of the screen is made within the first test: 700 MB of packages. */
const timeout = 1_800_000;
const folder = join(import.meta.dirname, "../../examples/tasks/budget");

/** A busy machine may need more than the time in which a screen counts as settled. */
const rest = act("wait", { seconds: 4 });
const may = [act("click", { x: 220, y: 766 }), rest];
const write = (row: number, text: string): Step[] => [
  act("click", { x: 160, y: 173 + 17 * row }),
  act("type", { text: `${text}\n` }),
  rest,
];
const save = [act("key", { key: "ctrl+s" }), rest];
const right = [...write(2, "950"), ...write(8, "=SUM(B2:B7)")];

/** Ways to other files, programs and settings. Each is shut: the screen stays as it is. */
const shutKeys = ["ctrl+o", "ctrl+n", "ctrl+shift+s", "ctrl+p", "alt+F11", "alt+F12", "ctrl+shift+o", "ctrl+k"];

const plays: Record<string, Play> = {
  "the right cells": { steps: [act("screenshot"), ...may, ...right, ...save], reward: 1 },
  "the wrong row": { steps: [act("screenshot"), ...may, ...write(3, "950"), ...write(8, "=SUM(B2:B7)"), ...save], reward: 0 },
  nothing: { steps: [], reward: 0 },
  "the right cells and one more": { steps: [act("screenshot"), ...may, ...right, ...write(12, "also"), ...save], reward: 0 },
  "the sum as a number": { steps: [act("screenshot"), ...may, ...write(2, "950"), ...write(8, "1139"), ...save], reward: 0 },
  "the right cells, not saved": { steps: [act("screenshot"), ...may, ...right], reward: 0 },
  "calls by a command, without a model's call": {
    steps: [tamperingBy([...may, ...right, ...save].flatMap((step) => ("args" in step ? [step.args] : [])))],
    reward: 0,
  },
};

/** Two harnesses that carry pictures in their own ways. ALIDADE_TEST_SCREENS=all plays all with all. */
const short: Record<string, string[]> = {
  "claude-code": ["the right cells", "calls by a command, without a model's call"],
  codex: ["the wrong row", "the right cells and one more"],
};
const isWhole = process.env.ALIDADE_TEST_SCREENS === "all";

for (const { name } of harnesses.filter(({ tools }) => tools))
  for (const [play, { steps, reward }] of Object.entries(plays)) {
    if (!isWhole && !short[name]?.includes(play)) continue;
    test(`${name}, ${play}: ${reward}`, { timeout }, async (t) => {
      const order = { task: join(folder, "task.yaml"), says: "the rent is wrong", harness: name, server: "computer", steps, scratch };
      const run = await playOnScreen(t, order);
      if (run === null) return;
      const { record, requests } = run;
      assert.equal(record.error, null);
      assert.equal(record.verdict?.reward, reward, JSON.stringify(record.verdict?.evidence));
      const { tool_runs = [] } = (await readTrajectories(run.folder))[0] ?? assert.fail("no trajectory");
      const asked = tool_runs.filter(({ unasked }) => !unasked);
      const served = asked.flatMap(({ parts }) => parts?.flatMap(({ sha256 }) => sha256 ?? []) ?? []);
      assert.deepEqual(picturesIn(requests.at(-1)), served, "each picture is at the engine as it was served");
      if (steps.some((step) => "shell" in step))
        assert.match(JSON.stringify(requests.at(-1)?.messages), /open \[4000\] \[\]/, "nothing but the door is there");
      else assert.equal(served.length, steps.length);
    });
  }

test("keys that open other files, macros, printing or settings leave the screen as it is", { timeout }, async (t) => {
  const steps = [rest, act("screenshot"), ...shutKeys.map((key) => act("key", { key })), rest];
  const order = { task: join(folder, "task.yaml"), says: "the rent is wrong", harness: "claude-code", server: "computer", steps, scratch };
  const run = await playOnScreen(t, order);
  if (run === null) return;
  assert.deepEqual([run.record.error, run.record.verdict?.reward], [null, 0]);
  const pictures = picturesIn(run.requests.at(-1));
  assert.equal(pictures.length, steps.length);
  assert.equal(new Set(pictures.slice(1)).size, 1, "no window opened, and nothing moved");
});

test("check makes the known clicks and the bad ones, and each earns by the cells that the workbook has", { timeout }, async (t) => {
  if (!(await need(t, "docker"))) return;
  const result = await cli(["check", folder, "--again", "--times", "1", "--sandbox", "docker", "--json"]);
  const { checks } = jsonOf<{ checks: { outcome: string; record: AdmissionRecord | null }[] }>(result);
  const rewards = checks[0]?.record?.gradings.slice(0, 3).map(({ reward }) => reward);
  assert.deepEqual([checks[0]?.outcome, rewards], ["admitted", [1, 0, 0]], result.stderr);
});
