/** A node over a real ledger makes real rollouts of the small task. */
import assert from "node:assert/strict";
import { createHook } from "node:async_hooks";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import { AlidadeError } from "../../../base/errors.ts";
import { Limiter } from "../../../base/host/limiter.ts";
import type { Task } from "../../../base/schema/task.ts";
import type { EndedAttempt, Watcher } from "../../../base/schema/watcher.ts";
import { gauge } from "../../../base/wire/prometheus-text.ts";
import { commandHarness } from "../../../harnesses/command.ts";
import type { RunSetup } from "../../../rollouts/run-setup.ts";
import { makeSlots, type Slots } from "../../../rollouts/slots.ts";
import { DiskBudget } from "../../../sandboxes/disk-budget.ts";
import { pickBackend } from "../../../sandboxes/registry.ts";
import type { SandboxBackend } from "../../../sandboxes/sandbox.ts";
import { FolderBlobs, getPacked } from "../../../service/blobs/index.ts";
import { type Demands, GroupPart, type ResultRow, SetSpec, SqliteLedger } from "../../../service/ledger/index.ts";
import { attemptPlan } from "../../../service/nodes/attempt-plan.ts";
import { runNode } from "../../../service/nodes/index.ts";
import type { HealthPlace } from "../../../service/nodes/node-health.ts";
import type { ScriptedReply, WireRequest } from "../../fakes/engines/scripted-engine.ts";
import { scratchFolder } from "../../fakes/machine/scratch-folder.ts";
import { until } from "../../fakes/machine/until.ts";
import { breakLedger } from "../../fakes/records/break-ledger.ts";
import { nameWeights } from "../../fakes/records/name-weights.ts";
import { runner } from "../../fakes/rollouts/small-run.ts";
import { solve, writeTask } from "../../fakes/rollouts/small-task.ts";

const scratch = scratchFolder("node");
let places = 0;

type AtWork = { ledger: SqliteLedger; set: string; blobs: FolderBlobs; task: Task; path: string; notes: string[] };

type NodeAtWork = {
  retries?: number;
  pinned_policy?: SetSpec["pinned_policy"];
  demands?: Demands;
  slots?: Slots;
  backend?: SandboxBackend;
  reply?: (request: WireRequest) => ScriptedReply;
  disk?: DiskBudget;
  health?: HealthPlace;
  watcher?: Pick<Watcher, "attempt">;
  pause?: RunSetup["pause"];
  drain?: AbortSignal;
  guard?: RunSetup["guard"];
  /** Changes the ledger before the node has it. */
  opened?: (ledger: SqliteLedger) => void;
};

/** A node at work for one set until `does` is over. */
async function atWork(
  t: TestContext,
  { retries = 1, pinned_policy, demands, slots, backend, reply = solve, disk, health, watcher, pause, drain, guard, opened }: NodeAtWork,
  does: (at: AtWork) => Promise<void>,
): Promise<void> {
  const place = join(scratch, `${places++}`);
  const notes: string[] = [];
  await writeTask(place, "small");
  const run = await runner(t, place, {
    path: join(place, "run"),
    retries: 0,
    reply,
    onNote: (text) => void notes.push(text),
    does: async (setup, { tasks, harness, session }) => {
      const path = join(place, "ledger.sqlite");
      await using ledger = SqliteLedger.open(path);
      opened?.(ledger);
      const blobs = new FolderBlobs(join(place, "trajectories"));
      const { set_id: set } = await ledger.putSet("s", SetSpec.parse({ samples: 1, retries, pinned_policy, ...demands }));
      const stop = new AbortController();
      const node = runNode(
        {
          name: "n",
          ledger,
          blobs,
          setup: { ...setup, watcher, ...(disk && { disk }), ...(slots && { slots }), ...(pause && { pause }), ...(guard && { guard }) },
          harnessNamed: async () => harness,
          session,
          health,
          families: () => [gauge("of_the_process", "A figure of the test.", 7)],
        },
        stop.signal,
        drain,
      );
      try {
        await does({ ledger, set, blobs, task: tasks[0] as Task, path, notes });
      } finally {
        stop.abort();
        await node;
      }
      return [];
    },
  });
  await run(backend ?? (await pickBackend("process", t.signal)).backend);
}

