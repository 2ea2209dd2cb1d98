/**
 * mini-swe-agent, a harness in Python over the Chat dialect, not streamed. It is installed by install.sh and runs on the
 * host: our packs carry Node and no Python.
 */
import { join } from "node:path";
import { commandHarness } from "../../../harnesses/command.ts";
import { cachePlace, hashOf, isReady } from "../place.ts";

/** The folder with `venv/`; ready when it holds the file `ready`. */
export function miniSweAgentPlace(): string {
  return cachePlace("mini-swe-agent", hashOf(import.meta.dirname, ["requirements.txt"]));
}

/** null when it is installed, otherwise why not. */
export async function miniSweAgentMissing(): Promise<string | null> {
  return isReady(miniSweAgentPlace()) ? null : "mini-swe-agent of the pinned versions is not installed";
}

export const miniSweAgent = commandHarness({
  name: "mini-swe-agent",
  argv: [
    ...[join(miniSweAgentPlace(), "venv/bin/mini"), "--yolo", "--exit-immediately", "--cost-limit", "0"],
    ...[
      "--config",
      "mini.yaml",
      "--config",
      "agent.mode=yolo",
      "--config",
      "agent.instance_template={{task}}",
      "--config",
      "model.model_name=openai/{model}",
    ],
    ...["--config", "model.model_kwargs.api_base={base_url}/v1", "--output", "{home}/trajectory.json", "--task", "{instruction}"],
  ],
  env: {
    MSWEA_CONFIGURED: "true",
    MSWEA_SILENT_STARTUP: "1",
    MSWEA_COST_TRACKING: "ignore_errors",
    // Its own retries are for servers without a proxy before them.
    MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT: "1",
    // Else it asks the network for prices.
    LITELLM_LOCAL_MODEL_COST_MAP: "True",
  },
});
