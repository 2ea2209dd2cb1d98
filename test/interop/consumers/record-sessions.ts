/**
 * What the trainers are given, sampled by a real vLLM with nothing forced on its model, which plays by itself: a group of
 * two rollouts of a real harness, and one of two short talks that begin anew, so that each of them has several rows.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { TestContext } from "node:test";
import type { SessionSpec } from "../../../base/schema/session-spec.ts";
import type { Trajectory } from "../../../base/schema/trajectory.ts";
import { engineNamed } from "../../../engines/registry.ts";
import { HarnessProxy } from "../../../proxy/index.ts";
import { MemoryStore } from "../../../proxy/store/index.ts";
import { playByItself } from "../../e2e/play-by-itself.ts";
import { Client } from "../../fakes/proxies/proxy-at.ts";
import type { Vllm } from "../vllm/start.ts";

const policy = { version: "weights-7", step: 7 };

/** `model`: the folder of the weights that sampled, for transformers to load. Null where the harness is not installed. */
export async function recordSessions(t: TestContext, vllm: Vllm): Promise<{ trajectories: Trajectory[]; model: string } | null> {
  // One after the other in one folder: trainers that know a group by its prompt want the same prompt of each.
  const folder = join(await mkdtemp(join(tmpdir(), "alidade-consumers-")), "pi");
  t.after(() => rm(dirname(folder), { recursive: true, force: true }));
  const played: Trajectory[] = [];
  for (const index of [0, 1]) {
    const trajectory = await playPi(t, vllm, index, folder);
    if (trajectory === null) return null;
    played.push(trajectory);
  }
  const talked = await talks(t, vllm);
  return {
    // A grader would have given the rewards: without a difference there is nothing to train.
    trajectories: [played, talked].flatMap((group) => group.map((trajectory, index) => ({ ...trajectory, reward: 1 - index }))),
    model: vllm.weights,
  };
}

const member = (task_id: string, sample_index: number): Partial<SessionSpec> => ({
  purpose: "train",
  task_id,
  group_id: `group-${task_id}`,
  sample_index,
  rollout_id: `${task_id}-${sample_index}`,
});

/**
 * Until the model gives its last word, at most eight turns. Its reasoning stays, so that a session is one long row: TRL
 * counts positions from the padding, and rounds otherwise far from it (`trainers/trl.py`).
 */
async function playPi(t: TestContext, vllm: Vllm, index: number, folder: string): Promise<Trajectory | null> {
  const spec: Partial<SessionSpec> = { ...member("steps", index), continuity: "auto", restore: "full", budgets: { max_turns: 8 } };
  const played = await playByItself(t, { harness: "pi", vllm, turns: 3, policy, spec, folder });
  return played?.trajectory ?? null;
}

async function talks(t: TestContext, vllm: Vllm): Promise<Trajectory[]> {
  const engine = engineNamed("vllm").create({ baseUrl: vllm.url, apiKey: null });
  try {
    await using proxy = await HarnessProxy.start({ engine, store: new MemoryStore(), version: "test", policy, signal: t.signal });
    return await Promise.all([0, 1].map((index) => talk(proxy, member("sea", index))));
  } finally {
    await engine.close();
  }
}

async function talk(proxy: HarnessProxy, spec: Partial<SessionSpec>): Promise<Trajectory> {
  const { session, key } = await proxy.openSession({ any_model: true, ...spec });
  const client = new Client(proxy, session.id, key);
  // The first is the longer one, so that it is the row of formats with one row a rollout, whichever of their rules decides.
  const starts = { "Tell me about the sea.": ["Go on.", "And then?", "What else?"], "Tell me about the desert.": ["Go on."] };
  for (const [start, rest] of Object.entries(starts)) {
    const messages: unknown[] = [{ role: "user", content: start }];
    for (const more of rest) {
      messages.push(await client.say(messages, { max_tokens: 24 }), { role: "user", content: more });
    }
  }
  return await client.trajectory();
}
