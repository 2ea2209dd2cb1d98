/** How busy engines are by policy step: from the rows of a ledger while results come, and from the records of a run. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import fc from "fast-check";
import type { Trajectory } from "../../../base/schema/trajectory.ts";
import { reconstruct } from "../../../reconstruct/index.ts";
import { attemptFigures, StepTallies, type TalliedRow } from "../../../service/figures/index.ts";
import { GroupPart, mostEngineSpans, SetSpec, SqliteLedger } from "../../../service/ledger/index.ts";
import { sampledBy } from "../../../service/nodes/attempt-result.ts";
import { SetTallies } from "../../../service/set-tallies.ts";
import { scratchFolder } from "../../fakes/machine/scratch-folder.ts";
import { attemptResult } from "../../fakes/records/attempt-result.ts";
import { type CallOptions, LogBuilder, user } from "../../fakes/records/log-builder.ts";

const scratch = scratchFolder("engine-times");
let files = 0;

type Given = { engine: string; step: number | null; next: number; begin: number; took: number; pause: [number, number] | null };

const given: fc.Arbitrary<Given> = fc.record({
  engine: fc.constantFrom("a", "b"),
  step: fc.constantFrom(1, 1, 2, 3, null),
  next: fc.constantFrom(0, 0, 1),
  begin: fc.nat(400),
  took: fc.integer({ min: 1, max: 60 }),
  pause: fc.option(fc.tuple(fc.nat(60), fc.nat(40))),
});
/** Attempts at one rollout: the last one is its result. */
const rollouts = fc.array(
  fc.record({
    attempts: fc.array(fc.array(given, { maxLength: 6 }), { minLength: 1, maxLength: 3 }),
    end: fc.constantFrom(1, null, "cancelled"),
  }),
  { minLength: 1, maxLength: 8 },
);

const at = (step: number | null) => (step === null ? null : { version: `v${step}`, step });
const toCall = ({ engine, step, next, begin, took, pause }: Given): CallOptions => ({
  ...{ messages: [user(`at ${begin}`)], engine, policy: at(step), policy_end: at(step === null ? null : step + next) },
  ...{ begin: 1_000 + begin, finish: 1_000 + begin + took },
  ...(pause && { pauses: [{ from: 1_000 + begin + pause[0], to: 1_000 + begin + pause[0] + pause[1] }] }),
});

function trajectoryOf(calls: readonly Given[]): Trajectory {
  const log = new LogBuilder();
  for (const call of calls) log.call(toCall(call));
  return reconstruct(log.entries);
}

const resultOf = (trajectory: Trajectory, reward: number | null) =>
  attemptResult({
    reward,
    state: reward === null ? "failed" : "completed",
    figures: attemptFigures(trajectory),
    ...sampledBy(trajectory.calls),
  });

/** The definition, a millisecond at a time. */
function byHand(calls: readonly Given[], step: number): [busy: number, all: number] {
  const engines = new Map<string, Set<number>>();
  for (const { engine, begin, took, pause, ...call } of calls) {
    const [from, length] = pause ?? [0, 0];
    const times = Array.from({ length: took }, (_, after) => after).filter((after) => after < from || after >= from + length);
    if (call.step === step && times.length > 0)
      engines.set(engine, new Set([...(engines.get(engine) ?? []), ...times.map((after) => begin + after)]));
  }
  const all = [...engines.values()].flatMap((times) => [...times]);
  return [all.length, all.length === 0 ? 0 : (Math.max(...all) + 1 - Math.min(...all)) * engines.size];
}

function busyOf(tallies: StepTallies, step: number): [number, number] {
  const found = tallies.latest(9).find(({ policy_step }) => policy_step === step)?.figures.engine_busy_ratio;
  return [found?.part ?? 0, found?.whole ?? 0];
}

