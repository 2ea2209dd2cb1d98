/** Starts the forwarder inside a sandbox, and carries many connections over its standard input and output. */
import type { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { messageOf } from "../../base/errors.ts";
import { BoundedOutput } from "../../base/host/bounded-output.ts";
import { doorInside, openMs } from "./door-kind.ts";
import { forwarderFile } from "./door-pack.ts";
import { Multiplexer, type MultiplexerEvents } from "./multiplexer.ts";

/** A process inside with its streams attached. Destroying `stream` lets go of it. */
export type AttachedProcess = {
  /** Written to: its standard input. */
  stream: Duplex;
  /** What it writes, until its stream ends. */
  output: AsyncIterable<{ stream: "stdout" | "stderr"; bytes: Buffer }>;
};

/** Starts the forwarder as another user, so that the agent can neither signal nor trace it. */
export type StartForwarder = (argv: string[], env: Record<string, string>, signal: AbortSignal) => Promise<AttachedProcess>;

/** `ended`: resolves once it is gone; never rejects. */
export type RunningForwarder = { stream: Duplex; multiplexer: Multiplexer; ended: Promise<void> };

const program = [`${doorInside}/node`, "--disable-warning=ExperimentalWarning", `${doorInside}/${forwarderFile}`];
/** An image may set these; the forwarder is ours. */
const env = { NODE_OPTIONS: "", LD_PRELOAD: "", LD_LIBRARY_PATH: "", HOME: "/" };

/** Resolves when it is ready. `task`: the arguments of `forwarder.ts`. Rejects with its error output. */
export async function startForwarder(
  start: StartForwarder,
  task: string[],
  events: Pick<MultiplexerEvents, "onStream">,
  signal: AbortSignal,
): Promise<RunningForwarder> {
  const attached = await start([...program, ...task], env, signal);
  const { stream } = attached;
  stream.on("error", () => {}); // its end says it too
  const ready = Promise.withResolvers<void>();
  const complaints = new BoundedOutput(2_000);
  const multiplexer = new Multiplexer(stream, { ...events, onReady: ready.resolve });
  const ended = carry(attached, multiplexer, complaints).then(() => {
    ready.reject(new Error(complaints.toString().trim() || "the forwarder ended"));
    stream.destroy();
  });
  const late = sleep(openMs, undefined, { ref: false }).then(() =>
    ready.reject(new Error(`the forwarder was not ready within ${openMs} ms`)),
  );
  late.catch(() => {});
  const stop = (): void => ready.reject(signal.reason);
  signal.addEventListener("abort", stop, { once: true });
  try {
    await ready.promise;
    return { stream, multiplexer, ended };
  } catch (error) {
    stream.destroy();
    throw error;
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

/** Feeds what the forwarder sends until its stream ends, however it ends. */
async function carry({ output }: AttachedProcess, multiplexer: Multiplexer, complaints: BoundedOutput): Promise<void> {
  try {
    for await (const { stream, bytes } of output) {
      if (stream === "stderr") complaints.push(bytes);
      else multiplexer.feed(bytes);
    }
  } catch (error) {
    complaints.push(Buffer.from(messageOf(error)));
  } finally {
    multiplexer.close();
  }
}
