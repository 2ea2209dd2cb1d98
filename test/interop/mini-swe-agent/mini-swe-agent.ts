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

/** What it is started with: `key` is a variable in capitals, else an option, of which `--config` takes a key of its own. */
export const miniSweAgentSettings: readonly { key: string; value: string | true; why: string }[] = [
  { key: "--yolo", value: true, why: "no person is there to ask" },
  { key: "--exit-immediately", value: true, why: "it would ask whether its end is the end" },
  { key: "--cost-limit", value: "0", why: "prices are unknown here; 0 is no limit" },
  { key: "--config", value: "mini.yaml", why: "its own configuration, which the following change" },
  { key: "--config agent.mode", value: "yolo", why: "no person is there to ask" },
  {
    key: "--config agent.instance_template",
    value: "{{task}}",
    why: "the task alone, without its own advice around it: the tests play with a model that was taught so",
  },
  { key: "--config model.model_name", value: "openai/{model}", why: "the policy" },
  { key: "--config model.model_kwargs.api_base", value: "{base_url}/v1", why: "its calls are recorded" },
  { key: "--output", value: "{home}/trajectory.json", why: "its own record stays in the rollout's home" },
  { key: "MSWEA_CONFIGURED", value: "true", why: "it would ask for its configuration at the first start" },
  { key: "MSWEA_SILENT_STARTUP", value: "1", why: "nothing but its output is printed" },
  { key: "MSWEA_COST_TRACKING", value: "ignore_errors", why: "prices are unknown here" },
  { key: "MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT", value: "1", why: "the proxy tries again where that is right" },
  { key: "LITELLM_LOCAL_MODEL_COST_MAP", value: "True", why: "it would ask the network for prices" },
];

const isVariable = (key: string): boolean => /^[A-Z]/.test(key);

export const miniSweAgent = commandHarness({
  name: "mini-swe-agent",
  argv: [
    join(miniSweAgentPlace(), "venv/bin/mini"),
    ...miniSweAgentSettings.filter(({ key }) => !isVariable(key)).flatMap(argumentsOf),
    ...["--task", "{instruction}"],
  ],
  env: Object.fromEntries(miniSweAgentSettings.filter(({ key }) => isVariable(key)).map(({ key, value }) => [key, String(value)])),
});

function argumentsOf({ key, value }: { key: string; value: string | true }): string[] {
  const [option = key, name] = key.split(" ");
  if (value === true) return [option];
  return [option, name === undefined ? value : `${name}=${value}`];
}
