/** What a node ends while it has not heard yet that its group was cut, and that the rollout is parked. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import { AlidadeError } from "../../../base/errors.ts";
import type { Task } from "../../../base/schema/task.ts";
import type { RunSetup } from "../../../rollouts/run-setup.ts";
import { pickBackend } from "../../../sandboxes/registry.ts";
import type { SandboxBackend } from "../../../sandboxes/sandbox.ts";
import { FolderBlobs } from "../../../service/blobs/index.ts";
import { GroupPart, type ResultRow, SetSpec, SqliteLedger } from "../../../service/ledger/index.ts";
import { runNode } from "../../../service/nodes/index.ts";
import type { ScriptedReply, WireRequest } from "../../fakes/engines/scripted-engine.ts";
import { scratchFolder } from "../../fakes/machine/scratch-folder.ts";
import { until } from "../../fakes/machine/until.ts";
import { runner } from "../../fakes/rollouts/small-run.ts";
import { solve, writeTask } from "../../fakes/rollouts/small-task.ts";

const scratch = scratchFolder("parked-meanwhile");
const timeout = 300_000;
let places = 0;

type Node = {
  retries?: number;
  backend?: SandboxBackend;
  reply?: (request: WireRequest) => ScriptedReply;
  pause?: RunSetup["pause"];
  /** The ledger's orders at a beat reach the node. */
  isTold: boolean;
  does: (at: Parked) => Promise<void>;
};

type Parked = {
  submit: (key: string) => Promise<unknown>;
  /** The clock of all groups is over. */
  cut: () => Promise<void>;
  rows: (count: number) => Promise<ResultRow[]>;
  parked: () => Promise<Awaited<ReturnType<SqliteLedger["set"]>>["parked"]>;
};

async function nodeAtWork(t: TestContext, { retries = 0, backend, reply = solve, pause, isTold, does }: Node): Promise<void> {
  const place = join(scratch, `${places++}`);
  await writeTask(place, "small");
  const run = await runner(t, place, {
    path: join(place, "run"),
    retries: 0,
    reply,
    does: async (setup, { tasks, harness, session }) => {
      const path = join(place, "ledger.sqlite");
      await using ledger = SqliteLedger.open(path);
      if (!isTold) untold(ledger);
      const straggler_cut = { share: 0, seconds: 604_800, rest: "park" };
      const { set_id: set } = await ledger.putSet("s", SetSpec.parse({ samples: 1, retries, straggler_cut }));
      const stop = new AbortController();
      const blobs = new FolderBlobs(join(place, "trajectories"));
      const node = { name: "n", ledger, blobs, setup: { ...setup, ...(pause && { pause }) }, harnessNamed: async () => harness, session };
      const running = runNode({ ...node, health: undefined, families: () => [] }, stop.signal);
      const [task] = tasks as [Task];
      try {
        await does({
          submit: (key) => ledger.submit(set, [GroupPart.parse({ group_key: key, task })]),
          cut: async () => {
            using file = new DatabaseSync(path);
            file.exec("UPDATE groups SET cut_at = 0 WHERE whole IS NULL");
            assert.equal(await ledger.cutStragglers(), 1);
          },
          rows: async (count) => {
            await until(async () => (await ledger.results(set, null, 9)).length === count, { ms: 120_000 });
            return (await ledger.results(set, null, 9)).map(({ row }) => row);
          },
          parked: async () => (await ledger.set(set)).parked,
        });
      } finally {
        stop.abort();
        await running;
      }
      return [];
    },
  });
  await run(backend ?? (await pickBackend("process", t.signal)).backend);
}

function untold(ledger: SqliteLedger): void {
  const beat = ledger.beat.bind(ledger);
  ledger.beat = async (lease, running) => ({ ...(await beat(lease, running)), stop: [] });
}

test("a rollout that ended by itself behind its cut waits, and a later group is given all its answers and grades it", {
  timeout,
}, async (t) => {
  const [asked, hold] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let sampled = 0;
  const reply = (request: WireRequest): ScriptedReply => {
    if (!request.tools?.length) return solve(request);
    sampled += 1;
    asked.resolve();
    return { ...solve(request), before: hold.promise };
  };
  await nodeAtWork(t, {
    reply,
    isTold: false,
    does: async ({ submit, cut, rows, parked }) => {
      await submit("one");
      await asked.promise;
      await cut();
      assert.deepEqual(await parked(), { leaving: 1, waiting: 0, taken_up: 0, ended: {} });
      hold.resolve();
      await until(async () => (await parked())?.waiting === 1, { ms: 120_000 });
      const all = sampled;
      await submit("two");
      const [one, two] = await rows(2);
      assert.deepEqual([one?.state, one?.mask_reason, one?.payload], ["cancelled", "parked", null]);
      assert.deepEqual([two?.state, two?.reward, two?.turns], ["completed", 1, all]);
      assert.equal(sampled, all, "nothing is sampled again");
      const { how, again_tokens, parked_from } = two?.resume ?? assert.fail();
      assert.deepEqual([how, again_tokens, parked_from?.rollout_id], ["replay", 0, one?.rollout_id]);
      assert.equal(two?.trainable_tokens, two?.sampled_tokens);
      assert.deepEqual(await parked(), { leaving: 0, waiting: 0, taken_up: 1, ended: {} });
    },
  });
});

for (const isTold of [true, false])
  test(`a rollout that broke behind its cut is dropped by that name, ${isTold ? "also if its node hears of the cut" : "if its node has not heard of the cut"} before the next attempt`, {
    timeout,
  }, async (t) => {
    const { backend } = await pickBackend("process", t.signal);
    const [paused, goOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const pause: RunSetup["pause"] = async (_milliseconds, signal) => {
      paused.resolve();
      await new Promise<void>((resolve) => {
        signal.addEventListener("abort", () => resolve(), { once: true });
        void goOn.promise.then(resolve);
      });
    };
    let made = 0;
    const fails: SandboxBackend["create"] = (spec, signal) => {
      if (++made > 1) return backend.create(spec, signal);
      throw new AlidadeError("sandbox_unavailable", "the daemon was restarted");
    };
    await nodeAtWork(t, {
      retries: 1,
      backend: { ...backend, create: fails },
      pause,
      isTold,
      does: async ({ submit, cut, rows, parked }) => {
        await submit("one");
        await paused.promise;
        await cut();
        if (!isTold) goOn.resolve();
        await until(async () => (await parked())?.leaving === 0, { ms: 60_000 });
        assert.deepEqual(await parked(), { leaving: 0, waiting: 0, taken_up: 0, ended: { broken: 1 } });
        await submit("two");
        const [, two] = await rows(2);
        assert.deepEqual([two?.state, two?.reward, two?.resume], ["completed", 1, null]);
      },
    });
  });
