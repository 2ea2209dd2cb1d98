/**
 * Works side by side under a last guard, one of which does what it is told: `node guarded-process.ts FOLDER WHAT`. Prints one line of
 * JSON when all are over: how each ended, and what the guard said.
 */
import { EventEmitter } from "node:events";
import { PassThrough } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { LastGuard } from "../../../base/host/deaths/last-guard.ts";
import { untilAborted } from "../../../base/host/until-aborted.ts";
import { tryJson } from "../../../base/schema/read-json.ts";

const [folder = "", what = ""] = process.argv.slice(2);

/** It is busy outside of any work, as a timer of a plug-in is. */
const outside = new EventEmitter();
const beat = setInterval(() => outside.emit("beat"), 5);

const never = () => new Promise<void>(() => undefined);

const deeds: Record<string, () => Promise<void>> = {
  nothing: async () => undefined,
  timer: async () => {
    setTimeout(() => {
      throw new Error("a timer threw");
    }, 5);
    await never();
  },
  stream: async () => {
    new PassThrough().destroy(new Error("a stream broke"));
    await never();
  },
  promise: async () => {
    void sleep(5).then(() => Promise.reject(new Error("a promise was not awaited")));
    await never();
  },
  often: async () => {
    for (let at = 0; at < 200; at++) setImmediate(() => assertNever(at));
    await never();
  },
  nameless: async () => {
    outside.on("beat", () => {
      throw new Error("another timer threw");
    });
    await never();
  },
  exit: async () => process.exit(3),
  kill: async () => void process.kill(process.pid, "SIGKILL"),
  memory: async () => {
    const kept: unknown[] = [];
    for (;;) {
      kept.push(Array.from({ length: 100_000 }, (_, at) => ({ at })));
      await sleep(1);
    }
  },
};

function assertNever(at: number): never {
  throw new Error(`throw ${at}`);
}

const notes: string[] = [];
/** Finished calls, as records would show them. */
const calls = new Map(Object.entries(tryJson(process.env.CALLS ?? "{}") as Record<string, number>));
await using guard = await LastGuard.open(
  folder,
  (text) => notes.push(text),
  async (attempts) => new Map([...calls].filter(([attempt]) => attempts.includes(attempt))),
);

async function work(name: string, does: () => Promise<void>): Promise<[string, string]> {
  const failed = new AbortController();
  try {
    await guard.run(
      `${name}#1`,
      (error) => failed.abort(error),
      async () => {
        using _step = name.startsWith("waits") ? null : guard.step(`${name}#1`);
        await untilAborted(does(), failed.signal);
      },
    );
    return [name, "done"];
  } catch (error) {
    return [name, String(error)];
  }
}

const alone = what.endsWith("-alone");
const deed = deeds[what.replace("-alone", "")] ?? deeds.nothing;
const siblings = alone ? [] : ["a", "b", ...(what === "kill" ? ["waits"] : [])].map((name) => work(name, () => sleep(300)));
const ends = Object.fromEntries(await Promise.all([...siblings, work("culprit", deed as () => Promise<void>)]));
clearInterval(beat);
console.log(
  JSON.stringify({
    ends,
    notes,
    aside: [...guard.aside],
    blameless: guard.blameless,
    suspects: ["culprit", "a", "b"].filter((name) => guard.isSuspect(name)),
  }),
);
