/**
 * The kinds of session at which training frameworks were measured (60 calls each), played through the proxy in front of
 * an engine whose every sample is tokenised otherwise than it was sampled.
 *
 *     node test/proxy/continuity/session-kinds.ts     prints the table
 */

import type { SessionSpec } from "../../../base/schema/session-spec.ts";
import type { Trajectory } from "../../../base/schema/trajectory.ts";
import { engineNamed } from "../../../engines/registry.ts";
import { HarnessProxy } from "../../../proxy/index.ts";
import { MemoryStore } from "../../../proxy/store/index.ts";
import { verifyTrajectory } from "../../../reconstruct/verify.ts";
import { type Policy, type Sampling, TemplatedEngine, type Thoughts } from "../../fakes/engines/templated-engine.ts";
import { until } from "../../fakes/machine/until.ts";
import { Client } from "../../fakes/proxies/proxy-at.ts";

/** As many as the frameworks were measured with. Tests play fewer: 24 go through all that a policy says four times. */
export const callsMeasured = 60;

export type Kind = {
  name: string;
  thoughts?: Thoughts;
  policy: Policy;
  play: (session: Playing) => Promise<void>;
  /** Conversations: with continuity and `restore: full` a trace each. */
  conversations: number;
  /** What was measured of Polar on such a session: delivered / in exact context. */
  polar: string;
};

export type Playing = { client: Client; engine: TemplatedEngine; calls: number };

type Said = Record<string, unknown> & { tool_calls?: { id: string }[] };
type Chat = Record<string, unknown>[];

const bash = { name: "bash", parameters: { type: "object", properties: { command: { type: "string" } } } };
const tools = [{ type: "function", function: bash }];
const opening = (words = "List the files of naïve 日本."): Chat => [
  { role: "system", content: "You help." },
  { role: "user", content: words },
];

/** What the policy says in its n-th generation: mostly calls, now and then an answer. */
const call = (n: number, spacing = " "): string =>
  `Step ${n}.\n<tool_call>\n{"name": "bash", "arguments": {"command":${spacing}"ls src/${n}"}}\n</tool_call>`;
const thought = (n: number): string => `<think>\nStep ${n} needs a look.\n</think>\n\n`;
const loop: Policy = ({ index }) => ({ text: index % 6 === 5 ? `Done with ${index}.` : call(index) });
const thinking: Policy = (asked) => ({ text: thought(asked.index) + loop(asked).text });

/** Answers every turn as a harness does: results for calls, else the user's next words. */
async function chat({ client }: Playing, messages: Chat, calls: number, sentBack: (said: Said) => Said = (said) => said): Promise<void> {
  for (let turn = 0; turn < calls; turn++) {
    const said = (await client.say(messages, { tools })) as Said;
    messages.push(sentBack(said), ...behind(said, turn));
  }
}

function behind(said: Said, turn: number): Chat {
  const results = (said.tool_calls ?? []).map(({ id }) => ({ role: "tool", tool_call_id: id, content: `a.txt\nnaïve 日本 ${turn}\n` }));
  return results.length > 0 ? results : [{ role: "user", content: `And then? ${turn}` }];
}

