/** Whose doing a failed grading is, by a grader that says what it is told to say of each work: the clocks are numbers here. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Verdict } from "../../../base/schema/rollout.ts";
import { type GraderSpec, Task } from "../../../base/schema/task.ts";
import { composite } from "../../../graders/composite.ts";
import type { Clock } from "../../../graders/fault/clock.ts";
import { grade } from "../../../graders/grade.ts";
import type { GradeContext, Grader } from "../../../graders/grader.ts";
import { localProcess } from "../../../sandboxes/process.ts";
import { folderOf, keptWork } from "../../fakes/kept-work.ts";

type Said = { reward: number | null; status: Verdict["status"]; clock?: Clock; duration_ms?: number };

const limit_ms = 60_000;
const graded = (seconds: number, more: Partial<Said> = {}): Said => ({
  reward: 0,
  status: "graded",
  clock: { took_ms: seconds * 1_000, limit_ms },
  ...more,
});
const hangs: Said = { reward: null, status: "grader_timeout", clock: { took_ms: limit_ms, limit_ms } };
const fails: Said = { reward: null, status: "grader_error" };

const file = (path: string) => ({ path, content: Buffer.from(path), mode: 0o644 });
const owner = { run_id: "run-test-fault", owner: "test" };

/** `spec`: of a grader whose part it is; `lend`: it is graded in the agent's own sandbox. */
type Judging = { work: Said[]; unchanged: Said; gold?: Said; spec?: GraderSpec; lend?: GradeContext["lend"] };

/** `work`: what its first and its second grading say; `gold` left out: the task has none. Says also whose gradings there were. */
async function judged({ work, unchanged, gold, spec = { kind: "scripted" }, lend }: Judging) {
  const asked: string[] = [];
  const grader: Grader = {
    name: "scripted",
    title: "Says what it is told",
    async grade(_spec, { work: given, lend }) {
      const path = given.changes[0]?.path;
      const whose = path === undefined ? "unchanged" : path.endsWith("gold.txt") ? "gold" : "work";
      asked.push(lend === undefined ? whose : `${whose} lent`);
      const said = { unchanged, gold, work: work[asked.filter((one) => one.startsWith("work")).length - 1] }[whose] as Said;
      const { reward, status, clock, duration_ms = clock?.took_ms ?? 1 } = said;
      const error = reward === null ? { code: status, message: "it failed", status: null } : null;
      const rest = { components: {}, tier: "T2", isolation: "container", grader: "scripted" } as const;
      return { ...rest, reward, status, error, duration_ms, evidence: clock ? { clock } : {} };
    },
  };
  const gold_files = gold && (await folderOf([file("gold.txt")]));
  const limits = { grade_seconds: 60 };
  const task = Task.parse({
    ...{ task_id: "t", instruction: "i", grader: spec, limits, reward_range: [-1, 1] },
    ...(gold_files && { gold_files }),
  });
  const fresh = () => localProcess.create({ ...owner, image: null, workdir: "/work", mounts: {}, env: {}, limits: task.limits }, signal);
  const { signal } = new AbortController();
  const given = { task, graders: [grader, composite as unknown as Grader], work: await keptWork([], [file("work.txt")]), fresh, signal };
  const verdict = await grade({ ...given, ...(lend && { lend }) });
  return { verdict, asked: asked.join(" "), outcome: [verdict.reward, verdict.status, verdict.error?.code ?? null] };
}

const lowest = [-1, "no_output"];
const noReward = [null, "grader_timeout", "grader_timeout"];

test("a work that never ends has the lowest reward where the task's own files end well inside the limit, and the verdict says so", async () => {
  const { verdict, asked, outcome } = await judged({ work: [hangs, hangs], unchanged: graded(1), gold: graded(2.5) });
  assert.deepEqual([asked, outcome], ["work unchanged gold work", [...lowest, "grader_timeout"]]);
  assert.deepEqual(verdict.evidence.own_files, [
    { work: "no change", reward: 0, status: "graded", clock: { took_ms: 1_000, limit_ms } },
    { work: "known solution", reward: 0, status: "graded", clock: { took_ms: 2_500, limit_ms } },
  ]);
  assert.match(verdict.error?.message ?? "", /\(no change 1\.0 of 60 seconds, known solution 2\.5 of 60 seconds\)/);
});

