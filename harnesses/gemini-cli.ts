/**
 * Gemini CLI (npm `@google/gemini-cli`), over Google's own dialect. Our settings turn off what would ask the model about
 * the run itself (is it going in circles?), and what would try again by itself.
 */
import type { Harness } from "./harness.ts";
import { checkedInstruction } from "./instruction.ts";
import { lastLine } from "./last-line.ts";
import { HarnessConfiguration, ownHome, type Setting, toolServers, toolTimeoutSeconds } from "./settings.ts";
import { wordForWord } from "./word-for-word.ts";

const packageName = "@google/gemini-cli";
const version = "0.61.0";

const folder = ".gemini";
const settingsFile = `${folder}/settings.json`;

const settings: Setting[] = [
  { place: "argv", key: "--yolo", value: true, about: "agent", why: "no person is there to ask; the sandbox is the boundary", only: "run" },
  {
    place: "argv",
    key: "--skip-trust",
    value: true,
    about: "run",
    why: "without a terminal it cannot ask whether to trust the task's folder",
    only: "run",
  },
  { place: "argv", key: "--output-format", value: "text", about: "run", why: "its answer and its last error are read", only: "run" },
  { place: "argv", key: "--model", value: ({ model }) => model, says: "the run's model", about: "address", why: "the policy", only: "run" },
  ownHome,
  {
    place: "env",
    key: "GOOGLE_GEMINI_BASE_URL",
    value: ({ baseUrl }) => baseUrl,
    says: "the proxy",
    about: "address",
    why: "its calls are recorded",
  },
  {
    place: "env",
    key: "GEMINI_API_KEY",
    value: ({ apiKey }) => apiKey,
    says: "the session's key",
    about: "address",
    why: "it says whose calls they are",
  },
  { place: "env", key: "GEMINI_MODEL", value: ({ model }) => model, says: "the run's model", about: "address", why: "the policy" },
  {
    place: "env",
    key: "GEMINI_CLI_HOME",
    value: ({ home }) => home,
    says: "the rollout's home",
    about: "run",
    why: "no settings of a person are read",
  },
  {
    place: "env",
    key: "GEMINI_CLI_TRUST_WORKSPACE",
    value: "true",
    about: "run",
    why: "without a terminal it cannot ask whether to trust the task's folder and its variables",
  },
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
  { place: settingsFile, key: "general.disableAutoUpdate", value: true, about: "run", why: "the version is pinned" },
  { place: settingsFile, key: "general.enableAutoUpdate", value: false, about: "run", why: "the version is pinned" },
  {
    place: settingsFile,
    key: "general.maxAttempts",
    value: 1,
    about: "run",
    why: "the proxy tries again where that is right",
    only: "run",
  },
  {
    place: settingsFile,
    key: "general.retryFetchErrors",
    value: false,
    about: "run",
    why: "the proxy tries again where that is right",
    only: "run",
  },
  { place: settingsFile, key: "model.name", value: ({ model }) => model, says: "the run's model", about: "address", why: "the policy" },
  {
    place: settingsFile,
    key: "model.disableLoopDetection",
    value: true,
    about: "agent",
    why: "it would ask the model whether the agent goes in circles, and stop it",
    only: "run",
  },
  {
    place: settingsFile,
    key: "mcpServers",
    value: toolServers(({ url }) => ({ httpUrl: url, trust: true, timeout: toolTimeoutSeconds * 1000 })),
    says: "the task's servers of tools, each with `trust`",
    about: "agent",
    why: "it gets their tools; no person is there to ask",
    only: "run",
  },
  { place: settingsFile, key: "security.auth.selectedType", value: "gemini-api-key", about: "address", why: "it would ask how to log in" },
];

export const geminiCli: Harness = {
  name: "gemini-cli",
  title: "Gemini CLI",
  dialects: ["google-generate-content"],
  packages: { [packageName]: version },
  version,
  makes: ["sub_agent"],
  commands: ["gemini"],
  tools: true,
  skills: ".gemini/skills",
  fixedWindow: 1_048_576,

  program: () => `node_modules/${packageName}/bundle/gemini.js`,

  settings,

  launch(context) {
    const set = new HarnessConfiguration(settings, "run", context);
    const { prompt, files } = wordForWord(checkedInstruction(context.instruction), folder);
    return {
      // It knows no `--` in front of words; behind an equals sign nothing is taken for an option.
      argv: [`${context.pack}/bin/gemini-cli`, ...set.argv(), `--prompt=${prompt}`],
      env: set.env(),
      files: { ...files, [settingsFile]: set.json(settingsFile) },
    };
  },

  configure(context) {
    const set = new HarnessConfiguration(settings, "record", context);
    return { env: set.env(), files: { [settingsFile]: set.json(settingsFile) } };
  },

  end({ exit_code, stderr }) {
    const last = lastLine(stderr);
    // A stream that broke off, and an empty answer, end it with exit code 0 and this line.
    if (exit_code === 0 && !last?.startsWith("[ERROR] ")) return { failed: false, message: null };
    return { failed: true, message: last };
  },
};
