/** A run over a service as its flags have it: a new one, or one to go on with. */
import { AlidadeError } from "../../../base/errors.ts";
import { loadConfig } from "../../load-config.ts";
import { watchOf } from "../watch/watch-flags.ts";
import { describedRun } from "./described-run.ts";
import type { RunAtService } from "./run-at-service.ts";
import { assertOwnConfiguration, newRun, type RunFlags } from "./run-flags.ts";
import { askedService } from "./service-flags.ts";

/** null: this machine makes the rollouts. Throws `config_invalid` for what goes with this machine only. */
export async function startAtService(tasks: string[], flags: RunFlags): Promise<RunAtService | null> {
  if (flags.resume !== undefined) return resumedAtService(flags.resume, tasks, flags);
  if (flags.service === undefined) return null;
  const [foreign] = Object.entries({ "control-port": flags.controlPort, cancel: flags.cancel }).flatMap(([name, value]) =>
    value === undefined ? [] : [name],
  );
  if (foreign !== undefined)
    throw new AlidadeError(
      "config_invalid",
      `--${foreign} does not go with --service: ${foreign === "cancel" ? "--resume FOLDER --cancel ends a run that was handed in" : "a trainer pauses the service itself (POST /control/pause)"}`,
      {
        param: foreign.replace("-", "_"),
      },
    );
  const { setOfRun } = await import("./set-of-run.ts");
  const { config, given, ...started } = await newRun(tasks, flags);
  const set = setOfRun(config, given, { priority: flags.priority, weight: flags.weight });
  return { ...started, config, service: { ...(await askedService(flags.service, flags)), set } };
}

/** The service may be at another address now; what its set was asked for stays. */
async function resumedAtService(path: string, tasks: string[], flags: RunFlags): Promise<RunAtService | null> {
  // A folder that is no run's is refused by the run on this machine, in its words.
  const described = await describedRun(path, "resume").catch(() => null);
  if (described?.service === undefined) return null;
  const { run_id, config: defaults, service: kept } = described;
  const { resume: _resume, json: _json, cancel: _cancel, service, tokenEnv, ca, logFormat, ...others } = flags;
  assertOwnConfiguration(tasks, others);
  const config = await loadConfig({ env: {}, defaults, overrides: watchOf({ logFormat }) });
  const { set, ...before } = kept;
  const now = await askedService(service ?? before.url ?? before.file ?? "", {
    tokenEnv: tokenEnv ?? before.token_env,
    ca: ca ?? before.ca ?? undefined,
  });
  return { runId: run_id, path, config, service: { ...now, set } };
}
