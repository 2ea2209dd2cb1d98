/**
 * Random conversation trees played over HTTP, through the real proxy, against the scripted engine: what the engine was
 * asked and answered is the witness that every trajectory is held against.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Media } from "../../base/media/media.ts";
import { Trajectory } from "../../base/schema/trajectory.ts";
import {
  type EngineExchange,
  type FlatRow,
  isRouted,
  selections,
  selectRows,
  verifyRows,
  verifyTrajectory,
} from "../../reconstruct/index.ts";
import { expertsAt } from "../fakes/engines/npy.ts";
import { encode, endOfTurn, logprobOf, render, type ScriptedReply, said, type WireRequest } from "../fakes/engines/scripted-engine.ts";
import { enginesAt } from "../fakes/proxies/engines-at.ts";
import { type Client, proxyAt } from "../fakes/proxies/proxy-at.ts";

type Chat = {
  role: string;
  content: string | null;
  reasoning?: string;
  reasoning_content?: string;
  tool_calls?: { function: { name: string; arguments: string } }[];
};

type Move = {
  /** Which earlier turn is gone on from (modulo their number). */
  from: number;
  how: "continue" | "again" | "twins" | "fork" | "edit" | "respell" | "drop reasoning" | "drop turn" | "inject" | "leave" | "start";
};

const move: fc.Arbitrary<Move> = fc.record({
  from: fc.nat(20),
  how: fc.constantFrom(
    "continue",
    "continue",
    "continue",
    "again",
    "twins",
    "fork",
    "edit",
    "respell",
    "drop reasoning",
    "drop turn",
    "inject",
    "leave",
    "start",
  ),
});

/** What the model says to its n-th request; it often says the same again. */
function replyTo(index: number): ScriptedReply {
  if (index % 3 === 2) return { text: `so ${index % 2}` };
  return { reasoning: "hm", text: "look", tool_calls: [{ name: "bash", arguments: '{"a":1,"b":2}' }] };
}

/** A turn as the harness has it: what it asked, and what it believes was said. */
type Turn = { asked: Chat[]; said: Chat };

class Harness {
  readonly #client: Client;
  readonly #turns: Turn[] = [];
  #words = 0;

  constructor(client: Client) {
    this.#client = client;
  }

  async play({ from, how }: Move): Promise<void> {
    const turn = this.#turns[from % Math.max(1, this.#turns.length)];
    if (turn === undefined || how === "start") await this.#ask([{ role: "user", content: `start ${from % 3}` }]);
    else if (how === "again") await this.#ask(turn.asked);
    else if (how === "leave") await this.#leave(follow(turn.asked, turn.said, "left"));
    else if (how === "twins") await Promise.all([1, 2].map(() => this.#ask(follow(turn.asked, turn.said, "twin"))));
    else if (how === "drop turn") await this.#ask([...turn.asked, { role: "user", content: "no tool call: try again" }]);
    else if (how === "inject") await this.#ask(follow([{ role: "user", content: "(mind the plan)" }, ...turn.asked], turn.said, "on"));
    else await this.#ask(follow(turn.asked, changed(turn.said, how), how === "fork" ? `fork ${this.#words++}` : "on"));
  }

  async #ask(asked: Chat[]): Promise<void> {
    this.#turns.push({ asked, said: (await this.#client.say(asked)) as Chat });
  }

  /** Is gone before the answer is there; what the harness goes on with is nothing. */
  async #leave(asked: Chat[]): Promise<void> {
    const gone = new AbortController();
    const answer = this.#client.chat({ messages: asked, stream: true }, gone.signal).then((response) => response.text());
    setTimeout(() => gone.abort(), 1);
    await answer.catch(() => undefined);
  }
}

function follow(asked: Chat[], saidNow: Chat, words: string): Chat[] {
  return [...asked, saidNow, { role: "user", content: words }];
}

