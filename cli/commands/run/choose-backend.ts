import { AlidadeError } from "../../../base/errors.ts";
import type { ProgressEvent } from "../../../rollouts/index.ts";
import type { SandboxBackend } from "../../../sandboxes/index.ts";
import { pickBackend, samePlace } from "../../../sandboxes/index.ts";
import type { Config } from "../../config.ts";

/** The process sandbox runs a stranger's harness and tests as this user: only with the user's word. */
export async function chooseBackend(
  config: Config,
  signal: AbortSignal,
  onProgress: (event: ProgressEvent) => void,
): Promise<SandboxBackend> {
  const { backend, reason } = await pickBackend(config.sandbox, signal, config);
  if (backend.capabilities.isolation === "none" && !config.unsafe_host)
    throw new AlidadeError(
      "unsafe_host_refused",
      `${reason} The process sandbox isolates nothing: harness and tests would run as you, on this machine. Start Docker, or pass --unsafe-host to accept that.`,
      { param: "unsafe_host" },
    );
  onProgress({ type: "note", text: reason });
  if (backend.capabilities.isolation === "none" && (await samePlace()) === null)
    onProgress({
      type: "note",
      text: "mounts are not permitted here, so each sandbox has its own path. A harness that prints the path gives each rollout of a group another prompt; nemo-rl and nemo-gym leave such groups out",
    });
  return backend;
}
