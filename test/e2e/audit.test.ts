/**
 * What the real vLLM sampled, scored again twice: by its own prefill, and by llama.cpp over the same weights, which
 * shares no code with it. Two implementations of f32 arithmetic agree within 1e-4 nats or something is wrong.
 */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { cli } from "../fakes/cli.ts";
import { recordChat } from "../fakes/record-chat.ts";
import { llamaCppPlace } from "../interop/llama-cpp/place.ts";
import { writeGguf } from "../interop/llama-cpp/write-gguf.ts";
import { startVllm } from "../interop/vllm/start.ts";
import { need } from "../needs.ts";

test("samples of a real vLLM pass the audit by vLLM itself and by llama.cpp over the same weights", async (t) => {
  if (!(await need(t, "vllm")) || !(await need(t, "llama-cpp"))) return;
  await using vllm = await startVllm(t.signal);
  const folder = await mkdtemp(join(tmpdir(), "alidade-audit-"));
  try {
    await recordChat(vllm.url, folder, 4);
    const gguf = join(folder, "policy.gguf");
    await writeGguf(await weightsOf(vllm.url), gguf);
    for (const scorer of [
      ["--engine", vllm.url],
      ["--gguf", gguf],
    ]) {
      const { code, stdout, stderr } = await cli(["audit", "--run", folder, ...scorer, "--json"], { cwd: llamaCppPlace() });
      assert.equal(code, 0, stderr);
      const { compared, worst } = JSON.parse(stdout) as { compared: number; worst: number };
      assert.ok(compared >= 4 && worst <= 1e-4, stdout);
      t.diagnostic(`${scorer[0]}: ${compared} tokens, worst |Δ| ${worst} nats`);
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

/** The folder of the served model, by the server's own word. */
async function weightsOf(url: string): Promise<string> {
  const { data } = (await (await fetch(`${url}/v1/models`)).json()) as { data: { root: string }[] };
  return data[0]?.root ?? assert.fail("vLLM serves no model");
}