async function rowsOf({ ledger, set }: AtWork, count: number): Promise<ResultRow[]> {
  // Each of five rollouts starts four processes, one after another, on a machine that has other things to do.
  await until(async () => (await ledger.results(set, null, 9)).length === count, { ms: 120_000 });
  return (await ledger.results(set, null, 9)).map(({ row }) => row);
}

const submit = ({ ledger, set, task }: AtWork, key: string) => ledger.submit(set, [GroupPart.parse({ group_key: key, task })]);

test("suspects of an earlier death run one at a time, and hold no slot while they wait", { timeout: 300_000 }, async (t) => {
  const known: string[] = [];
  const isSuspect = (id: string): boolean => {
    if (!known.includes(id)) known.push(id);
    return known.indexOf(id) < 2;
  };
  const others = Promise.withResolvers<void>();
  let [active, most] = [0, 0];
  const alone = new Limiter(1);
  const guard: RunSetup["guard"] = {
    aside: new Map(),
    takeTurn: (_attempt, signal) => alone.enter(signal),
    crashFile: "",
    blameless: [],
    claim: () => ({ [Symbol.dispose]: () => undefined }),
    step: () => ({ [Symbol.dispose]: () => undefined }),
    isSuspect,
    async run(attempt, _fail, body) {
      if (!isSuspect(attempt.slice(0, attempt.lastIndexOf("#")))) {
        others.resolve();
        return body();
      }
      most = Math.max(most, ++active);
      try {
        // One that is no suspect comes to its turn beside it.
        await others.promise;
        return await body();
      } finally {
        active -= 1;
      }
    },
  };
  const slots = makeSlots({ init: 1, run: 1, post: 1, rollouts: 2 });
  await atWork(t, { guard, slots }, async (at) => {
    for (const key of ["a", "b", "c"]) await submit(at, key);
    const rows = await rowsOf(at, 3);
    assert.deepEqual(
      rows.map(({ reward }) => reward),
      [1, 1, 1],
    );
  });
  assert.equal(most, 1);
});

test("a node keeps no timer of a rollout that is over", async (t) => {
  const timers: { _idleTimeout: number; _destroyed: boolean }[] = [];
  const init = (_id: number, type: string, _trigger: number, timer: object) => {
    if (type === "Timeout") timers.push(timer as (typeof timers)[number]);
  };
  const hook = createHook({ init }).enable();
  t.after(() => hook.disable());
  await atWork(t, {}, async (at) => {
    // Shorter ones are the lease's.
    const kept = () => timers.filter(({ _idleTimeout, _destroyed }) => _idleTimeout >= 60_000 && !_destroyed);
    await submit(at, "a");
    await rowsOf(at, 1);
    const ofFirst = kept().length;
    for (const key of ["b", "c"]) await submit(at, key);
    await rowsOf(at, 3);
    // A result is there a moment before its attempt's scopes end.
    await until(() => kept().length <= ofFirst, { said: async () => String(kept().map(({ _idleTimeout }) => _idleTimeout)) });
  });
});

test("a node that drains gives back what broke without the pause before the next attempt", async (t) => {
  const { backend } = await pickBackend("process", t.signal);
  const drain = new AbortController();
  const ended: boolean[] = [];
  const pause: RunSetup["pause"] = async (_milliseconds, waiting) => {
    drain.abort();
    ended.push(waiting.aborted);
  };
  await atWork(t, { backend: failingFirst(backend, 1), pause, drain: drain.signal }, async (at) => {
    await submit(at, "a");
    await until(() => ended.length > 0);
  });
  assert.deepEqual(ended, [true]);
});

