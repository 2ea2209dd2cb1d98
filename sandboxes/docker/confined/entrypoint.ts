/**
 * The image's ENTRYPOINT, started as the sandbox's user beside the process that keeps the container: so it may end, and
 * ends with all else when the work is taken out. In the place of CMD it gets a command that says that it was reached.
 */
import { basename } from "node:path";
import type Docker from "dockerode";
import { BoundedOutput } from "../../../base/host/bounded-output.ts";
import type { ImageStart } from "../../healthcheck.ts";
import { demultiplex } from "../attached-stream.ts";
import { engineWork } from "../client.ts";
import { attach, type Command } from "../exec.ts";

const word = "alidade-reached-the-command";
/** The longest that every `sleep` takes: 68 years. */
const given = ["sh", "-c", `echo ${word}; exec sleep 2147483647`];
const outputBytes = 4_000;

/** Not a start: a shell that waits for its user. */
export function startsNothing([program = "", ...flags]: readonly string[]): boolean {
  const isShell = ["sh", "bash", "dash", "ash", "zsh"].includes(basename(program));
  return program === "" || (isShell && flags.every((flag) => /^-[abd-z]+$/.test(flag)));
}

export async function startEntrypoint(
  docker: Docker,
  containerId: string,
  entrypoint: readonly string[],
  where: Pick<Command, "user" | "cwd" | "env">,
  signal: AbortSignal,
): Promise<ImageStart> {
  const command = { ...where, argv: [...entrypoint, ...given], signal };
  const { exec, stream } = await engineWork(docker).run(signal, () => attach(docker, containerId, command, false));
  const output = new BoundedOutput(outputBytes, "end");
  let reached = false;
  // Read to its end, which is the container's: a full pipe would hold the image's programs up.
  const read = async () => {
    for await (const { bytes } of demultiplex(stream)) {
      output.push(bytes);
      reached ||= output.toString().includes(word);
    }
  };
  read().catch(() => {}); // the container is gone
  return {
    argv: entrypoint,
    reached: () => reached,
    end: async () => {
      const { Running, ExitCode } = await exec.inspect();
      return Running ? null : ExitCode;
    },
    output: () => output.toString().replace(word, ""),
  };
}
