/** What an engine says while it pulls or builds: one JSON object a line. A failure is not an HTTP error, but the last event. */
import { z } from "zod";
import { readJson } from "../../../base/schema/read-json.ts";
import { statusLines } from "./made/buildkit-status.ts";

const EngineEvent = z.looseObject({
  stream: z.string().optional(),
  status: z.string().optional(),
  id: z.string().optional(),
  progressDetail: z.looseObject({ current: z.number().optional(), total: z.number().optional() }).nullish(),
  error: z.string().optional(),
  aux: z.unknown().optional(),
});
export type EngineEvent = z.infer<typeof EngineEvent>;

/** A command may print without an end, and the builder passes on what it has after 100 kB or so. */
const maxLine = 4 * 1024 * 1024;

/** Throws a plain error for what is no such line, or a very long one. */
export async function* engineEvents(output: AsyncIterable<Buffer | string>): AsyncGenerator<EngineEvent> {
  let rest = "";
  // A character may be cut in two by the end of a chunk.
  const decoder = new TextDecoder();
  for await (const chunk of output) {
    rest += typeof chunk === "string" ? chunk : decoder.decode(chunk, { stream: true });
    const lines = rest.split("\n");
    rest = lines.pop() ?? "";
    if (rest.length > maxLine) throw new Error(`the engine sent a line of more than ${maxLine} characters`);
    for (const line of lines) if (line.trim() !== "") yield EngineEvent.parse(readJson(line));
  }
  if (rest.trim() !== "") yield EngineEvent.parse(readJson(rest));
}

/** The text of a build's event, for people; "" where it has none. */
export function textOf({ stream, id, aux }: EngineEvent): string {
  if (id === "moby.buildkit.trace" && typeof aux === "string") return statusLines(Buffer.from(aux, "base64"));
  return stream ?? "";
}
