/**
 * Pi (npm `@earendil-works/pi-coding-agent`), over the Chat dialect. Provider and model are chosen in its settings and
 * not by flags: `--model` is a pattern to Pi, and a name such as `Qwen/Qwen3-8B:free` would be taken apart.
 */
import type { Harness, HarnessContext, HarnessEnd } from "./harness.ts";
import { checkedInstruction } from "./instruction.ts";
import { lastJsonLine } from "./last-json-line.ts";
import { lastLine } from "./last-line.ts";

const packageName = "@earendil-works/pi-coding-agent";
const version = "0.87.1";
const provider = "alidade";

/** Pi sends it as `max_completion_tokens`; the proxy's own limits decide what is really sampled. */
const maxOutputTokens = 8192;

export const pi: Harness = {
  name: "pi",
  title: "Pi",
  dialects: ["openai-chat"],
  packages: { [packageName]: version },
  version,
  makes: [],
  commands: ["pi"],

  program: () => `node_modules/${packageName}/dist/bundle/cli.js`,

  launch(context) {
    return {
      // Text mode: the answer alone on stdout and a true exit code; JSON mode repeats the whole message at every delta.
      argv: [`${context.pack}/bin/pi`, "--print", "--no-session", "--", checkedInstruction(asMessage(context.instruction))],
      env: { ...environment, HOME: context.home, PI_CODING_AGENT_DIR: `${context.home}/${folder}` },
      files: {
        [`${folder}/models.json`]: json(models(context)),
        // The proxy retries where that is right, and a compaction would split the conversation in two.
        [`${folder}/settings.json`]: json({
          ...settings(context),
          retry: { enabled: false },
          compaction: { enabled: false },
          httpIdleTimeoutMs: 0,
        }),
      },
    };
  },

  configure(context) {
    return {
      env: { ...environment, PI_CODING_AGENT_DIR: `${context.home}/${folder}` },
      files: {
        [`${folder}/models.json`]: json(models(context)),
        [`${folder}/settings.json`]: json(settings(context)),
      },
    };
  },

  end({ exit_code, stdout, stderr }) {
    if (exit_code !== 0) return { failed: true, message: lastLine(stderr) };
    return errorInEvents(stdout) ?? { failed: false, message: null };
  },
};

const folder = ".pi/agent";

const environment = { PI_OFFLINE: "1", PI_TELEMETRY: "0", PI_SKIP_VERSION_CHECK: "1" };

/** Pi reads `@name` in front as a file to attach, also after `--`; a line break in front makes it text. */
function asMessage(instruction: string): string {
  return instruction.startsWith("@") ? `\n${instruction}` : instruction;
}

function models(context: Pick<HarnessContext, "baseUrl" | "apiKey" | "model" | "contextWindow">) {
  const { contextWindow } = context;
  const limits =
    contextWindow === null ? { maxTokens: maxOutputTokens } : { contextWindow, maxTokens: Math.min(maxOutputTokens, contextWindow) };
  return {
    providers: {
      [provider]: {
        baseUrl: `${context.baseUrl}/v1`,
        api: "openai-completions",
        apiKey: context.apiKey,
        // Declared as a reasoning model, for otherwise Pi drops reasoning from its history.
        models: [{ id: context.model, reasoning: true, ...limits }],
      },
    },
  };
}

function settings(context: Pick<HarnessContext, "model">) {
  return { defaultProvider: provider, defaultModel: context.model };
}

/** JSON mode always exits with 0: the last assistant message shows how the run ended. */
function errorInEvents(stdout: string): HarnessEnd | null {
  const event = lastJsonLine(stdout, (line) => line.includes('"stopReason"') && line.includes('"message_end"'));
  const message = event?.message;
  if (typeof message !== "object" || message === null || !("stopReason" in message)) return null;
  if (message.stopReason !== "error" && message.stopReason !== "aborted") return null;
  return { failed: true, message: "errorMessage" in message ? String(message.errorMessage) : String(message.stopReason) };
}

function json(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}