test("a work that ends in time the second time has that reward", async () => {
  const { asked, outcome } = await judged({ work: [hangs, graded(3, { reward: 1 })], unchanged: graded(1) });
  assert.deepEqual([asked, outcome], ["work unchanged work", [1, "graded", null]]);
});

for (const [title, own, evidence] of [
  ["the task's own files took more than half of the limit", { unchanged: graded(31) }, [31_000]],
  ["the task's own files never end either", { unchanged: hangs }, [60_000]],
  ["the known solution took more than half of the limit", { unchanged: graded(1), gold: graded(31) }, [1_000, 31_000]],
  ["the known solution never ends", { unchanged: graded(1), gold: hangs }, [1_000, 60_000]],
  ["the known solution is not graded", { unchanged: graded(1), gold: fails }, [1_000, 1]],
  ["a grader without a clock took more than half of it", { unchanged: { ...graded(0), duration_ms: 31_000, clock: undefined } }, [31_000]],
  [
    "sandboxes are so slow that a whole grading took more than half of its time",
    { unchanged: graded(1, { duration_ms: 91_000 }) },
    [91_000],
  ],
] as [string, { unchanged: Said; gold?: Said }, number[]][])
  test(`a work that never ends has no reward where ${title}: the machine may be too slow`, async () => {
    const { verdict, asked, outcome } = await judged({ work: [hangs, hangs], ...own });
    assert.deepEqual([asked, outcome], [own.gold ? "work unchanged gold" : "work unchanged", noReward]);
    const clocks = (verdict.evidence.own_files as { clock: Clock }[]).map(({ clock }) => clock.took_ms);
    assert.deepEqual(clocks, evidence);
  });

test("where no change hangs, as a fault that is to be mended may, the known solution says whether there was time", async () => {
  const { asked, outcome } = await judged({ work: [hangs, hangs], unchanged: hangs, gold: graded(1) });
  assert.deepEqual([asked, outcome], ["work unchanged gold work", [...lowest, "grader_timeout"]]);
});

test("a work that fails in two ways one after the other has no way out", async () => {
  const first = await judged({ work: [hangs, fails], unchanged: graded(1) });
  assert.deepEqual(first.outcome, [...lowest, "grader_error"]);
  const second = await judged({ work: [fails, hangs], unchanged: graded(1) });
  assert.deepEqual(second.outcome, [...lowest, "grader_timeout"]);
  const slow = await judged({ work: [fails, hangs], unchanged: graded(31) });
  assert.deepEqual(slow.outcome, noReward, "only its time ran out twice, on a machine that may be slow");
});

test("a part of a composite is asked about by itself, and a work in its agent's own sandbox beside fresh ones", async () => {
  const spec = { kind: "composite", combine: "weighted", parts: [{ name: "slow", grader: { kind: "scripted" } }] };
  const part = await judged({ work: [hangs, hangs], unchanged: graded(1), spec });
  assert.deepEqual([part.asked, part.outcome], ["work unchanged work", [-1, "graded", null]]);
  assert.deepEqual(part.verdict.components, { slow: { value: -1, weight: 1 } });
  const lend = () => Promise.reject(new Error("not asked for here"));
  const lent = await judged({ work: [hangs, hangs], unchanged: graded(1), lend });
  assert.deepEqual([lent.asked, lent.outcome], ["work lent unchanged work lent", [...lowest, "grader_timeout"]]);
});

test("where a failure is none of time, the known solution is graded only if nothing else is measured", async () => {
  const { asked } = await judged({ work: [fails, fails], unchanged: graded(40), gold: graded(40) });
  assert.equal(asked, "work unchanged work");
  const bad = await judged({ work: [fails, fails], unchanged: fails, gold: graded(40) });
  assert.deepEqual([bad.asked, bad.outcome], ["work unchanged gold work", [...lowest, "grader_error"]]);
});
