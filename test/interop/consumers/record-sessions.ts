/**
 * What the trainers are given, sampled by a real vLLM with nothing forced on its model, which plays by itself: a group of
 * two rollouts of a real harness, and one of two short talks that begin anew, so that each of them has several rows.
 */
import { chmod } from "node:fs/promises";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { engineNamed } from "../../../engines/index.ts";
import { pi } from "../../../harnesses/pi.ts";
import { HarnessProxy } from "../../../proxy/index.ts";
import type { SessionSpec } from "../../../schema/session-log.ts";
import type { Trajectory } from "../../../schema/trajectory.ts";
import { MemoryStore } from "../../../store/index.ts";
import { Client } from "../../fakes/proxy-at.ts";
import { installedPack } from "../../harness/installed-pack.ts";
import { runCommand, temporaryPlace, writeBelow } from "../../harness/run-harness.ts";
import { taughtTask } from "../vllm/plays.ts";
import type { Vllm } from "../vllm/start.ts";

/** `model`: the folder of the weights that sampled, for transformers to load. Null where the harness is not installed. */
export async function recordSessions(t: TestContext, vllm: Vllm): Promise<{ trajectories: Trajectory[]; model: string } | null> {
  const pack = await installedPack(t, pi);
  if (pack === null) return null;
  const engine = engineNamed("vllm").create({ baseUrl: vllm.url, apiKey: null });
  try {
    const policy = { version: "weights-7", step: 7 };
    await using proxy = await HarnessProxy.start({ engine, store: new MemoryStore(), version: "test", policy, signal: t.signal });
    const played = await Promise.all([0, 1].map((index) => playPi(t, { proxy, pack: pack.folder, index, model: vllm.model })));
    const talked = await Promise.all([0, 1].map((index) => talk(proxy, member("sea", index))));
    return {
      // A grader would have given the rewards: without a difference there is nothing to train.
      trajectories: [played, talked].flatMap((group) => group.map((trajectory, index) => ({ ...trajectory, reward: 1 - index }))),
      model: vllm.weights,
    };
  } finally {
    await engine.close();
  }
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
async function playPi(
  t: TestContext,
  { proxy, pack, index, model }: { proxy: HarnessProxy; pack: string; index: number; model: string },
): Promise<Trajectory> {
  const task = taughtTask("pi", 3);
  await using place = await temporaryPlace(task.files);
  const { home, workdir } = place;
  for (const name of Object.keys(task.files)) await chmod(join(workdir, name), 0o755);
  const spec: Partial<SessionSpec> = {
    ...member("steps", index),
    harness: "pi",
    continuity: "auto",
    restore: "full",
    budgets: { max_turns: 8 },
  };
  const { session, key } = await proxy.openSession(spec);
  const { instruction } = task;
  const launch = pi.launch({ instruction, baseUrl: proxy.url, apiKey: key, model, home, workdir, pack, contextWindow: 32_768 });
  await writeBelow(home, launch.files);
  await runCommand(launch.argv, { cwd: workdir, env: { PATH: "/usr/bin:/bin", ...launch.env }, signal: t.signal });
  return await new Client(proxy, session.id, key).trajectory();
}

async function talk(proxy: HarnessProxy, spec: Partial<SessionSpec>): Promise<Trajectory> {
  const { session, key } = await proxy.openSession(spec);
  const client = new Client(proxy, session.id, key);
  for (const start of ["Tell me about the sea.", "Tell me about the desert."]) {
    const messages: unknown[] = [{ role: "user", content: start }];
    for (const more of ["Go on.", "And then?"]) {
      messages.push(await client.say(messages, { max_tokens: 24 }), { role: "user", content: more });
    }
  }
  return await client.trajectory();
}
