/**
 * Pi (npm `@earendil-works/pi-coding-agent`), over the Chat dialect. Provider and model are chosen in its settings and
 * not by flags: `--model` is a pattern to Pi, and a name such as `Qwen/Qwen3-8B:free` would be taken apart.
 */
import type { Harness, HarnessEnd } from "./harness.ts";
import { checkedInstruction } from "./instruction.ts";
import { lastJsonLine, lastLine } from "./last-line.ts";
import { goesOn, HarnessConfiguration, keepsNone, ownHome, type Setting, type SettingContext, type SettingValue } from "./settings.ts";

const packageName = "@earendil-works/pi-coding-agent";
const version = "0.87.1";
const provider = "alidade";

/** Pi sends it as `max_completion_tokens`; the proxy's own limits decide what is really sampled. */
const maxOutputTokens = 8192;

const folder = ".pi/agent";
const modelsFile = `${folder}/models.json`;
const settingsFile = `${folder}/settings.json`;

const provided = (key: string, value: Setting["value"], why: string, says?: string): Setting => ({
  place: modelsFile,
  key: `providers.${provider}.${key}`,
  value,
  about: "address",
  why,
  ...(says && { says }),
});

const settings: Setting[] = [
  {
    place: "argv",
    key: "--print",
    value: true,
    about: "run",
    why: "without a terminal; the answer alone is printed, and the exit code is true",
    only: "run",
  },
  keepsNone("--no-session"),
  goesOn("--continue"),
  { place: "env", key: "PI_OFFLINE", value: "1", about: "run", why: "nothing is asked of the network, or sent to it, but calls" },
  { place: "env", key: "PI_TELEMETRY", value: "0", about: "run", why: "nothing is asked of the network, or sent to it, but calls" },
  { place: "env", key: "PI_SKIP_VERSION_CHECK", value: "1", about: "run", why: "the version is pinned" },
  ownHome,
  {
    place: "env",
    key: "PI_CODING_AGENT_DIR",
    value: ({ home }) => `${home}/${folder}`,
    says: "a folder of the rollout's home",
    about: "run",
    why: "no settings of a person are read",
  },
  provided("baseUrl", ({ baseUrl }) => `${baseUrl}/v1`, "its calls are recorded", "the proxy"),
  provided("api", "openai-completions", "its name for Chat Completions"),
  provided("apiKey", ({ apiKey }) => apiKey, "it says whose calls they are", "the session's key"),
  {
    ...provided(
      "models",
      (context) => [modelOf(context)],
      "otherwise it drops thoughts from its history; its own limit of output tokens may be more than the engine has",
    ),
    says: `the run's model, with \`reasoning: true\`, the engine's window where it is known, and ${maxOutputTokens} output tokens at most`,
    about: "agent",
  },
  { place: settingsFile, key: "defaultProvider", value: provider, about: "address", why: "the provider above" },
  {
    place: settingsFile,
    key: "defaultModel",
    value: ({ model }) => model,
    says: "the run's model",
    about: "address",
    why: "to `--model` a name is a pattern",
  },
  { place: settingsFile, key: "retry.enabled", value: false, about: "run", why: "the proxy tries again where that is right", only: "run" },
  {
    place: settingsFile,
    key: "compaction.enabled",
    value: false,
    about: "agent",
    why: "a compaction cuts the conversation in two; a full context is the engine's to say",
    only: "run",
  },
  { place: settingsFile, key: "httpIdleTimeoutMs", value: 0, about: "run", why: "the proxy keeps the connection alive", only: "run" },
];

export const pi: Harness = {
  name: "pi",
  title: "Pi",
  dialects: ["openai-chat"],
  packages: { [packageName]: version },
  version,
  makes: [],
  commands: ["pi"],
  resumes: true,
  skills: `${folder}/skills`,
  sight: `Pi hands them on by input: ["text", "image"] of the model, in ~/${modelsFile}`,

  program: () => `node_modules/${packageName}/dist/bundle/cli.js`,

  settings,

  launch(context) {
    const set = new HarnessConfiguration(settings, "run", context);
    return {
      argv: [`${context.pack}/bin/pi`, ...set.argv(), "--", checkedInstruction(asMessage(context.instruction))],
      env: set.env(),
      files: { [modelsFile]: set.json(modelsFile), [settingsFile]: set.json(settingsFile) },
    };
  },

  configure(context) {
    const set = new HarnessConfiguration(settings, "record", context);
    return { env: set.env(), files: { [modelsFile]: set.json(modelsFile), [settingsFile]: set.json(settingsFile) } };
  },

  end({ exit_code, stdout, stderr }) {
    if (exit_code !== 0) return { failed: true, message: lastLine(stderr) };
    return errorInEvents(stdout) ?? { failed: false, message: null };
  },
};

/** Pi reads `@name` in front as a file to attach, also after `--`; a line break in front makes it text. */
function asMessage(instruction: string): string {
  return instruction.startsWith("@") ? `\n${instruction}` : instruction;
}

function modelOf({ model, contextWindow }: SettingContext): SettingValue {
  const limits =
    contextWindow === null ? { maxTokens: maxOutputTokens } : { contextWindow, maxTokens: Math.min(maxOutputTokens, contextWindow) };
  return { id: model, reasoning: true, ...limits };
}

/** JSON mode always exits with 0: the last assistant message shows how the run ended. */
function errorInEvents(stdout: string): HarnessEnd | null {
  const event = lastJsonLine(stdout, (line) => line.includes('"stopReason"') && line.includes('"message_end"'));
  const message = event?.message;
  if (typeof message !== "object" || message === null || !("stopReason" in message)) return null;
  if (message.stopReason !== "error" && message.stopReason !== "aborted") return null;
  return { failed: true, message: "errorMessage" in message ? String(message.errorMessage) : String(message.stopReason) };
}
