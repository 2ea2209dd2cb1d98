/**
 * opencode (npm `opencode-ai`), over the Chat dialect: one native binary for each platform. It reads its message from
 * standard input, for on the command line a word with a space arrives in quotation marks and one that is a number ends it.
 */
import type { Harness, PackPlatform } from "./harness.ts";
import { checkedInstruction } from "./instruction.ts";
import { lastJsonLine, lastLine } from "./last-line.ts";
import {
  goesOn,
  HarnessConfiguration,
  ownHome,
  type Setting,
  type SettingContext,
  type SettingValue,
  toolServers,
  toolTimeoutSeconds,
} from "./settings.ts";

const packageName = "opencode-ai";
const version = "1.18.33";
/** Its tools `grep`, `glob` and `skill` run ripgrep. Without one it would fetch it from the network. Each platform has a package with the program alone. */
const ripgrep = "@vscode/ripgrep";
const ripgrepVersion = "1.18.0";
const provider = "alidade";
const input = ".alidade-instruction";

/** Sent as `max_tokens`; the proxy's own limits decide what is really sampled. */
const maxOutputTokens = 8192;

/** Its configuration, which is handed over in a variable: a file of this name in the task's own folder would stand above ours. */
const config = "opencode.json";
const folder = ".config/opencode";

const provided = (key: string, value: Setting["value"], why: string, says?: string): Setting => ({
  place: config,
  key: `provider.${provider}.${key}`,
  value,
  about: "address",
  why,
  ...(says && { says }),
});

const settings: Setting[] = [
  { place: "argv", key: "run", value: true, about: "run", why: "without a terminal", only: "run" },
  { place: "argv", key: "--format", value: "json", about: "run", why: "its events say how it ended", only: "run" },
  { place: "argv", key: "--title", value: "task", about: "agent", why: "it would ask the model for a title", only: "run" },
  goesOn("--continue"),
  ownHome,
  ...Object.entries({ XDG_DATA_HOME: ".local/share", XDG_STATE_HOME: ".local/state", XDG_CACHE_HOME: ".cache" }).map(
    ([key, below]): Setting => ({
      place: "env",
      key,
      value: ({ home }) => `${home}/${below}`,
      says: "a folder of the rollout's home",
      about: "run",
      why: "nothing of a person's is read or written",
    }),
  ),
  { place: "env", key: "OPENCODE_DISABLE_AUTOUPDATE", value: "1", about: "run", why: "the version is pinned" },
  {
    place: "env",
    key: "OPENCODE_DISABLE_MODELS_FETCH",
    value: "1",
    about: "run",
    why: "nothing is asked of the network, or sent to it, but calls",
  },
  {
    place: "env",
    key: "OPENCODE_DISABLE_LSP_DOWNLOAD",
    value: "1",
    about: "run",
    why: "nothing is asked of the network, or sent to it, but calls",
  },
  { place: config, key: "autoupdate", value: false, about: "run", why: "the version is pinned" },
  { place: config, key: "share", value: "disabled", about: "run", why: "sessions are shared over the vendor's service" },
  { place: config, key: "permission", value: "allow", about: "agent", why: "no person is there to ask; the sandbox is the boundary" },
  {
    place: config,
    key: "compaction.auto",
    value: false,
    about: "agent",
    why: "a compaction cuts the conversation in two; a full context is the engine's to say",
  },
  {
    place: config,
    key: "model",
    value: ({ model }) => `${provider}/${model}`,
    says: "the run's model",
    about: "address",
    why: "the policy",
  },
  {
    place: config,
    key: "small_model",
    value: ({ model }) => `${provider}/${model}`,
    says: "the run's model",
    about: "address",
    why: "no other one is there",
  },
  {
    place: config,
    key: "mcp",
    value: toolServers(({ url }) => ({ type: "remote", url, enabled: true, timeout: toolTimeoutSeconds * 1000 })),
    says: "the task's servers of tools",
    about: "agent",
    why: "it gets their tools",
    only: "run",
  },
  provided("npm", "@ai-sdk/openai-compatible", "Chat Completions"),
  provided("name", provider, "it must have one"),
  provided("options.baseURL", ({ baseUrl }) => `${baseUrl}/v1`, "its calls are recorded", "the proxy"),
  provided("options.apiKey", ({ apiKey }) => apiKey, "it says whose calls they are", "the session's key"),
  ...["timeout", "headerTimeout", "chunkTimeout"].map(
    (key): Setting => ({ ...provided(`options.${key}`, false, "the proxy keeps the connection alive"), about: "run" }),
  ),
  {
    ...provided(
      "models",
      (context) => modelsOf(context),
      "otherwise thoughts may be dropped from its history; its own limit of output tokens may be more than the engine has; pictures of tools would not reach the model",
    ),
    says: `the run's model, with \`reasoning: true\`, \`tool_call: true\`, where it is known the engine's window with ${maxOutputTokens} output tokens at most, and for a task with servers of tools \`attachment: true\` and \`image\` among its inputs`,
    about: "agent",
  },
  // At every start it would fetch the SDK for plugins (20 MB) from a package registry into its folder, and wait for it.
  ...[`${folder}/package.json`, `${folder}/package-lock.json`].map(
    (place): Setting => ({
      place,
      key: place.endsWith("-lock.json") ? `packages..dependencies.@opencode-ai/plugin` : "dependencies.@opencode-ai/plugin",
      value: version,
      about: "run",
      why: "it takes the SDK for plugins for installed; there are no plugins, and no registry to fetch it from",
      only: "run",
    }),
  ),
];