export const kinds: Kind[] = [
  {
    name: "append-only, every sample retokenised",
    policy: loop,
    play: (at) => chat(at, opening(), at.calls),
    conversations: 1,
    polar: "100 % / 1.7 %",
  },
  {
    name: "one compaction",
    policy: loop,
    play: async (at) => {
      await chat(at, opening(), at.calls / 2);
      await chat(at, opening("So far: 30 steps. Go on."), at.calls / 2);
    },
    conversations: 2,
    polar: "100 % / 100 %",
  },
  {
    name: "three sub-agents beside the main one",
    policy: loop,
    play: async (at) => {
      const agents = ["main", "first", "second", "third"].map((name) => opening(`You are the ${name} one.`));
      for (let turn = 0; turn < at.calls / 4; turn++) for (const messages of agents) await chat(at, messages, 1);
    },
    conversations: 4,
    polar: "100 % / 100 %",
  },
  {
    name: "two sub-agents with the same first prompt",
    policy: loop,
    play: async (at) => {
      const agents = [opening(), opening()];
      for (let turn = 0; turn < at.calls / 2; turn++) for (const messages of agents) await chat(at, messages, 1);
    },
    conversations: 2,
    polar: "58.3 % / 58.3 %",
  },
  {
    name: "fork",
    policy: loop,
    play: async (at) => {
      const messages = opening();
      await chat(at, messages, at.calls / 3);
      const fork = [...messages.slice(0, -1), { ...messages.at(-1), content: "Another outcome." }];
      await chat(at, messages, at.calls / 3);
      await chat(at, fork, at.calls / 3);
    },
    conversations: 2,
    polar: "100 % / 100 %",
  },
  {
    name: "truncated turns",
    policy: (asked) => (asked.index % 5 === 2 ? { text: `This was cut at ${asked.index}, in the mid`, finish: "length" } : loop(asked)),
    play: (at) => chat(at, opening(), at.calls),
    conversations: 1,
    polar: "100 % / 100 %",
  },
  {
    name: "first turn ends on a stop string",
    policy: (asked) => (asked.index === 0 ? { text: "I look.\nObservation:", stop: "Observation:" } : loop(asked)),
    play: (at) => chat(at, opening(), at.calls),
    conversations: 1,
    polar: "3.2 % / 3.2 %",
  },
  {
    name: "thinking not rendered in history",
    thoughts: "never printed",
    policy: thinking,
    play: (at) => chat(at, opening(), at.calls),
    conversations: 1,
    polar: "100 % / 1.7 %",
  },
  {
    name: "thinking dropped by the harness",
    policy: thinking,
    play: (at) => chat(at, opening(), at.calls, ({ reasoning_content: _, ...said }) => said),
    conversations: 1,
    polar: "100 % / 1.7 %",
  },
  {
    name: "thinking dropped at each user turn, as Qwen3 does",
    thoughts: "until the user speaks",
    policy: thinking,
    play: (at) => chat(at, opening(), at.calls),
    conversations: 1,
    polar: "100 % / 100 %, 3 × the tokens",
  },
  {
    name: "empty think block only in the generation prompt",
    thoughts: "empty block in the generation prompt",
    policy: loop,
    play: (at) => chat(at, opening(), at.calls),
    conversations: 1,
    polar: "100 % / 100 %, 30 × the tokens",
  },
  {
    name: "Responses, text and call in one turn",
    policy: ({ index }) => ({ text: call(index) }),
    play: responses,
    conversations: 1,
    polar: "100 % / 1.7 %",
  },
  {
    name: "Messages, compact JSON arguments",
    policy: ({ index }) => ({ text: call(index, "") }),
    play: anthropic,
    conversations: 1,
    polar: "100 % / 1.7 %",
  },
  { name: "three retries of each body", policy: loop, play: retries, conversations: 1, polar: "17.5 % / 17.5 %" },
];

async function responses({ client, calls }: Playing): Promise<void> {
  const input: unknown[] = [{ role: "user", content: "List the files." }];
  for (let turn = 0; turn < calls; turn++) {
    const answer = await client.post("/v1/responses", { model: "any", input, tools: [{ type: "function", ...bash }], store: false });
    const { output } = (await answer.json()) as { output: { type: string; call_id?: string }[] };
    input.push(...output);
    for (const { call_id } of output) if (call_id) input.push({ type: "function_call_output", call_id, output: `a ${turn}` });
  }
}

