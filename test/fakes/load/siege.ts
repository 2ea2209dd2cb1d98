/** A proxy, siblings that work, and one hostile sandbox: how long the siblings' calls take without and with its attack. */
import { Agent, request } from "node:http";
import { join } from "node:path";
import { Child } from "../../../bench/child.ts";
import { quantile } from "../../../bench/measure.ts";

/** The serving thread, in milliseconds: its CPU in a phase, and its longest piece of work without a break. */
type Busy = { ms: number; cpuMs: number; longestMs: number };

/** One phase undisturbed, and one while the attack runs. */
export type Round = {
  /** 99th percentiles of a sibling's call in milliseconds. */
  alone: number;
  beside: number;
  /** The part of the thread that the attack took. */
  share: number;
  /** As in `Busy`, while it ran. */
  longestMs: number;
};

export type Measured = {
  rounds: Round[];
  /** The proxy's process, in bytes, while attacks ran. */
  peakRss: number;
  /** Bytes of the hostile session's log. */
  logged: number;
  /** First lines of what the attacker was answered, counted. */
  heard: Record<string, number>;
};

type Opened = { id: string; port: number };

const file = (name: string): string => join(import.meta.dirname, name);
/** As many rollouts as a small machine runs at once. */
const siblings = 4;
/** An attack that stops everything is not waited for any longer. */
const phaseMs = 10_000;

export class Siege implements AsyncDisposable {
  readonly #engine = new Child(file("engine.ts"));
  readonly #proxy = new Child(file("proxy.ts"));
  readonly #attacker = new Child(file("attacker.ts"));

  static async start(): Promise<Siege> {
    const siege = new Siege();
    await siege.#proxy.ask("start", await siege.#engine.ask<string>("url"));
    // By then V8 has compiled what there is to compile.
    await siege.#callsOfSiblings(200);
    return siege;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.#attacker, this.#proxy, this.#engine].map((child) => child[Symbol.asyncDispose]()));
  }

  attacks(): Promise<string[]> {
    return this.#attacker.ask<string[]>("names");
  }

  /** So many rounds, or until one is good enough: both phases of each see the same machine. */
  async measure(name: string, { rounds: most = 3, calls = 300, isEnough = (_: Round): boolean => false } = {}): Promise<Measured> {
    const hostile = await this.#proxy.ask<Opened>("open");
    const rounds: Round[] = [];
    await this.#proxy.ask("peakRss");
    const heard: Record<string, number> = {};
    while (rounds.length < most && !rounds.some(isEnough)) {
      const alone = await this.#phase(calls);
      await this.#attacker.ask("begin", { name, port: hostile.port });
      await new Promise((resolve) => setTimeout(resolve, 200));
      const beside = await this.#phase(calls);
      const share = (beside.cpuMs - alone.cpuMs) / beside.ms;
      rounds.push({ alone: alone.p99, beside: beside.p99, share, longestMs: beside.longestMs });
      for (const [line, count] of Object.entries(await this.#attacker.ask<Record<string, number>>("end")))
        heard[line] = (heard[line] ?? 0) + count;
    }
    const logged = await this.#proxy.ask<number>("logged", hostile.id);
    const peakRss = await this.#proxy.ask<number>("peakRss");
    await this.#proxy.ask("close", hostile.id);
    return { rounds, peakRss, logged, heard };
  }

  async #phase(calls: number): Promise<Busy & { p99: number }> {
    await this.#proxy.ask("busy");
    const took = await this.#callsOfSiblings(calls);
    return { p99: p99(took), ...(await this.#proxy.ask<Busy>("busy")) };
  }

  /** Milliseconds of each call of siblings that ask one after the other, each on its own kept connection. */
  async #callsOfSiblings(calls: number): Promise<number[]> {
    const deadline = performance.now() + phaseMs;
    const took = await Promise.all(
      Array.from({ length: siblings }, async () => {
        const { id, port } = await this.#proxy.ask<Opened>("open");
        const agent = new Agent({ keepAlive: true, maxSockets: 1 });
        const mine: number[] = [];
        const messages: object[] = [{ role: "user", content: "hi" }];
        for (let call = 0; call < calls / siblings && performance.now() < deadline; call++) {
          const begin = performance.now();
          await say(agent, port, messages);
          mine.push(performance.now() - begin);
          messages.push({ role: "assistant", content: "ok" }, { role: "user", content: `next ${call}` });
        }
        agent.destroy();
        await this.#proxy.ask("close", id);
        return mine;
      }),
    );
    return took.flat();
  }
}

function say(agent: Agent, port: number, messages: object[]): Promise<void> {
  const body = JSON.stringify({ model: "model", messages });
  return new Promise((resolve, reject) => {
    const asked = request({ port, agent, method: "POST", path: "/v1/chat/completions", headers: { "content-type": "application/json" } });
    asked.on("error", reject);
    asked.on("response", (answer) => {
      answer.resume();
      answer.on("end", () => (answer.statusCode === 200 ? resolve() : reject(new Error(`a sibling was answered ${answer.statusCode}`))));
    });
    asked.end(body);
  });
}

const sorted = (values: readonly number[]): number[] => values.toSorted((a, b) => a - b);
const p99 = (values: readonly number[]): number => quantile(sorted(values), 0.99);
export const median = (values: readonly number[]): number => quantile(sorted(values), 0.5);
