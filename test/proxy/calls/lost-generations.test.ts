/**
 * The engine counts its own generations, and its connections are dropped at random moments. The record must hold each
 * generation, as a sample or as a mark. It must hold no mark for a request that no engine can have sampled.
 *
 *     ALIDADE_TEST_FUZZ_SESSIONS=100 ALIDADE_TEST_FUZZ_SEED=2 npm test -- lost-generations
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import type { CallRecord, Trajectory } from "../../../base/schema/trajectory.ts";
import { engineNamed } from "../../../engines/registry.ts";
import { HarnessProxy } from "../../../proxy/index.ts";
import { MemoryStore } from "../../../proxy/store/index.ts";
import { cases } from "../../contracts/engine-cases.ts";
import { Draw } from "../../contracts/hostile-requests/draw.ts";
import type { ScriptedReply } from "../../fakes/engines/scripted-engine.ts";
import { type Drop, startDroppingRelay } from "../../fakes/proxies/dropping-relay.ts";
import { Client } from "../../fakes/proxies/proxy-at.ts";

/** For each engine and setting; eight of them at once, twelve calls each. */
const sessions = Number(process.env.ALIDADE_TEST_FUZZ_SESSIONS ?? 4);
const seed = Number(process.env.ALIDADE_TEST_FUZZ_SEED ?? 1);
const callsEach = 12;

for (const [index, kind] of ["vllm", "sglang", "llama-cpp"].entries())
  for (const resampleLost of [false, true])
    test(`${kind}, ${resampleLost ? "asked again for what is lost" : "by default"}: each generation of the engine is on the record, sampled or marked`, async (t) => {
      const draw = new Draw(seed, index, Number(resampleLost));
      const generations = new Map<string, number>();
      let isDropping = false;
      await using server = await cases[kind]!.start((request) => (request.probe ? { text: "x" } : answer(request, draw, generations)));
      await using relay = await startDroppingRelay(server.url, (side) => (isDropping ? dropOf(side, draw) : null));
      const engine = engineNamed(kind).create({ baseUrl: relay.url, apiKey: null });
      await using scope = new AsyncDisposableStack();
      scope.defer(() => engine.close());
      const unseen: string[] = [];
      const proxy = scope.use(
        await HarnessProxy.start({
          engines: [{ name: kind, engine, resampleLost }],
          store: new MemoryStore(),
          version: "test",
          onError: (error, what) => void unseen.push(`${what}: ${error}`),
        }),
      );
      const clients: Client[] = [];
      for (let number = 0; number < sessions; number++) {
        const { session, key } = await proxy.openSession({ any_model: true, purpose: "live" });
        clients.push(new Client(proxy, session.id, key));
      }
      isDropping = true;
      for (let first = 0; first < clients.length; first += 8)
        await Promise.all(clients.slice(first, first + 8).map((client, at) => play(client, new Draw(seed, index, 7, first + at))));
      isDropping = false;
      const totals = { generations: 0, sampled: 0, marked: 0, resampled: 0 };
      for (const client of clients) {
        const trajectory = await client.trajectory();
        account(trajectory, generations, totals);
        totals.resampled += trajectory.fidelity.resampled;
      }
      t.diagnostic(`${kind}: ${JSON.stringify({ dropped: relay.dropped, ...totals })}`);
      assert.ok(totals.marked > 0 && totals.sampled > totals.marked, "some answers were lost, and most were not");
      assert.equal(totals.resampled > 0, resampleLost);
      // The breaker says what it does with an engine whose canary is dropped, too.
      assert.deepEqual(
        unseen.filter((what) => !what.startsWith("engine ")),
        [],
      );
    });

/** The engine has the whole request and samples, whatever becomes of the answer; or it refuses before that. */
function answer(request: Record<string, unknown>, draw: Draw, generations: Map<string, number>): ScriptedReply {
  if (draw.chance(0.05)) return { refuse: { status: draw.of([429, 503]), message: "The request queue is full.", retryAfter: "0.01" } };
  const key = questionOf(request.messages);
  generations.set(key, (generations.get(key) ?? 0) + 1);
  const lateMs = draw.of([0, 0, 2, 10]);
  return { text: "said ".repeat(1 + draw.below(8)), before: sleep(lateMs), beforeEnd: sleep(lateMs) };
}

function dropOf(side: "client" | "server", draw: Draw): Drop | null {
  if (!draw.chance(side === "client" ? 0.25 : 0.12)) return null;
  return { when: draw.of(["before", "halfway", "behind"] as const), afterMs: draw.of([0, 0, 1, 5, 20]), reset: draw.chance(0.5) };
}

/** A harness that asks a failed question once more. */
async function play(client: Client, draw: Draw): Promise<void> {
  for (let number = 0; number < callsEach; number++) {
    const messages = [{ role: "user", content: `question ${number} of ${client.sessionId}` }];
    const asked = await client.chat({ messages, stream: draw.chance(0.5) });
    await asked.text();
    if (asked.status !== 200) await (await client.chat({ messages })).text();
  }
}

const questionOf = (messages: unknown): string => /question \d+ of \w+/.exec(JSON.stringify(messages))?.[0] ?? "";

/** All calls of one question against the generations that the engine made for it. */
function account(
  { calls, messages, fidelity }: Trajectory,
  generations: Map<string, number>,
  totals: Record<"generations" | "sampled" | "marked", number>,
): void {
  const questions = new Map<string, CallRecord[]>();
  for (const call of calls) {
    const key = questionOf(call.input.map((id) => messages[id]));
    questions.set(key, [...(questions.get(key) ?? []), call]);
  }
  for (const [key, asked] of questions) {
    const made = generations.get(key) ?? 0;
    const tries = asked.flatMap((call) => call.tries);
    const sampled = tries.filter(({ error }) => error === null).length;
    const marked = tries.filter(({ may_have_sampled }) => may_have_sampled === true).length;
    const what = `${key}: ${JSON.stringify(asked.map(({ outcome, uncounted, tries: own }) => ({ outcome, uncounted, own })))}`;
    assert.ok(made >= sampled && made <= sampled + marked, `${made} generations, ${sampled} samples, ${marked} marked\n${what}`);
    for (const call of asked) {
      const mayMiss = call.tries.some(({ may_have_sampled }) => may_have_sampled === true);
      // The ids that came of a broken answer are known, and its mark says that there may be more.
      assert.equal(call.uncounted !== null, mayMiss, what);
    }
    totals.generations += made;
    totals.sampled += sampled;
    totals.marked += marked;
  }
  const said = calls.filter(({ uncounted }) => uncounted !== null).length;
  assert.equal(
    Object.values(fidelity.uncounted).reduce((sum, count) => sum + count, 0),
    said,
  );
}
