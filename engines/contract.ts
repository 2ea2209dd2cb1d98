/** What holds for every engine: `alidade plugin check` runs it, and against a server where one is given. */
import assert from "node:assert/strict";
import type { ContractCheck } from "../base/host/plug-ins.ts";
import type { Engine, EngineKind, SampleEvent, SampleRequest } from "./engine.ts";

/** `url`: a server of this kind; null: there is none at hand, and what needs one is left out. */
export type EngineContext = { url: string | null; apiKey: string | null; signal: AbortSignal };

export const engineContract: readonly ContractCheck<EngineKind, EngineContext>[] = [
  {
    says: "what it creates has a name, its URL, probe, sample and close",
    check: (kind, context) =>
      withEngine(kind, context, nowhere, async (engine) => {
        assert.deepEqual([typeof engine.name, engine.baseUrl], ["string", nowhere]);
        for (const member of ["probe", "sample", "close"] as const)
          assert.equal(typeof engine[member], "function", `it has no function ${member}`);
      }),
  },
  {
    says: "a signal that has fired ends a sample before its first event",
    check: (kind, context) =>
      withEngine(kind, context, context.url ?? nowhere, async (engine) => {
        await assert.rejects(eventsOf(engine, request("any"), AbortSignal.abort(new Error("enough"))));
      }),
  },
  {
    says: "its probe says what the server gives, and why where nothing can be trained on it",
    check: (kind, context) => {
      const { url } = context;
      if (url === null) return;
      return withEngine(kind, context, url, async (engine) => {
        const facts = await engine.probe(context.signal);
        assert.ok(facts.models.length > 0, "it names no model");
        assert.equal(facts.missing === null, facts.token_ids && facts.logprobs, `missing is ${JSON.stringify(facts.missing)}`);
        assert.equal(facts.token_in_missing === undefined, facts.token_in, "token_in_missing says why there is no token-in");
      });
    },
  },
  {
    says: "a turn is accepted, then its parts, then its end, with one logprob for each sampled id",
    check: (kind, context) => {
      const { url } = context;
      if (url === null) return;
      return withEngine(kind, context, url, async (engine) => {
        const { models, token_ids } = await engine.probe(context.signal);
        const events = await eventsOf(engine, request(models[0] ?? ""), context.signal);
        assert.deepEqual([events[0]?.type, events.at(-1)?.type], ["accepted", "end"]);
        for (const type of ["accepted", "end"]) assert.equal(events.filter((event) => event.type === type).length, 1, `one ${type}`);
        const tokens = events.filter((event) => event.type === "tokens");
        for (const { token_ids: ids, logprobs } of tokens) assert.equal(logprobs.length, ids.length);
        assert.equal(tokens.length > 0, token_ids, "token ids come where the probe says so, and nowhere else");
      });
    },
  },
];

/** Nothing listens there. */
const nowhere = "http://127.0.0.1:9";

function request(model: string): SampleRequest {
  return {
    model,
    messages: [{ role: "user", parts: [{ type: "text", text: "Say hello." }] }],
    tools: [],
    tool_choice: null,
    sampling: { temperature: 1, max_tokens: 16 },
    call_id: "call_contract",
  };
}

function eventsOf(engine: Engine, asked: SampleRequest, signal: AbortSignal): Promise<SampleEvent[]> {
  return Array.fromAsync(engine.sample(asked, signal));
}

async function withEngine(
  kind: EngineKind,
  { apiKey }: EngineContext,
  url: string,
  body: (engine: Engine) => Promise<void>,
): Promise<void> {
  const engine = kind.create({ baseUrl: url, apiKey });
  try {
    await body(engine);
  } finally {
    await engine.close();
  }
}
