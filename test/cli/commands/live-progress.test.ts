/** What `alidade run` says while it goes on. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { RolloutRecord } from "../../../base/schema/rollout.ts";
import { liveProgress } from "../../../cli/commands/run/live-progress.ts";
import { inTerminal } from "../../../cli/commands/terminal.ts";
import type { ProgressEvent } from "../../../rollouts/index.ts";
import { terminalSaying } from "../../fakes/processes/cli.ts";

const record = (sample_index: number, reward: number | null) =>
  ({
    rollout_id: `r-${sample_index}`,
    task_id: "small",
    sample_index,
    attempt: 1,
    error: reward === null ? { code: "engine_unreachable", message: "gone" } : null,
    verdict: { reward, error: null },
    summary: { sampled_tokens: 360 },
  }) as RolloutRecord;

const runs = (sample_index: number): ProgressEvent => ({
  type: "state",
  set_id: "r",
  rollout_id: `r-${sample_index}`,
  task_id: "small",
  sample_index,
  attempt: 1,
  state: "run",
});

/** Each event comes a minute after the one before it. */
function said(events: ProgressEvent[], isTTY: boolean): string {
  const terminal = terminalSaying({ isTTY });
  let now = 0;
  inTerminal(terminal, () => {
    const tell = liveProgress(() => now);
    for (const event of events) {
      tell(event);
      now += 60_000;
    }
  });
  return terminal.stderr.text;
}

const events: ProgressEvent[] = [
  { type: "note", text: "installing" },
  { type: "planned", total: 6, over: 2 },
  runs(2),
  runs(3),
  { type: "done", record: record(2, 1) },
  { type: "done", record: record(3, null) },
];

test("a rollout's last line says how many of the run are done, their mean reward, and the time left", () => {
  assert.deepEqual(said(events, false).split("\n"), [
    "  installing",
    "  small/2: run",
    "  small/3: run",
    "  small/2: done, reward 1 · 3 of 6 done, 2 queued, 1 run, mean reward 1.00, 2 tokens/s, about 9 min left",
    "  small/3: done, reward null, engine_unreachable: gone · 4 of 6 done, 2 queued, mean reward 1.00, 1 without a reward, 1 engine_unreachable, 3 tokens/s, about 4 min left",
    "",
  ]);
});

test("on a terminal the standing is the last line, drawn again under each event and gone at the end", () => {
  const over: ProgressEvent[] = [
    { type: "done", record: record(4, 0) },
    { type: "done", record: record(5, 0) },
  ];
  const lines = said([...events, ...over], true).split("\r\x1b[2K");
  assert.equal(lines.at(2), "  [######..............] 2 of 6 done, 4 queued");
  assert.equal(
    lines.at(-3),
    "  small/3: done, reward null, engine_unreachable: gone\n  [#############.......] 4 of 6 done, 2 queued, mean reward 1.00, 1 without a reward, 1 engine_unreachable, 3 tokens/s, about 4 min left",
  );
  assert.equal(lines.at(-1), "  small/5: done, reward 0\n");
});

test("a rollout is counted once, however many attempts it takes", () => {
  const attempts: ProgressEvent[] = [runs(0), { type: "done", record: record(0, null) }, runs(0), { type: "done", record: record(0, 1) }];
  const lines = said([{ type: "planned", total: 2, over: 0 }, ...attempts], false).split("\n");
  assert.match(lines.at(-2) ?? "", /· 1 of 2 done, 1 queued, mean reward 1.00, 1 engine_unreachable, /);
});

test("a run of which all is done says nothing of what is left", () => {
  assert.equal(said([{ type: "planned", total: 2, over: 2 }], true), "\r\x1b[2K");
});