test("a service and the records of a run tell the same of random calls: attempts that were replaced and what was cancelled have none", async () => {
  await fc.assert(
    fc.asyncProperty(rollouts, fc.integer(), async (all, seed) => {
      await using ledger = SqliteLedger.open(join(scratch, `${files++}.sqlite`));
      const { set_id } = await ledger.putSet("s", SetSpec.parse({ samples: all.length, retries: 9 }));
      const lease = await ledger.join({ name: "n", slots: 99 });
      const task = { task_id: "t", instruction: "Do it.", grader: { kind: "script" } };
      await ledger.submit(set_id, [GroupPart.parse({ group_key: "g", task })]);
      const live = new SetTallies(ledger);
      for (let attempt = 0; attempt < 3; attempt++) {
        for (const claim of await ledger.claim(lease, 99)) {
          const { attempts, end } = all[claim.index] as (typeof all)[number];
          const result = resultOf(trajectoryOf(attempts[attempt] ?? []), end === 1 ? 1 : null);
          const isLast = attempt === attempts.length - 1;
          if (isLast && end === "cancelled") await ledger.cancel({ set: set_id, rollout: claim.rollout_id }, "no use");
          if (!isLast) await ledger.release(claim, "sandbox_error");
          assert.equal(await ledger.finish(claim, result), isLast && end !== "cancelled" ? "accepted" : "fenced");
          if ((claim.index + seed) % 3 === 0) await live.of(set_id, AbortSignal.timeout(60_000));
        }
      }
      const { steps } = await live.of(set_id, AbortSignal.timeout(60_000));
      const recorded = new StepTallies(Number.POSITIVE_INFINITY);
      for (const { row } of (await ledger.results(set_id, null, 99)).toReversed()) recorded.addRow(row);
      const counted = all.flatMap(({ attempts, end }) => (end === "cancelled" ? [] : (attempts.at(-1) ?? [])));
      for (const step of [1, 2, 3]) {
        assert.deepEqual(busyOf(steps, step), byHand(counted, step));
        assert.deepEqual(busyOf(recorded, step), byHand(counted, step));
      }
    }),
    { numRuns: 60 },
  );
});

const row = (calls: readonly Given[], more: Partial<TalliedRow> = {}): TalliedRow => ({
  ...{ ...resultOf(trajectoryOf(calls), 1), stale: null, policy_step: null },
  ...more,
});
const call = (step: number, begin: number, took: number): Given => ({ engine: "a", step, next: 0, begin, took, pause: null });

test("a step of which an earlier version wrote a result is unknown, with the reason, and so is no other step", () => {
  const tallies = new StepTallies();
  tallies.addRow(row([call(1, 0, 10), call(2, 20, 10)]));
  const { figures, ...older } = row([call(2, 40, 10), call(3, 60, 10)]);
  tallies.addRow({ ...older, figures: figures && { ...figures, engine_spans: null } });
  assert.deepEqual(
    tallies.latest(9).map(({ policy_step, figures: { engine_busy_ratio } }) => [policy_step, engine_busy_ratio.value]),
    [
      [1, 1],
      [2, null],
      [3, null],
    ],
  );
  assert.match(tallies.latest(1)[0]?.figures.engine_busy_ratio.reason ?? "", /an earlier version wrote a result/);
});

test("the row of a rollout has so many spans and no more: of a longer one the records of its run alone tell", () => {
  const calls = Array.from({ length: mostEngineSpans + 1 }, (_, at) => call(1, 10 * at, 5));
  const trajectory = trajectoryOf(calls);
  assert.equal(attemptFigures(trajectory).engine_spans, null);
  assert.deepEqual(attemptFigures(trajectory, Number.POSITIVE_INFINITY).engine_spans?.[0]?.times.length, 2 * calls.length);
  const spans = attemptFigures(trajectoryOf(calls.slice(1))).engine_spans;
  assert.ok(JSON.stringify(spans).length < 5_000, "differences are short");
  assert.deepEqual(attemptFigures(trajectoryOf([call(1, 0, 20), call(1, 20, 5), call(1, 10, 2)])).engine_spans, [
    { engine: "a", step: 1, times: [1_000, 25] },
  ]);
});

test("spans of the oldest steps are given up for their sum, and such a step is unknown once more comes of it", () => {
  const tallies = new StepTallies(10);
  for (let step = 1; step <= 5; step++) tallies.addRow(row([0, 20, 40, 60].map((begin) => call(step, begin, 10))));
  const values = () => tallies.latest(9).map(({ figures }) => figures.engine_busy_ratio.part);
  assert.deepEqual(values(), [40, 40, 40, 40, 40]);
  tallies.addRow(row([call(5, 10, 10), call(1, 10, 10)]));
  assert.deepEqual(values(), [0, 40, 40, 40, 50]);
});
