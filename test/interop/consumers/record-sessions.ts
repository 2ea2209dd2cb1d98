/** What the trainers are given: rollouts of two tasks, two of each, sampled by a real vLLM with nothing forced. */
import { z } from "zod";
import { engineNamed } from "../../../engines/index.ts";
import { HarnessProxy } from "../../../proxy/index.ts";
import type { SessionSpec } from "../../../schema/session-log.ts";
import type { Trajectory } from "../../../schema/trajectory.ts";
import { MemoryStore } from "../../../store/index.ts";
import { Client } from "../../fakes/proxy-at.ts";
import type { Vllm } from "../vllm/start.ts";

/** `model`: the folder of the weights that sampled, for transformers to load. */
export async function recordSessions(vllm: Vllm, signal: AbortSignal): Promise<{ trajectories: Trajectory[]; model: string }> {
  const trajectories: Trajectory[] = [];
  for (const sample_index of [0, 1]) {
    const spec = { task_id: "sea", group_id: "group-sea", sample_index, rollout_id: `sea-${sample_index}` };
    trajectories.push({ ...(await talk(vllm, spec, signal)), reward: 1 - sample_index });
  }
  return { trajectories, model: await servedFolder(vllm, signal) };
}

/** vLLM's own word on where the weights came from that it serves. */
async function servedFolder({ url }: Vllm, signal: AbortSignal): Promise<string> {
  const answer: unknown = await (await fetch(`${url}/v1/models`, { signal })).json();
  const { data } = z.looseObject({ data: z.tuple([z.looseObject({ root: z.string() })]) }).parse(answer);
  return data[0].root;
}

/** Text that drifts when it is tokenised again, so that a rollout has several rows. */
async function talk(vllm: Vllm, spec: Partial<SessionSpec>, signal: AbortSignal): Promise<Trajectory> {
  const engine = engineNamed("vllm").create({ baseUrl: vllm.url, apiKey: null });
  try {
    const policy = { version: "weights-7", step: 7 };
    await using proxy = await HarnessProxy.start({ engine, store: new MemoryStore(), version: "test", policy, signal });
    const { session, key } = await proxy.openSession({ purpose: "train", continuity: "off", ...spec });
    const client = new Client(proxy, session.id, key);
    const messages: unknown[] = [{ role: "user", content: "Tell me about the sea." }];
    for (const more of ["Go on.", "And then?", "Thank you."]) {
      const said = await client.say(messages, { max_tokens: 24 });
      messages.push(said, { role: "user", content: more });
    }
    return await client.trajectory();
  } finally {
    await engine.close();
  }
}