test("a node that drains ends what runs, and gives back what it has claimed and has no sandbox yet", async (t) => {
  const [asked, hold] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const reply = (request: WireRequest): ScriptedReply => {
    if (request.tools) asked.resolve();
    return { ...solve(request), before: hold.promise };
  };
  const drain = new AbortController();
  await atWork(t, { reply, drain: drain.signal, slots: makeSlots({ init: 1, run: 1, post: 1, ahead: 0 }) }, async (at) => {
    for (const key of ["a", "b", "c"]) await submit(at, key);
    await asked.promise;
    await until(async () => (await at.ledger.set(at.set)).rollouts.running === 3);
    drain.abort(new Error("drained"));
    await until(async () => (await at.ledger.set(at.set)).rollouts.queued === 2);
    hold.resolve();
    assert.deepEqual(
      (await rowsOf(at, 1)).map(({ group_key, reward }) => [group_key, reward]),
      [["a", 1]],
    );
    assert.equal((await at.ledger.set(at.set)).rollouts.queued, 2, "they count as not begun");
  });
});

test("what the infrastructure broke is the ledger's next attempt, and its trajectory lies beside the ledger", async (t) => {
  const { backend } = await pickBackend("process", t.signal);
  const ended: EndedAttempt[] = [];
  await atWork(t, { backend: failingFirst(backend, 1), watcher: { attempt: (one) => void ended.push(one) } }, async (at) => {
    await submit(at, "g");
    const [row] = await rowsOf(at, 1);
    assert.deepEqual([row?.state, row?.reward, row?.attempt, row?.turns], ["completed", 1, 2, 2]);
    assert.ok(row?.payload);
    const trajectory = JSON.parse(await getPacked(at.blobs, row.payload));
    assert.deepEqual([trajectory.rollout_id, trajectory.attempt, trajectory.reward], [row.rollout_id, 2, 1]);
    assert.deepEqual(
      ended.map(({ set_id, record }) => [set_id, record.rollout_id, record.attempt]),
      [1, 2].map((attempt) => [at.set, row.rollout_id, attempt]),
      "those who watch get each attempt with its set",
    );
    assert.deepEqual(trajectory.group, { id: row.group_id, size: 1, sample_index: 0 });
  });
});

test("a rollout that is broken by its last attempt too ends as failed, with the cause", async (t) => {
  const { backend } = await pickBackend("process", t.signal);
  await atWork(t, { retries: 0, backend: failingFirst(backend, 9) }, async (at) => {
    await submit(at, "g");
    const [row] = await rowsOf(at, 1);
    assert.deepEqual([row?.state, row?.reward, row?.error?.code, row?.payload], ["failed", null, "sandbox_unavailable", null]);
  });
});

test("a machine that breaks all that it claims tries one attempt at a time, and says so", async (t) => {
  const { backend } = await pickBackend("process", t.signal);
  await atWork(t, { retries: 0, backend: failingFirst(backend, 99), slots: makeSlots({ init: 1, run: 1, post: 1 }) }, async (at) => {
    for (const task_id of ["a", "b", "c", "d", "e", "f", "g", "h"]) await submit({ ...at, task: { ...at.task, task_id } }, task_id);
    await until(() => at.notes.some((text) => /^ALARM: attempts at 3 tasks in a row were broken here \(sandbox_unavailable\)/.test(text)));
    const { rollouts } = await at.ledger.set(at.set);
    assert.ok(rollouts.queued > 0, "the others are left to other machines");
  });
});

test("a node that grades below what the set demands gives its rollouts back before a sandbox is made, and none gets a reward", async (t) => {
  const { backend } = await pickBackend("process", t.signal);
  const cases: [Demands, RegExp][] = [
    [{ min_tier: "T1" }, /the set demands min_tier T1, and task small is graded as T0 by this node \(sandbox process\)/],
    [
      { admitted_only: true },
      /the set demands admitted_only, and tasks are admitted for isolated sandboxes only: this node's sandbox is process/,
    ],
  ];
  for (const [demands, message] of cases) {
    const pauses: number[] = [];
    const pause: RunSetup["pause"] = async (milliseconds) => void pauses.push(milliseconds);
    await atWork(t, { demands, pause, backend: failingFirst(backend, 9) }, async (at) => {
      await submit(at, "g");
      const [row] = await rowsOf(at, 1);
      assert.deepEqual([row?.state, row?.reward, row?.error?.code, row?.attempt], ["failed", null, "node_unfit", 2]);
      assert.match(row?.error?.message ?? "", message);
      assert.equal(pauses.length, 1, "another node may take it");
    });
  }
});

