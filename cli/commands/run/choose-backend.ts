import { AlidadeError } from "../../../base/errors.ts";
import { isIsolated } from "../../../base/schema/rollout.ts";
import type { ProgressEvent } from "../../../rollouts/index.ts";
import type { SandboxBackend } from "../../../sandboxes/index.ts";
import { pickBackend } from "../../../sandboxes/index.ts";
import type { Config } from "../../config.ts";

/** Without isolation a stranger's harness and tests run as this user, so the user has to say so. */
export async function chooseBackend(
  config: Config,
  signal: AbortSignal,
  onProgress: (event: ProgressEvent) => void,
): Promise<SandboxBackend> {
  const { backend, reason } = await pickBackend(config.sandbox, signal, config);
  if (!isIsolated(backend.capabilities.isolation) && !config.unsafe_host)
    throw new AlidadeError(
      "unsafe_host_refused",
      `${reason} Such a sandbox isolates nothing: harness and tests would run as you, on this machine. Start Docker, or pass --unsafe-host to accept that.`,
      { param: "unsafe_host" },
    );
  onProgress({ type: "note", text: reason });
  for (const text of (await backend.notes?.()) ?? []) onProgress({ type: "note", text });
  return backend;
}
