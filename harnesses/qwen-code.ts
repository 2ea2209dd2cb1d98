/**
 * Qwen Code (npm `@qwen-code/qwen-code`), over the Chat dialect. Our settings turn off what would ask the model about the
 * run itself (is it going in circles? what is worth remembering?), and what would try again by itself.
 */
import type { Harness } from "./harness.ts";
import { checkedInstruction } from "./instruction.ts";
import { lastLine } from "./last-line.ts";
import { HarnessConfiguration, ownHome, type Setting, toolServers, toolTimeoutSeconds, withTools } from "./settings.ts";
import { wordForWord } from "./word-for-word.ts";

const packageName = "@qwen-code/qwen-code";
const version = "0.24.4";

/** Sent as `max_tokens`; the proxy's own limits decide what is really sampled. */
const maxOutputTokens = 8192;

const folder = ".qwen";
const settingsFile = `${folder}/settings.json`;

const settings: Setting[] = [
  { place: "argv", key: "--auth-type", value: "openai", about: "address", why: "Chat Completions", only: "run" },
  { place: "argv", key: "--yolo", value: true, about: "agent", why: "no person is there to ask; the sandbox is the boundary", only: "run" },
  { place: "argv", key: "--output-format", value: "text", about: "run", why: "its answer and its last error are read", only: "run" },
  ownHome,
  {
    place: "env",
    key: "OPENAI_BASE_URL",
    value: ({ baseUrl }) => `${baseUrl}/v1`,
    says: "the proxy",
    about: "address",
    why: "its calls are recorded",
  },
  {
    place: "env",
    key: "OPENAI_API_KEY",
    value: ({ apiKey }) => apiKey,
    says: "the session's key",
    about: "address",
    why: "it says whose calls they are",
  },
  { place: "env", key: "OPENAI_MODEL", value: ({ model }) => model, says: "the run's model", about: "address", why: "the policy" },
  {
    place: "env",
    key: "QWEN_HOME",
    value: ({ home }) => `${home}/${folder}`,
    says: "a folder of the rollout's home",
    about: "run",
    why: "no settings of a person are read",
  },
  {
    place: "env",
    key: "QWEN_CODE_SYSTEM_SETTINGS_PATH",
    value: ({ home }) => `${home}/${settingsFile}`,
    says: "the file below, as the system's settings too",
    about: "run",
    why: "settings of the task's own folder stand above the user's",
  },
  {
    place: "env",
    key: "QWEN_CODE_MAX_OUTPUT_TOKENS",
    value: String(maxOutputTokens),
    about: "agent",
    why: "its own limit may be more than the whole context of the engine",
  },
  { place: "env", key: "QWEN_CODE_SUPPRESS_YOLO_WARNING", value: "1", about: "run", why: "its last lines are read for errors" },
  {
    place: settingsFile,
    key: "privacy.usageStatisticsEnabled",
    value: false,
    about: "run",
    why: "nothing is asked of the network, or sent to it, but calls",
  },
  {
    place: settingsFile,
    key: "telemetry.enabled",
    value: false,
    about: "run",
    why: "nothing is asked of the network, or sent to it, but calls",
  },
  { place: settingsFile, key: "general.enableAutoUpdate", value: false, about: "run", why: "the version is pinned" },
  ...["enableManagedAutoMemory", "enableManagedAutoDream"].map(
    (key): Setting => ({
      place: settingsFile,
      key: `memory.${key}`,
      value: false,
      about: "agent",
      why: "it would send an agent of its own after each finished turn, to remember what its user likes",
    }),
  ),
  { place: settingsFile, key: "security.auth.selectedType", value: "openai", about: "address", why: "it would ask how to log in" },
  {
    place: settingsFile,
    key: "modelProviders.openai",
    value: [],
    about: "address",
    why: "a list in the task's own folder may give the model another address; said here, that one does not count",
  },
  { place: settingsFile, key: "model.name", value: ({ model }) => model, says: "the run's model", about: "address", why: "the policy" },
  {
    place: settingsFile,
    key: "model.skipLoopDetection",
    value: true,
    about: "agent",
    why: "it would stop an agent that it takes to go in circles",
    only: "run",
  },
  {
    place: settingsFile,
    key: "model.skipNextSpeakerCheck",
    value: true,
    about: "agent",
    why: "it would ask the model whose turn it is",
    only: "run",
  },
  {
    place: settingsFile,
    key: "model.generationConfig.timeout",
    // No limit is refused.
    value: 3_600_000,
    about: "run",
    why: "its own waits are minutes; the proxy's keep-alives and errors say all that there is to say",
    only: "run",
  },
  {
    place: settingsFile,
    key: "model.generationConfig.maxRetries",
    value: 0,
    about: "run",
    why: "the proxy tries again where that is right",
    only: "run",
  },
  {
    place: settingsFile,
    key: "model.generationConfig.streamIdleTimeoutMs",
    value: 0,
    about: "run",
    why: "the proxy keeps the stream alive",
    only: "run",
  },
  {
    place: settingsFile,
    key: "mcpServers",
    value: toolServers(({ url }) => ({ httpUrl: url, trust: true, alwaysLoadTools: true, timeout: toolTimeoutSeconds * 1000 })),
    says: "the task's servers of tools, each with `trust` and `alwaysLoadTools`",
    about: "agent",
    why: "it gets their tools; it would hide them behind a tool that searches for tools, which changes the head of the prompt",
    only: "run",
  },
  {
    place: "env",
    key: "QWEN_CODE_LEGACY_MCP_BLOCKING",
    value: withTools("1"),
    says: "`1`, where the task has servers of tools",
    about: "agent",
    why: "it would begin without tools that come late",
    only: "run",
  },
  {
    place: settingsFile,
    key: "model.generationConfig.modalities",
    value: withTools({ image: true }),
    says: "`image: true`, where the task has servers of tools",
    about: "agent",
    why: "it would leave out the pictures of their results",
    only: "run",
  },
  {
    place: settingsFile,
    key: "model.generationConfig.contextWindowSize",
    value: ({ contextWindow }) => contextWindow ?? undefined,
    says: "the engine's window, where it is known",
    about: "agent",
    why: "it clears old tool results and compacts by the window that there is",
  },
];

export const qwenCode: Harness = {
  name: "qwen-code",
  title: "Qwen Code",
  dialects: ["openai-chat"],
  packages: { [packageName]: version },
  version,
  makes: ["sub_agent", "compaction"],
  commands: ["qwen"],
  tools: true,
  skills: `${folder}/skills`,
  sight: `Qwen Code hands them on by model.generationConfig.modalities: {"image": true} in ~/${settingsFile}`,

  program: () => `node_modules/${packageName}/cli.js`,
  unneeded: () => ["web-shell", "examples", "bundled"].map((folder) => `node_modules/${packageName}/${folder}`),

  settings,

  launch(context) {
    const set = new HarnessConfiguration(settings, "run", context);
    const { prompt, files } = wordForWord(checkedInstruction(context.instruction), folder);
    return {
      // Behind an equals sign nothing is taken for an option.
      argv: [`${context.pack}/bin/qwen-code`, ...set.argv(), `--prompt=${prompt}`],
      env: set.env(),
      files: { ...files, [settingsFile]: set.json(settingsFile) },
    };
  },

  configure(context) {
    const set = new HarnessConfiguration(settings, "record", context);
    return { env: set.env(), files: { [settingsFile]: set.json(settingsFile) } };
  },

  end({ exit_code, stderr }) {
    return exit_code === 0 ? { failed: false, message: null } : { failed: true, message: lastLine(stderr) };
  },
};