export const opencode: Harness = {
  name: "opencode",
  title: "opencode",
  dialects: ["openai-chat"],
  packages: { [packageName]: version, [ripgrep]: ripgrepVersion },
  version,
  makes: ["sub_agent"],
  commands: ["opencode"],
  tools: true,
  resumes: true,
  sight: `opencode hands them on by attachment: true and modalities.input: ["text", "image"] of the model, in ${config}`,

  // The baseline build runs on every x64 CPU, the other one on those of the last ten years.
  program: (platform) => `node_modules/opencode-${platform}${baseline(platform)}/bin/opencode`,
  unneeded: (platform) => (baseline(platform) === "" ? [] : [`node_modules/opencode-${platform}`]),
  runs: (platform) => [`node_modules/${ripgrep}-${platform}/bin/rg`],
  input,
  skills: `${folder}/skills`,

  settings,

  launch(context) {
    const set = new HarnessConfiguration(settings, "run", context);
    const [manifest, lock] = [`${folder}/package.json`, `${folder}/package-lock.json`];
    return {
      argv: [`${context.pack}/bin/opencode`, ...set.argv()],
      env: environmentOf(set),
      files: {
        [input]: checkedInstruction(context.instruction),
        [manifest]: set.json(manifest),
        [lock]: set.json(lock),
        [`${folder}/node_modules/.placeholder`]: "",
      },
    };
  },

  configure(context) {
    return { env: environmentOf(new HarnessConfiguration(settings, "record", context)), files: {} };
  },

  end({ exit_code, stdout, stderr }) {
    const error = lastJsonLine(stdout, (line) => line.includes('"type":"error"'));
    if (exit_code === 0 && error === null) return { failed: false, message: null };
    return { failed: true, message: messageOf(error) ?? lastLine(stderr) };
  },
};

function baseline(platform: PackPlatform): string {
  return platform.endsWith("-x64") ? "-baseline" : "";
}

function environmentOf(set: HarnessConfiguration): Record<string, string> {
  return { OPENCODE_CONFIG_CONTENT: set.json(config), ...set.env() };
}

function modelsOf({ model, contextWindow, tools = [] }: SettingContext): SettingValue {
  const limit = contextWindow === null ? {} : { limit: { context: contextWindow, output: Math.min(maxOutputTokens, contextWindow) } };
  const sees = tools.length === 0 ? {} : { attachment: true, modalities: { input: ["text", "image"], output: ["text"] } };
  return { [model]: { name: model, reasoning: true, tool_call: true, ...limit, ...sees } };
}

/** What an error event says: its own message, or that of the API's answer inside it. */
function messageOf(event: Record<string, unknown> | null): string | null {
  const error = event?.error;
  if (typeof error !== "object" || error === null) return null;
  const data = "data" in error && typeof error.data === "object" && error.data !== null ? error.data : error;
  if ("message" in data) return String(data.message);
  return "name" in error ? String(error.name) : null;
}
