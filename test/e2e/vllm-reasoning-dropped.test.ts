/**
 * Where reasoning is dropped, on a real vLLM whose model plays by itself: by default the context is the one that a
 * deployment without us has, and each such place is a branch with that cause; `restore: full` keeps what was thought, and
 * the conversation is one sequence. What comes back as its signature alone was not dropped.
 */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { Trajectory } from "../../base/schema/trajectory.ts";
import type { HarnessLaunch } from "../../harnesses/harness.ts";
import { chatTemplates } from "../interop/templates/place.ts";
import { startVllm } from "../interop/vllm/start.ts";
import { need } from "../needs.ts";
import { playByItself, type SelfPlayOptions } from "./play-by-itself.ts";
import { proveLogprobs } from "./prove-logprobs.ts";
import { counted, ofTheHarness, proveContinuity, proveTokens, toleranceOverTurns } from "./prove-self-played.ts";

/** A free policy may end a session before much was dropped. */
const mostSessions = 6;
const fewestTurns = 8;

test("gemini-cli sends the signatures of thoughts alone: they stay, and the conversation is one sequence by default", {
  timeout: 600_000,
}, async (t) => {
  if (!(await need(t, "vllm"))) return;
  await using vllm = await startVllm(t.signal);
  let [longest, carried] = [0, 0];
  for (let session = 0; session < mostSessions && (longest < fewestTurns || carried === 0); session++) {
    const options = { harness: "gemini-cli", turns: 12, setUp: withShortPrompt, vllm, spec: { continuity: "auto" } } as const;
    const one = await playByItself(t, options);
    if (one === null) return;
    t.diagnostic(JSON.stringify(counted(one)));
    proveTokens(one);
    proveContinuity(one, ofTheHarness);
    const { calls } = one.trajectory;
    longest = Math.max(longest, calls.length);
    carried += calls.at(-1)?.restored.filter(({ differences }) => differences.includes("reasoning_carried")).length ?? 0;
  }
  assert.ok(longest >= fewestTurns && carried > 0, `at most ${longest} turns in a session, ${carried} thoughts came back`);
});

test("Qwen3's template drops what was thought before the user's last words: a branch where the user speaks again, or none", {
  timeout: 600_000,
}, async (t) => {
  if (!(await need(t, "vllm")) || !(await need(t, "templates"))) return;
  const { source: chat_template } = chatTemplates().find(({ name }) => name === "Qwen-Qwen3-0.6B") ?? assert.fail();
  const played = { harness: "pi", turns: 3, goOn: { calls: 12, most: 8 }, spec: { sampling: { chat_template } } } as const;
  await inBothWays(t, played, (trajectory, { parent_call_id, input }) => {
    const parent = trajectory.calls.find(({ call_id }) => call_id === parent_call_id) ?? assert.fail();
    const isUser = (id: string) => trajectory.messages[id]?.role === "user";
    // What the template still printed for the parent: all since the user's last words then, and what was sampled.
    const printed = [...parent.input.slice(parent.input.findLastIndex(isUser)), parent.output];
    return input.slice(parent.input.length + 1).some(isUser) && printed.some((id) => hasThought(trajectory, id));
  });
});

/** Is something left out of the call's prompt that was thought in its parent's? */
type IsDropped = (trajectory: Trajectory, call: Trajectory["calls"][number]) => boolean;

async function inBothWays(t: TestContext, options: Omit<SelfPlayOptions, "vllm">, isDropped: IsDropped): Promise<void> {
  await using vllm = await startVllm(t.signal);
  const playedWith = async (restore: "serialisation" | "full") => {
    let longest = 0;
    let drops = restore === "full" ? 1 : 0;
    for (let session = 0; session < mostSessions && (longest < fewestTurns || drops === 0); session++) {
      const one = await playByItself(t, { ...options, vllm, spec: { ...options.spec, continuity: "auto", restore } });
      if (one === null) return;
      const { worst } = await proveLogprobs(vllm, one.trajectory, { tolerance: toleranceOverTurns, signal: t.signal });
      t.diagnostic(JSON.stringify({ restore, ...counted(one), worst }));
      proveTokens(one);
      proveContinuity(one, restore === "full" ? ofTheHarness : [...ofTheHarness, "reasoning_dropped"]);
      const dropped = one.trajectory.calls.filter(({ cause }) => cause === "reasoning_dropped");
      const expected = one.trajectory.calls.filter((call) => restore !== "full" && isPlain(call) && isDropped(one.trajectory, call));
      assert.deepEqual(
        dropped.map(({ call_id }) => call_id),
        expected.map(({ call_id }) => call_id),
        JSON.stringify(one.trajectory.calls.map(({ call_id, match, cause, input, output }) => ({ call_id, match, cause, input, output }))),
      );
      longest = Math.max(longest, one.trajectory.calls.length);
      drops += dropped.length;
    }
    assert.ok(longest >= fewestTurns && drops > 0, `${restore}: at most ${longest} turns in a session, ${drops} drops`);
  };
  await Promise.all([playedWith("serialisation"), playedWith("full")]);
}

/** Has a parent, and nothing else happened to its turn. */
function isPlain({ parent_call_id, cause }: Trajectory["calls"][number]): boolean {
  return parent_call_id !== null && !ofTheHarness.includes(cause ?? "");
}

function hasThought(trajectory: Trajectory, message: string | null): boolean {
  return (trajectory.messages[message ?? ""]?.parts ?? []).some((part) => part.type === "reasoning" && part.text.trim() !== "");
}

/** Its own prompt and tools are 16 k tokens of this tokenizer, twice as long as anything that the model was taught with. */
function withShortPrompt({ argv, env, files }: HarnessLaunch): HarnessLaunch {
  const settings = JSON.parse(files[".gemini/settings.json"] ?? assert.fail()) as object;
  return {
    argv,
    env: { ...env, GEMINI_SYSTEM_MD: `${env.HOME}/.gemini/system.md` },
    files: {
      ".gemini/settings.json": JSON.stringify({ ...settings, tools: { core: ["run_shell_command"] } }),
      ".gemini/system.md": "You work in a terminal.\n",
    },
  };
}
