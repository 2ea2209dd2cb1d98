/** A trajectory's logprobs against vLLM's own, asked for by hand: `score` shares no code with our adapter. */
import assert from "node:assert/strict";
import type { Trajectory } from "../../base/schema/trajectory.ts";
import { auditTrajectory } from "../../reconstruct/index.ts";
import type { Vllm } from "../interop/vllm/start.ts";
import { score } from "./vllm-samples.ts";

/** Asserts that every sampled token has the logprob that vLLM gives it again; the greatest difference in nats. */
export async function proveLogprobs(
  vllm: Vllm,
  trajectory: Trajectory,
  options: { tolerance: number; signal: AbortSignal },
): Promise<{ worst: number; tokens: number }> {
  const again = async (ids: number[]) => {
    const scored = await score(vllm, ids, options.signal);
    return ids.map((id, index) => scored[index]?.[String(id)]?.logprob ?? null);
  };
  const { calls, compared, worst } = await auditTrajectory(trajectory, again, options);
  assert.deepEqual(
    calls.filter(({ status }) => status !== "ok"),
    [],
  );
  assert.equal(compared, trajectory.fidelity.sampled_tokens);
  assert.ok(worst !== null, "nothing was compared");
  return { worst, tokens: compared };
}