async function anthropic({ client, calls }: Playing): Promise<void> {
  const messages: unknown[] = [{ role: "user", content: "List the files." }];
  const { name, parameters } = bash;
  for (let turn = 0; turn < calls; turn++) {
    const body = { model: "any", max_tokens: 500, messages, tools: [{ name, input_schema: parameters }] };
    const { content } = (await (await client.post("/v1/messages", body)).json()) as { content: { type: string; id?: string }[] };
    const results = content
      .filter(({ type }) => type === "tool_use")
      .map(({ id }) => ({ type: "tool_result", tool_use_id: id, content: `a ${turn}` }));
    messages.push({ role: "assistant", content }, { role: "user", content: results });
  }
}

/** A client that gives up three times before it waits for its answer. */
async function retries({ client, engine, calls }: Playing): Promise<void> {
  const messages = opening();
  const session = client.proxy.session(client.sessionId);
  for (let turn = 0; turn < calls; turn++) {
    const { promise, resolve } = Promise.withResolvers<void>();
    engine.before = promise;
    for (let attempt = 0; attempt < 3; attempt++) {
      const leaving = new AbortController();
      const asked = client.chat({ messages, tools }, leaving.signal).catch(() => null);
      await until(() => session.running.inFlight().some(({ call }) => session.running.clientsOf(call).length > 0));
      leaving.abort();
      await asked;
      await until(() => session.running.inFlight().every(({ call }) => session.running.clientsOf(call).length === 0));
    }
    resolve();
    await chat({ client, engine, calls }, messages, 1);
  }
}

export type Played = {
  kind: Kind;
  trajectory: Trajectory;
  delivered: number;
  exact: number;
  proven: number;
  told: unknown[];
  promptTokens: number;
};

export async function playKind(kind: Kind, spec: Partial<SessionSpec>, calls: number): Promise<Played> {
  await using engine = await TemplatedEngine.start(kind.policy as (asked: Parameters<Policy>[0]) => Sampling, kind.thoughts);
  const adapter = engineNamed("vllm").create({ baseUrl: engine.url, apiKey: null });
  const told: unknown[] = [];
  await using proxy = await HarnessProxy.start({
    engine: adapter,
    store: new MemoryStore(),
    version: "test",
    onError: (error, what) => void told.push([what, error]),
  });
  const { session, key } = await proxy.openSession({ any_model: true, purpose: "train", ...spec });
  const client = new Client(proxy, session.id, key);
  await kind.play({ client, engine, calls });
  const trajectory = await client.trajectory();
  await adapter.close();
  const report = verifyTrajectory(trajectory, engine.exchanges);
  const { trainable_tokens, sampled_tokens } = trajectory.fidelity;
  return {
    kind,
    trajectory,
    delivered: trainable_tokens / sampled_tokens,
    exact: (engine.exchanges.length - report.mismatches.length) / engine.exchanges.length,
    proven: report.calls,
    told,
    promptTokens: engine.exchanges.reduce((sum, { prompt_token_ids }) => sum + prompt_token_ids.length, 0),
  };
}

export const modes: Record<string, Partial<SessionSpec>> = {
  "continuity, restore full": { continuity: "auto", restore: "full" },
  "continuity, default restore": { continuity: "auto" },
  "without continuity": { continuity: "off" },
};

if (import.meta.main) {
  const percent = (share: number): string => `${Math.round(share * 1000) / 10} %`;
  const inflation = ({ trajectory }: Played): string => `${(trajectory.fidelity.row_inflation ?? 0).toFixed(1)} ×`;
  console.log(
    `| session of ${callsMeasured} calls | ${Object.keys(modes).join(" | ")} | Polar |\n| --- | ${Object.keys(modes)
      .map(() => "---")
      .join(" | ")} | --- |`,
  );
  for (const kind of kinds) {
    const cells: string[] = [];
    for (const spec of Object.values(modes)) {
      const played = await playKind(kind, spec, callsMeasured);
      cells.push(
        `${percent(played.delivered)} / ${percent(played.exact)}, ${played.trajectory.traces.length} traces, ${inflation(played)}`,
      );
    }
    console.log(`| ${kind.name} | ${cells.join(" | ")} | ${kind.polar} |`);
  }
}
