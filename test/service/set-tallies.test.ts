/** What results add up to, read once and kept in the ledger. */
import assert from "node:assert/strict";
import { test as nodeTest, type TestContext } from "node:test";
import { GroupPart, type Ledger, SetSpec } from "../../service/ledger/index.ts";
import { SetTallies } from "../../service/set-tallies.ts";
import { ledgerDrivers } from "../contracts/ledger-drivers.ts";
import { serviceAt, serviceTask } from "../fakes/proxies/service-at.ts";
import { attemptResult } from "../fakes/records/attempt-result.ts";
import { need } from "../needs.ts";

const forever = new AbortController().signal;

/** How many results are read of it. */
function counting(ledger: Ledger): { read: number } {
  const counts = { read: 0 };
  const { results, wholeGroups } = ledger;
  ledger.results = async (...asked) => {
    const page = await results.apply(ledger, asked);
    counts.read += page.length;
    return page;
  };
  ledger.wholeGroups = async (...asked) => {
    const page = await wholeGroups.apply(ledger, asked);
    counts.read += page.reduce((sum, { rows }) => sum + rows.length, 0);
    return page;
  };
  return counts;
}

/** A set with some results and so many that were cancelled. */
async function filled(ledger: Ledger, cancelled: number, purpose: "train" | "eval"): Promise<string> {
  const { set_id: set } = await ledger.putSet(purpose, SetSpec.parse({ samples: 4, purpose }));
  const parts = Array.from({ length: cancelled / 4 + 5 }, (_, at) => GroupPart.parse({ group_key: `g${at}`, task: serviceTask }));
  for (let at = 0; at < parts.length; at += 500) await ledger.submit(set, parts.slice(at, at + 500));
  const lease = await ledger.join({ name: "n", slots: 99 });
  const policies = [{ version: "v", step: 3 }];
  const engine_spans = [{ engine: "e", step: 3, times: [1_000, 50] }];
  const counts = { edges: { exact: 2 }, row_tokens: 9, tree_tokens: 7, prompt_tokens: 5, cached_tokens: 1 };
  for (const [at, claim] of (await ledger.claim(lease, 20)).entries()) {
    const figures = { data_source: `s${at % 2}`, is_cut: false, ...counts, excluded: {}, causes: {}, engine_spans };
    await ledger.finish(claim, attemptResult({ reward: at % 3 === 0 ? null : at % 2, newest_step: 3, policies, figures }));
  }
  await ledger.cancel({ set }, "enough");
  while ((await ledger.endMore()) > 0);
  return set;
}

for (const { name, needs, place } of ledgerDrivers()) {
  const test = (title: string, work: (t: TestContext) => Promise<void>) =>
    nodeTest(`${name}: ${title}`, async (t) => {
      if (needs === undefined || (await need(t, needs))) await work(t);
    });

  for (const purpose of ["train", "eval"] as const)
    test(`a service that is started again reads nothing again of what is kept of a set to ${purpose}, and says the same of it`, async (t) => {
      const at = place();
      const first = await at.open();
      t.after(() => first[Symbol.asyncDispose]());
      const set = await filled(first, 5_000, purpose);
      const before = await new SetTallies(first).of(set, forever);
      assert.equal(before.counted, 5_020);
      const kept = await first.tallyOf(set);
      const second = await at.open();
      t.after(() => second[Symbol.asyncDispose]());
      const counts = counting(second);
      const after = await new SetTallies(second).of(set, forever);
      assert.ok(counts.read <= 40, `${counts.read} were read: those alone that were read after it was kept, in both orders`);
      assert.deepEqual([after.counted, after.steps.latest(9)], [before.counted, before.steps.latest(9)]);
      assert.deepEqual([after.steps.total, after.evaluation?.figures(1)], [before.steps.total, before.evaluation?.figures(1)]);

      await second.keepTally(set, (kept ?? "").replace('"version":1', '"version":0'));
      const anew = await new SetTallies(second).of(set, forever);
      assert.ok(counts.read > 10_000, "what another version kept is read again");
      assert.deepEqual(anew.steps.total, before.steps.total);
    });
}

nodeTest("a first scrape of many results reads some of them and says how many, and the next ones go on", async (t) => {
  const { ledger, call, url } = await serviceAt(t);
  const set = await filled(ledger, 14_000, "train");
  const counts = counting(ledger);
  const scraped = async () => {
    const before = counts.read;
    const text = await (await fetch(`${url}/metrics`, { headers: { authorization: "Bearer read" } })).text();
    const counted = Number(/^alidade_results_counted\{[^}]*\} (\d+)$/m.exec(text)?.[1]);
    const ended = Number(/^alidade_rollouts\{[^}]*state="cancelled"\} (\d+)$/m.exec(text)?.[1]);
    return { counted, ended, read: counts.read - before };
  };
  const first = await scraped();
  assert.deepEqual([first.counted, first.ended], [10_000, 14_000], "what the ledger counts is whole at once");
  assert.ok(first.read <= 21_000, `${first.read} were read, each in both of its orders`);
  await scraped();
  const last = await scraped();
  assert.deepEqual([last.counted, last.read], [14_020, 0]);
  assert.equal((await call("GET", `/sets/${set}/figures`)).body.counted, 14_020);
});
