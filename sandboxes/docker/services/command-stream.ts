/** Runs a command in a container. Its standard input and output are one stream. */
import { Duplex, Readable } from "node:stream";
import type Docker from "dockerode";
import { demultiplex } from "../attached-stream.ts";
import { engineWork } from "../client.ts";
import { attach, type Command } from "../exec.ts";

/** `as`: user, folder and variables; by default those of the container. The command ends when its input or the container ends. */
export async function commandStream(
  docker: Docker,
  id: string,
  argv: string[],
  signal: AbortSignal,
  as: Pick<Command, "user" | "cwd" | "env"> = { user: "", cwd: "", env: {} },
): Promise<Duplex> {
  const command = { argv, ...as };
  const { stream } = await engineWork(docker).run(signal, () => attach(docker, id, command, true));
  return Duplex.from({ readable: Readable.from(wordsOf(stream)), writable: stream });
}

/** Reads standard output only. A server writes its log to standard error. */
async function* wordsOf(stream: Duplex): AsyncGenerator<Buffer, void, undefined> {
  for await (const chunk of demultiplex(stream)) if (chunk.stream === "stdout") yield chunk.bytes;
}