test("a node makes what it grades as well as the set demands", async (t) => {
  await atWork(t, { demands: { min_tier: "T0" } }, async (at) => {
    await submit(at, "g");
    assert.equal((await rowsOf(at, 1))[0]?.reward, 1);
  });
});

test("a rollout of a set that is pinned to weights which are gone ends as policy_gone before a sandbox is made", async (t) => {
  const { backend } = await pickBackend("process", t.signal);
  await atWork(t, { retries: 0, pinned_policy: { version: "v1", step: 1 }, backend: failingFirst(backend, 9) }, async (at) => {
    await submit(at, "g");
    const [row] = await rowsOf(at, 1);
    assert.deepEqual([row?.state, row?.reward, row?.error?.code, row?.policies], ["failed", null, "policy_gone", []]);
    assert.match(row?.error?.message ?? "", /pinned to policy "v1" \(step 1\), which no engine serves/);
  });
});

test("a rollout of a pinned set whose weights change under it ends as policy_gone, and none of it is of other weights", async (t) => {
  const hold = Promise.withResolvers<void>();
  const asked = Promise.withResolvers<void>();
  const reply = (): ScriptedReply => {
    asked.resolve();
    return { text: "too late", beforeEnd: hold.promise };
  };
  const v1 = { version: "v1", step: 1 };
  await atWork(t, { retries: 0, pinned_policy: v1, reply }, async (at) => {
    const { order } = await nameWeights(at.ledger, 1);
    await until(async () => (await at.ledger.reports()).some(({ report }) => report?.answers[order] !== undefined));
    await submit(at, "g");
    await asked.promise;
    await nameWeights(at.ledger, 2);
    const [row] = await rowsOf(at, 1);
    hold.resolve();
    assert.deepEqual([row?.state, row?.reward, row?.error?.code, row?.sampled_tokens], ["failed", null, "policy_gone", 0]);
    assert.ok(row?.policies.every(({ version }) => version === "v1"));
  });
});

test("slots that are kept for evaluations are free while training has all the others", async (t) => {
  const hold = Promise.withResolvers<void>();
  const asked = Promise.withResolvers<void>();
  let held = false;
  const reply = (request: WireRequest): ScriptedReply => {
    if (!request.tools || held) return solve(request);
    held = true;
    asked.resolve();
    return { ...solve(request), beforeEnd: hold.promise };
  };
  await atWork(t, { reply, slots: makeSlots({ init: 1, run: 2, post: 1 }, 1) }, async (at) => {
    for (const key of ["1", "2", "3", "4", "5"]) await submit(at, key);
    await asked.promise;
    const { set_id } = await at.ledger.putSet("eval", SetSpec.parse({ samples: 1, purpose: "eval" }));
    await submit({ ...at, set: set_id }, "measured");
    const [row] = await rowsOf({ ...at, set: set_id }, 1);
    assert.deepEqual([row?.state, row?.reward], ["completed", 1]);
    assert.deepEqual(await at.ledger.results(at.set, null, 9), [], "what trains is still held");
    hold.resolve();
    assert.equal((await rowsOf(at, 5)).length, 5, "and goes on");
  });
});

test("a task that cannot be graded is set aside: its other rollouts end at once, and no engine is asked for them", async (t) => {
  let asked = 0;
  const reply = (request: WireRequest): ScriptedReply => {
    asked += request.tools ? 1 : 0;
    return solve(request);
  };
  await atWork(t, { retries: 0, reply }, async (at) => {
    const broken = { ...at.task, grader: { kind: "script", command: ["true"] } };
    for (const key of ["1", "2", "3"]) await submit({ ...at, task: broken }, key);
    await rowsOf(at, 3);
    const before = asked;
    await submit({ ...at, task: broken }, "4");
    const [row] = (await rowsOf(at, 4)).filter(({ group_key }) => group_key === "4");
    assert.deepEqual([row?.state, row?.reward, row?.error?.code, asked], ["failed", null, "task_set_aside", before]);
    await submit(at, "5");
    assert.deepEqual((await rowsOf(at, 5)).at(-1)?.reward, 1, "another task goes on");
  });
});

