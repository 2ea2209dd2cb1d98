/** The records of a rollout that was sampled with a cut: its trajectory, that of its attempt, and the bytes that they name. */
import type { Trajectory } from "../../../base/schema/trajectory.ts";
import { reconstruct } from "../../../reconstruct/index.ts";
import { packPictures } from "../../../service/blobs/index.ts";
import { enginesAt } from "../proxies/engines-at.ts";

/** The engine keeps two tokens at each place: the sampled one and the next id. */
export async function cutRecords(): Promise<[Trajectory, ...unknown[]]> {
  await using at = await enginesAt((_, __, index) => ({ text: `turn ${index}` }), { a: { support: "told" } });
  const sampling = { temperature: 1, top_p: 0.9, top_k: 5 };
  const client = await at.open({ purpose: "train", continuity: "auto", relay: "buffered", sampling });
  const messages: unknown[] = [{ role: "user", content: "go" }];
  for (let turn = 0; turn < 2; turn++) messages.push(await client.say(messages), { role: "user", content: "on" });
  const trajectory = reconstruct(await client.entries(), { status: "graded", reward: 1 });
  return [trajectory, null, ...packPictures(trajectory, at.proxy.sessions.store.media ?? null)];
}
