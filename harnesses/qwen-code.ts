/**
 * Qwen Code (npm `@qwen-code/qwen-code`), over the Chat dialect. Its settings turn off what would ask the model about the
 * run itself (is it going in circles? what is worth remembering?), and what would try again by itself.
 */
import type { Harness, HarnessContext } from "./harness.ts";
import { checkedInstruction } from "./instruction.ts";
import { lastLine } from "./last-line.ts";
import { wordForWord } from "./word-for-word.ts";

const packageName = "@qwen-code/qwen-code";
const version = "0.24.4";

/** Sent as `max_tokens`; the proxy's own limits decide what is really sampled. */
const maxOutputTokens = 8192;

/** Its own waits are minutes; the proxy's keep-alives and errors say all that there is to say (an hour: no limit is refused). */
const patienceMs = 3_600_000;

export const qwenCode: Harness = {
  name: "qwen-code",
  title: "Qwen Code",
  dialects: ["openai-chat"],
  packages: { [packageName]: version },
  version,
  makes: ["sub_agent", "compaction"],
  commands: ["qwen"],

  program: () => `node_modules/${packageName}/cli.js`,
  unneeded: () => ["web-shell", "examples", "bundled"].map((folder) => `node_modules/${packageName}/${folder}`),

  launch(context) {
    const { prompt, files } = wordForWord(checkedInstruction(context.instruction), folder);
    return {
      argv: [
        `${context.pack}/bin/qwen-code`,
        "--auth-type",
        "openai",
        "--yolo",
        "--output-format",
        "text",
        // Behind an equals sign nothing is taken for an option.
        `--prompt=${prompt}`,
      ],
      env: { HOME: context.home, ...pointedAtUs(context) },
      files: {
        ...files,
        [`${folder}/settings.json`]: json(
          settings(context, {
            skipLoopDetection: true,
            skipNextSpeakerCheck: true,
            // The proxy tries again where that is right.
            generationConfig: { timeout: patienceMs, maxRetries: 0, streamIdleTimeoutMs: 0 },
          }),
        ),
      },
    };
  },

  configure(context) {
    return { env: pointedAtUs(context), files: { [`${folder}/settings.json`]: json(settings(context, {})) } };
  },

  end({ exit_code, stderr }) {
    return exit_code === 0 ? { failed: false, message: null } : { failed: true, message: lastLine(stderr) };
  },
};

const folder = ".qwen";

function pointedAtUs(context: Pick<HarnessContext, "baseUrl" | "apiKey" | "model" | "home">): Record<string, string> {
  return {
    OPENAI_BASE_URL: `${context.baseUrl}/v1`,
    OPENAI_API_KEY: context.apiKey,
    OPENAI_MODEL: context.model,
    QWEN_HOME: `${context.home}/${folder}`,
    // As the system's settings too, for those of the task's own folder stand above the user's.
    QWEN_CODE_SYSTEM_SETTINGS_PATH: `${context.home}/${folder}/settings.json`,
    QWEN_CODE_MAX_OUTPUT_TOKENS: String(maxOutputTokens),
    QWEN_CODE_SUPPRESS_YOLO_WARNING: "1",
  };
}

function settings(context: Pick<HarnessContext, "contextWindow" | "model">, unattended: Record<string, unknown>) {
  const { contextWindow } = context;
  const { generationConfig, ...model } = unattended;
  return {
    privacy: { usageStatisticsEnabled: false },
    telemetry: { enabled: false },
    general: { enableAutoUpdate: false },
    // It would send its own agent after each finished turn, to remember what its user likes.
    memory: { enableManagedAutoMemory: false, enableManagedAutoDream: false },
    security: { auth: { selectedType: "openai" } },
    // Said, so that a list in the task's own folder does not count: it may give our model another address.
    modelProviders: { openai: [] },
    model: {
      name: context.model,
      ...model,
      generationConfig: {
        ...(generationConfig as Record<string, unknown> | undefined),
        ...(contextWindow === null ? {} : { contextWindowSize: contextWindow }),
      },
    },
  };
}

function json(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}