test("a node's health names a disk below its reserve, a drain, and a ledger that does not answer", async (t) => {
  let free: number | null = 100;
  const disk = new DiskBudget(
    { title: "a disk of the test", room: async () => ({ memory_mb: null, disk_mb: free }) },
    { images_gb: null, keep_free_gb: 1 },
  );
  await atWork(t, { disk, health: { port: 0 } }, async ({ ledger, path, notes }) => {
    await until(() => notes.length > 0);
    const url = notes[0]?.replace("health on ", "") ?? "";
    const health = async () => {
      const response = await fetch(url);
      return { code: response.status, ...((await response.json()) as { status: string; reason: string | null }) };
    };
    const low = await health();
    assert.deepEqual([low.code, low.status], [503, "down"]);
    assert.match(low.reason ?? "", /^0\.1 GB are free where a disk of the test keeps sandboxes, less than disk\.keep_free_gb \(1\)/);
    free = null;
    assert.deepEqual(await health(), { code: 200, status: "ok", reason: null });
    assert.equal((await fetch(url.replace("health", "else"))).status, 404);
    const metrics = await (await fetch(url.replace("health", "metrics"))).text();
    for (const line of [
      'alidade_node_info{node="n"} 1',
      'alidade_engine_healthy{engine="vllm"} 1',
      "alidade_node_running 0",
      "of_the_process 7",
    ])
      assert.ok(metrics.split("\n").includes(line), metrics);

    await until(async () => (await ledger.nodes()).length === 1);
    await ledger.drainNode("n");
    await until(async () => (await health()).status === "draining");
    assert.equal((await health()).code, 503);

    breakLedger(path);
    await until(async () => (await health()).status === "down");
    assert.match((await health()).reason ?? "", /^the ledger does not answer since \d{4}-.*; the node is draining/);
  });
});

test("a cancelled rollout is stopped, and its place goes to the next one", async (t) => {
  let isAsked = false;
  let isCancelled = false;
  const forever = new Promise<never>(() => undefined);
  const reply = (request: WireRequest): ScriptedReply => {
    isAsked ||= request.tools !== undefined;
    return { ...solve(request), ...(!isCancelled && request.tools && { before: forever }) };
  };
  await atWork(t, { reply }, async (at) => {
    await submit(at, "stuck");
    await until(() => isAsked);
    await at.ledger.cancel({ set: at.set }, "stale");
    isCancelled = true;
    await submit(at, "next");
    const rows = await rowsOf(at, 2);
    assert.deepEqual(
      rows.map(({ group_key, state }) => [group_key, state]),
      [
        ["stuck", "cancelled"],
        ["next", "completed"],
      ],
    );
  });
});

test("a node that was taken for dead cancels its calls, joins again behind the gates of its ledger, and goes on when they open", async (t) => {
  let asked = 0;
  const reply = (request: WireRequest): ScriptedReply => {
    asked += request.tools ? 1 : 0;
    return { ...solve(request), ...(asked === 1 && { before: new Promise<never>(() => undefined) }) };
  };
  await atWork(t, { reply }, async (at) => {
    await submit(at, "g");
    await until(() => asked === 1);
    await at.ledger.order((state, order) => ({
      ...state,
      fences: [{ fence: "f", order, mode: "drain", engines: null, since: 1, acknowledged: false }],
    }));
    // Another one under its name: the node's next beat finds its lease over.
    await at.ledger.join({ name: "n", slots: 1 });
    await until(async () => (await at.ledger.reports())[0]?.report?.answers[1] !== undefined);
    const again = async () => (await at.ledger.set(at.set)).rollouts.running === 1;
    await until(again);
    assert.equal(asked, 1, "nothing is sampled behind the fence");
    await at.ledger.order((state) => ({ ...state, fences: [] }));
    const [row] = await rowsOf(at, 1);
    assert.deepEqual([row?.state, row?.attempt], ["completed", 2]);
  });
});

