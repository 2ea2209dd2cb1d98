/**
 * What the real vLLM sampled for a real harness, scored again twice: by its own prefill, and by llama.cpp over the same
 * weights, which shares no code with it. Two implementations of f32 arithmetic agree within 1e-4 nats or something is
 * wrong; and what is wrong must show.
 */
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import type { Trajectory } from "../../base/schema/trajectory.ts";
import type { Audit } from "../../reconstruct/index.ts";
import { cliProcess } from "../fakes/processes/cli.ts";
import { llamaCppPlace } from "../interop/llama-cpp/place.ts";
import { writeGguf } from "../interop/llama-cpp/write-gguf.ts";
import { startVllm } from "../interop/vllm/start.ts";
import { need } from "../needs.ts";
import { playUntil } from "./play-by-itself.ts";

test("sessions of the real Pi pass the audit by vLLM and by llama.cpp; a token edited and a context never seen fail it", async (t) => {
  if (!(await need(t, "vllm")) || !(await need(t, "llama-cpp"))) return;
  await using vllm = await startVllm(t.signal);
  const played = await playUntil(t, { harness: "pi", vllm, turns: 4, spec: { continuity: "auto", restore: "full" } }, goesOn);
  if (played === null) return;
  const { trajectory } = played;
  const folder = await mkdtemp(join(tmpdir(), "alidade-audit-"));
  try {
    const gguf = join(folder, "policy.gguf");
    await writeGguf(vllm.weights, gguf);
    const audited = async (trajectory: Trajectory, scorer: string[]) => {
      await writeFile(join(folder, "trajectories.jsonl"), `${JSON.stringify(trajectory)}\n`);
      const { code, stdout, stderr } = await cliProcess(["audit", "--run", folder, ...scorer, "--json"], { cwd: llamaCppPlace() });
      assert.notEqual(stdout, "", stderr);
      return { code, ...(JSON.parse(stdout) as Audit) };
    };
    for (const scorer of [
      ["--engine", vllm.url],
      // It sums in another order, and the difference grows with the context: 7e-5 was seen.
      ["--gguf", gguf, "--tolerance", "3e-4"],
    ]) {
      const honest = await audited(trajectory, scorer);
      assert.equal(honest.code, 0, JSON.stringify(honest.calls));
      assert.equal(honest.compared, trajectory.fidelity.sampled_tokens);
      t.diagnostic(`${scorer[0]}: ${honest.calls.length} calls, ${honest.compared} tokens, worst |Δ| ${honest.worst} nats`);
      for (const [what, wrong] of Object.entries({ edited: withAnEdit(trajectory), rendered: asIfRendered(trajectory) })) {
        const found = await audited(wrong, scorer);
        assert.equal(found.code, 1, what);
        t.diagnostic(`${scorer[0]}, ${what}: worst |Δ| ${found.worst} nats`);
      }
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

/** At least three calls, of which one went on from another: a free model may end early, or say what Pi rewrites. */
function goesOn({ calls }: Trajectory): boolean {
  return calls.length >= 3 && calls.some(({ match }) => match === "exact");
}

/** One token of the first sample is another one. */
function withAnEdit(trajectory: Trajectory): Trajectory {
  const edited = structuredClone(trajectory);
  const node = edited.nodes.find(({ kind }) => kind === "sampled") ?? assert.fail("nothing was sampled");
  node.token_ids[0] = node.token_ids[0] === 300 ? 301 : 300;
  return edited;
}

/** Cuts the first half of a turn out of the context of later turns, as templates that drop reasoning do. */
function asIfRendered(trajectory: Trajectory): Trajectory {
  const rendered = structuredClone(trajectory);
  const sample = rendered.nodes.find(
    ({ kind, node_id }) => kind === "sampled" && rendered.nodes.some(({ parent_id }) => parent_id === node_id),
  );
  assert.ok(sample, "no turn went on from another");
  // A node of its own for the turn in its other form, and everything behind it hangs there.
  const node_id = "node-rendered";
  for (const node of rendered.nodes) if (node.parent_id === sample.node_id) node.parent_id = node_id;
  const token_ids = sample.token_ids.slice(Math.ceil(sample.token_ids.length / 2));
  rendered.nodes.push({ ...sample, node_id, kind: "observation", token_ids, logprobs: null, trainable: false });
  return rendered;
}
