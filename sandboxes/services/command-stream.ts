/** A command in a container whose standard input and output are a stream. */
import { Duplex, Readable } from "node:stream";
import type Docker from "dockerode";
import { demultiplex } from "../docker/attached-stream.ts";
import { engineWork } from "../docker/client.ts";
import { attach, type Command } from "../docker/exec.ts";

/** `as`: left out, the container's own user, folder and variables. The command ends with its input or with the container. */
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

/** What it writes as errors is its log. */
async function* wordsOf(stream: Duplex): AsyncGenerator<Buffer, void, undefined> {
  for await (const chunk of demultiplex(stream)) if (chunk.stream === "stdout") yield chunk.bytes;
}