function changed(turn: Chat, how: Move["how"]): Chat {
  if (how === "edit") return { ...turn, content: `${turn.content ?? ""} (edited)` };
  if (how === "drop reasoning") {
    const { reasoning: _dropped, reasoning_content: _too, ...rest } = turn;
    return rest;
  }
  if (how !== "respell" || turn.tool_calls === undefined) return turn;
  const respelled = turn.tool_calls.map((call) => ({ ...call, function: { ...call.function, arguments: '{"b": 2, "a": 1}' } }));
  return { ...turn, tool_calls: respelled };
}

test("whatever a harness does with its turns, each path is what the engine saw, and no token is trained twice", async () => {
  const exchanges: EngineExchange[] = [];
  await using at = await proxyAt((request: WireRequest, index) => {
    const reply = replyTo(index);
    const prompt_token_ids = render(request);
    const token_ids = [...encode(said(reply)), endOfTurn];
    exchanges.push({ prompt_token_ids, token_ids, logprobs: token_ids.map((id, place) => logprobOf(id, prompt_token_ids.length + place)) });
    return reply;
  });
  await fc.assert(
    fc.asyncProperty(fc.array(move, { minLength: 2, maxLength: 10 }), async (moves) => {
      exchanges.length = 0;
      const client = await at.open({ purpose: "train" });
      const harness = new Harness(client);
      for (const each of moves) await harness.play(each);
      const trajectory = Trajectory.parse(await client.trajectory());
      const proof = verifyTrajectory(trajectory, exchanges);
      assert.deepEqual(proof.mismatches, []);
      assert.equal(proof.trainable_tokens, trajectory.fidelity.trainable_tokens);
      for (const { name } of selections) {
        const { rows, tokens } = selectRows(trajectory, { strategy: name });
        assert.deepEqual(verifyRows(trajectory, rows), [], name);
        const excluded = Object.values(tokens.excluded).reduce((sum, each) => sum + each, 0);
        assert.equal(tokens.trained + excluded, trajectory.fidelity.sampled_tokens);
      }
    }),
    { numRuns: 30 },
  );
  assert.deepEqual(at.unseen, []);
});

test("whatever a harness does with its turns, the experts of each token are those that the engine told of it at its place", async () => {
  await using at = await enginesAt((_, __, index) => replyTo(index), { a: { routing: "told" } });
  const { media } = at.proxy.sessions.store;
  await fc.assert(
    fc.asyncProperty(fc.array(move, { minLength: 2, maxLength: 10 }), async (moves) => {
      const client = await at.open({ purpose: "train", continuity: "auto" });
      const harness = new Harness(client);
      for (const each of moves) await harness.play(each);
      const trajectory = Trajectory.parse(await client.trajectory());
      for (const { name } of selections)
        for (const row of selectRows(trajectory, { strategy: name }).rows) {
          const told = expertsOfRow(row, media);
          const wanted = row.token_ids.map((id, index) => expertsAt(id, row.position_ids?.[index] ?? index).flat());
          for (const [index, one] of told.entries()) if (one !== null) assert.deepEqual(one, wanted[index], `${name}, token ${index}`);
          if (name === "strict") assert.ok(isRouted(row) && told.slice(0, -1).every((one) => one !== null), "a token without its experts");
        }
    }),
    { numRuns: 10 },
  );
  assert.deepEqual(at.told, []);
});

/** One list for each token; null: its experts are not on record. */
function expertsOfRow({ token_ids, routing = [] }: FlatRow, media: Pick<Media, "read"> | undefined): (number[] | null)[] {
  const told: (number[] | null)[] = token_ids.map(() => null);
  for (const { start, length, sha256, row, layers, top_k } of routing) {
    const [bytes, size] = [media?.read(sha256) ?? Buffer.alloc(0), layers * top_k];
    for (let at = 0; at < length; at++) told[start + at] = [...bytes.subarray((row + at) * size, (row + at + 1) * size)];
  }
  return told;
}
