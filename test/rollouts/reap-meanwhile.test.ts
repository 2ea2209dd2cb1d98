/** What dead processes left is removed while a run goes on, and not only when a user asks for it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { ReapOptions } from "../../base/host/reap.ts";
import { reapAtWork, reapMeanwhile } from "../../rollouts/reap-meanwhile.ts";
import { localProcess } from "../../sandboxes/process.ts";

test("a run clears away at its start and again and again until its end, and says once what it cannot", async () => {
  const asked: ReapOptions[] = [];
  const notes: string[] = [];
  const answers = [
    { removed: ["container a"], failed: ["container b: busy"] },
    { removed: [], failed: ["container b: busy"] },
  ];
  const reap = async (options: ReapOptions) => {
    asked.push(options);
    const answer = answers.shift();
    if (answer === undefined) throw new Error("the engine is gone");
    return answer;
  };
  {
    await using _reaper = reapMeanwhile(
      { backend: { ...localProcess, reap }, onProgress: (event) => void (event.type === "note" && notes.push(event.text)) },
      1,
    );
    while (asked.length < 5) await sleep(1);
  }
  const seen = asked.length;
  await sleep(20);
  assert.equal(asked.length, seen, "it ends with its scope");
  assert.deepEqual(notes, [
    "removed container a",
    "could not remove container b: busy",
    "what was left behind could not be removed: the engine is gone",
  ]);
  assert.ok(asked.every(({ all, run, min_age_ms }) => all === undefined && run === undefined && min_age_ms === 60_000));
});

test("what a process that died left of this very work goes first, and once more at the end, unless that is a stop", async () => {
  const own = async (hasDied: boolean, stops: boolean): Promise<number> => {
    let asked = 0;
    const reap = async ({ run }: ReapOptions) => {
      asked += Number(run === "r");
      return { removed: [], failed: [] };
    };
    const stop = new AbortController();
    const setup = { run_id: "r", backend: { ...localProcess, reap }, onProgress: () => undefined };
    {
      await using _reaper = await reapAtWork(setup, stop.signal, hasDied);
      assert.equal(asked, Number(hasDied));
      if (stops) stop.abort();
    }
    return asked;
  };
  assert.deepEqual([await own(true, false), await own(true, true), await own(false, false)], [2, 1, 0]);
});