test("a node that lost its lease and lives says so: what it ran, or ended meanwhile, did not end it", async (t) => {
  const first = Promise.withResolvers<void>();
  let asked = 0;
  const reply = (request: WireRequest): ScriptedReply => {
    if (request.tools === undefined) return solve(request);
    asked++;
    // The first one ends when its lease is over, and the second one hangs in its first attempt.
    return {
      ...solve(request),
      ...(asked === 1 && { before: first.promise }),
      ...(asked === 2 && { before: new Promise<never>(() => {}) }),
    };
  };
  await atWork(t, { reply, slots: makeSlots({ run: 2, post: 2, init: 2 }) }, async (at) => {
    await submit(at, "ends");
    await until(() => asked === 1);
    await submit(at, "hangs");
    await until(() => asked === 2);
    {
      using file = new DatabaseSync(at.path);
      file.exec("UPDATE nodes SET until = 0");
    }
    assert.deepEqual(await at.ledger.expire(), ["n"]);
    first.resolve();
    const rows = await rowsOf(at, 2);
    for (const { state, attempt, earlier } of rows)
      assert.deepEqual([state, attempt, earlier], ["completed", 2, [{ attempt: 1, node: "n", code: "node_lost", blameless: true }]]);
  });
});

test("a node whose lease no other process can take goes on sampling where it is not renewed in time, and another node does not", async (t) => {
  for (const isShared of [false, true]) {
    const opened = (ledger: SqliteLedger): void => {
      const join = ledger.join.bind(ledger);
      // It is over before the first beat, as where a process stands still.
      ledger.join = async (node) => ({ ...(await join(node)), seconds: 0.1 });
      Object.defineProperty(ledger, "isShared", { value: isShared });
    };
    await atWork(t, { opened }, async (at) => {
      await submit(at, "g");
      if (isShared) await until(() => at.notes.some((text) => text.startsWith("no sign of life reached the ledger")));
      else assert.deepEqual((await rowsOf(at, 1))[0]?.reward, 1);
      assert.equal(
        at.notes.some((text) => text.includes("nothing is sampled")),
        isShared,
      );
    });
  }
});

test("a set's own options hold, and of those that it leaves out the service's", () => {
  const claim = {
    rollout_id: "r",
    attempt: 3,
    set_id: "s",
    spec: SetSpec.parse({ budgets: { max_turns: 2 }, purpose: "eval" }),
    group_key: "g",
    group_id: "s-0",
    group_size: 4,
    index: 1,
    task: { task_id: "t" } as Task,
    task_hash: "h",
    failures: 0,
    parked: null,
  };
  const session = { sampling: { temperature: 0.5 }, budgets: { max_turns: 9 }, purpose: "train", restore: "full" } as const;
  const plan = attemptPlan(claim, commandHarness({ argv: ["true"], env: {}, makes: [] }), session);
  assert.deepEqual(plan.session, { sampling: { temperature: 0.5 }, budgets: { max_turns: 2 }, purpose: "eval", restore: "full" });
  assert.deepEqual([plan.attempt, plan.retries, plan.sample_index, plan.group_size], [3, 0, 1, 4]);
  const seedOf = (seed: number, group_key: string) =>
    attemptPlan({ ...claim, group_key, spec: { ...claim.spec, seed } }, plan.harness, { seed: 1 }).session.seed;
  assert.equal(seedOf(7, "g"), seedOf(7, "g"), "another set asks with the same seeds");
  assert.equal(new Set([seedOf(7, "g"), seedOf(7, "h"), seedOf(8, "g"), 1, 7]).size, 5);
});

/** The process sandbox, which cannot make its first ones. */
function failingFirst(backend: SandboxBackend, count: number): SandboxBackend {
  let made = 0;
  return {
    ...backend,
    create(spec, signal) {
      if (++made > count) return backend.create(spec, signal);
      throw new AlidadeError("sandbox_unavailable", "the daemon was restarted");
    },
  };
}
