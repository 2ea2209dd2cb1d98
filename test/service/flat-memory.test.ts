/** A service that runs for days keeps nothing in memory of a rollout that is over. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { type TestContext, test } from "node:test";
import { getHeapSnapshot } from "node:v8";
import { makeSlots } from "../../rollouts/slots.ts";
import { FolderBlobs } from "../../service/blobs/index.ts";
import { ServiceListener } from "../../service/index.ts";
import { GroupPart, type Ledger, PostgresLedger, SetSpec, SqliteLedger, type WholeGroup } from "../../service/ledger/index.ts";
import { runNode } from "../../service/nodes/index.ts";
import { inlineTask } from "../../tasks/inline-task.ts";
import { Postgres } from "../fakes/machine/postgres.ts";
import { scratchFolder } from "../fakes/machine/scratch-folder.ts";
import instant from "../fakes/rollouts/instant-sandbox.ts";
import { runner } from "../fakes/rollouts/small-run.ts";
import { writeTask } from "../fakes/rollouts/small-task.ts";
import { type Need, need } from "../needs.ts";

const scratch = scratchFolder("flat-memory");
/** Groups of two. What was last looked at may stay: a session at its end, a page of results. */
const [groups, last] = [40, 10];

type OpenLedger = (t: TestContext, place: string) => Promise<Ledger>;

const drivers: { name: string; open: OpenLedger; needs?: Need }[] = [
  { name: "sqlite", open: async (_t, place) => SqliteLedger.open(join(place, "ledger.sqlite")) },
  {
    name: "postgres",
    open: async (t) => {
      const server = await Postgres.start();
      t.after(() => server[Symbol.asyncDispose]());
      return PostgresLedger.open(server.url("flat"));
    },
    needs: "postgres",
  },
];

for (const { name, open, needs } of drivers)
  test(`a service with its node keeps nothing of rollouts that are over, on ${name}`, async (t) => {
    if (needs !== undefined && !(await need(t, needs))) return;
    const place = join(scratch, name);
    await writeTask(place, "small");
    const run = await runner(t, place, {
      path: join(place, "run"),
      retries: 0,
      does: async (setup, { tasks: [task], harness, session }) => {
        await using ledger = await open(t, place);
        const blobs = new FolderBlobs(join(place, "trajectories"));
        const over = new AbortController();
        const slots = makeSlots({ init: 4, run: 4, post: 4 });
        const node = runNode(
          { name: "n", ledger, blobs, setup: { ...setup, slots }, harnessNamed: async () => harness, session },
          over.signal,
        );
        const trainer = await trainerOf(t, ledger, blobs);
        const { set_id } = await ledger.putSet("s", SetSpec.parse({ samples: 2 }));
        const seen = [];
        for (let at = 0; at < groups; at += last) {
          const parts = Array.from({ length: last }, (_, more) => GroupPart.parse({ group_key: `g${at + more}`, task }));
          await ledger.submit(set_id, parts);
          seen.push((await trainer(set_id, at + last)).length);
        }
        assert.equal(
          seen.reduce((sum, more) => sum + more, 0),
          groups * 2,
        );
        over.abort();
        await node;
        const named = await namedOnHeap(set_id);
        assert.deepEqual(
          named.filter((group) => group < groups - last),
          [],
          "groups whose rollouts some text of the heap still names",
        );
        return [];
      },
    });
    await run(instant);
  });

/** Reads on behind its cursor until so many groups were whole, as a trainer does; and looks at the figures, as a monitor does. */
async function trainerOf(t: TestContext, ledger: Ledger, blobs: FolderBlobs) {
  const parts = {
    ledger,
    blobs,
    engines: null,
    nodeFaults: null,
    taskOf: (given: unknown) => inlineTask(given),
    namedTasks: async () => [],
    harnessNamed: async () => null,
    polar: null,
    pages: null,
    setWebhooks: null,
  };
  const listener = new ServiceListener(parts, [{ token: "t", roles: ["read"], namespace: null }], "test");
  t.after(() => listener[Symbol.asyncDispose]());
  const url = await listener.listen("127.0.0.1", 0);
  const ask = async (path: string) => {
    const answer = await fetch(url + path, { headers: { authorization: "Bearer t" } });
    assert.equal(answer.status, 200);
    return answer.text();
  };
  let [after, whole] = ["", 0];
  return async (set: string, until: number) => {
    const rewards: (number | null)[] = [];
    while (whole < until) {
      const lines = await ask(`/sets/${set}/results?whole_groups=true&payload=rows&wait=30${after}`);
      for (const line of lines.split("\n").filter(Boolean)) {
        const { cursor, results } = JSON.parse(line) as { cursor: string; results: WholeGroup["rows"] };
        rewards.push(...results.map(({ reward }) => reward));
        after = `&after=${cursor}`;
        whole += 1;
      }
    }
    await ask("/metrics");
    return rewards;
  };
}

/** Numbers of the groups whose rollouts are named by texts of this process's heap, after a collection. */
async function namedOnHeap(set: string): Promise<number[]> {
  const { strings } = JSON.parse(await text(getHeapSnapshot())) as { strings: string[] };
  const numbers = strings.flatMap((one) => [...one.matchAll(new RegExp(`${set}-(\\d+)-\\d`, "g"))].map(([, number]) => Number(number)));
  return [...new Set(numbers)].toSorted((one, other) => one - other);
}
