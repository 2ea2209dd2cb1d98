/**
 * opencode (npm `opencode-ai`), over the Chat dialect: one native binary for each platform. It reads its message from
 * standard input, for on the command line a word with a space arrives in quotation marks and one that is a number ends it.
 */
import type { Harness, HarnessContext, PackPlatform } from "./harness.ts";
import { checkedInstruction } from "./instruction.ts";
import { lastJsonLine } from "./last-json-line.ts";
import { lastLine } from "./last-line.ts";

const packageName = "opencode-ai";
const version = "1.18.33";
const provider = "alidade";
const input = ".alidade-instruction";

/** Sent as `max_tokens`; the proxy's own limits decide what is really sampled. */
const maxOutputTokens = 8192;

export const opencode: Harness = {
  name: "opencode",
  title: "opencode",
  dialects: ["openai-chat"],
  packages: { [packageName]: version },
  version,
  makes: ["sub_agent"],
  commands: ["opencode"],

  // The baseline build runs on every x64 CPU, the other one on those of the last ten years.
  program: (platform) => `node_modules/opencode-${platform}${baseline(platform)}/bin/opencode`,
  unneeded: (platform) => (baseline(platform) === "" ? [] : [`node_modules/opencode-${platform}`]),
  input,

  launch(context) {
    return {
      // A title of our own saves the call that would ask the model for one.
      argv: [`${context.pack}/bin/opencode`, "run", "--format", "json", "--title", "task"],
      env: { HOME: context.home, ...environment(context) },
      files: { [input]: checkedInstruction(context.instruction), ...nothingToInstall },
    };
  },

  configure(context) {
    return { env: environment(context), files: {} };
  },

  end({ exit_code, stdout, stderr }) {
    const error = lastJsonLine(stdout, (line) => line.includes('"type":"error"'));
    if (exit_code === 0 && error === null) return { failed: false, message: null };
    return { failed: true, message: messageOf(error) ?? lastLine(stderr) };
  },
};

const folder = ".config/opencode";

/**
 * At every start opencode would fetch the SDK for plugins (20 MB) from a package registry into its folder, and wait for
 * it. There are no plugins here and no registry; it takes what these files name for installed.
 */
const sdk = { dependencies: { "@opencode-ai/plugin": version } };
const nothingToInstall = {
  [`${folder}/package.json`]: json(sdk),
  [`${folder}/package-lock.json`]: json({ packages: { "": sdk } }),
  [`${folder}/node_modules/.placeholder`]: "",
};

function baseline(platform: PackPlatform): string {
  return platform.endsWith("-x64") ? "-baseline" : "";
}

function environment(context: Omit<HarnessContext, "instruction" | "pack">): Record<string, string> {
  return {
    // Not as a file: an opencode.json in the task's own folder would stand above it.
    OPENCODE_CONFIG_CONTENT: JSON.stringify(config(context)),
    XDG_DATA_HOME: `${context.home}/.local/share`,
    XDG_STATE_HOME: `${context.home}/.local/state`,
    XDG_CACHE_HOME: `${context.home}/.cache`,
    OPENCODE_DISABLE_AUTOUPDATE: "1",
    OPENCODE_DISABLE_MODELS_FETCH: "1",
    OPENCODE_DISABLE_LSP_DOWNLOAD: "1",
  };
}

function config(context: Pick<HarnessContext, "baseUrl" | "apiKey" | "model" | "contextWindow">) {
  const { contextWindow } = context;
  const limit = contextWindow === null ? {} : { limit: { context: contextWindow, output: Math.min(maxOutputTokens, contextWindow) } };
  return {
    autoupdate: false,
    share: "disabled",
    permission: "allow",
    // A compaction would cut the conversation in two; a full context is the engine's to say.
    compaction: { auto: false },
    model: `${provider}/${context.model}`,
    small_model: `${provider}/${context.model}`,
    provider: {
      [provider]: {
        npm: "@ai-sdk/openai-compatible",
        name: provider,
        options: { baseURL: `${context.baseUrl}/v1`, apiKey: context.apiKey, timeout: false, headerTimeout: false, chunkTimeout: false },
        models: {
          // Declared as a reasoning model, for otherwise its reasoning may be dropped from the history.
          [context.model]: {
            name: context.model,
            reasoning: true,
            tool_call: true,
            ...limit,
          },
        },
      },
    },
  };
}

/** What an error event says: its own message, or that of the API's answer inside it. */
function messageOf(event: Record<string, unknown> | null): string | null {
  const error = event?.error;
  if (typeof error !== "object" || error === null) return null;
  const data = "data" in error && typeof error.data === "object" && error.data !== null ? error.data : error;
  if ("message" in data) return String(data.message);
  return "name" in error ? String(error.name) : null;
}

function json(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}
