/**
 * Gemini CLI (npm `@google/gemini-cli`), over Google's own dialect. Its settings turn off what would ask the model about
 * the run itself (is it going in circles?), and what would try again by itself.
 */
import type { Harness, HarnessContext } from "./harness.ts";
import { checkedInstruction } from "./instruction.ts";
import { lastLine } from "./last-line.ts";
import { wordForWord } from "./word-for-word.ts";

const packageName = "@google/gemini-cli";
const version = "0.61.0";

export const geminiCli: Harness = {
  name: "gemini-cli",
  title: "Gemini CLI",
  dialects: ["google-generate-content"],
  packages: { [packageName]: version },
  version,
  makes: ["sub_agent"],
  commands: ["gemini"],
  fixedWindow: 1_048_576,

  program: () => `node_modules/${packageName}/bundle/gemini.js`,

  launch(context) {
    const { prompt, files } = wordForWord(checkedInstruction(context.instruction), folder);
    return {
      argv: [
        `${context.pack}/bin/gemini-cli`,
        "--yolo",
        "--skip-trust",
        "--output-format",
        "text",
        "--model",
        context.model,
        // It knows no `--` in front of words; behind an equals sign nothing is taken for an option.
        `--prompt=${prompt}`,
      ],
      env: { HOME: context.home, ...pointedAtUs(context) },
      files: {
        ...files,
        [`${folder}/settings.json`]: json({
          ...settings(context),
          // The proxy tries again where that is right, and an answer of ours is never to be judged by another call.
          general: { ...settings(context).general, maxAttempts: 1, retryFetchErrors: false },
          model: { ...settings(context).model, disableLoopDetection: true },
        }),
      },
    };
  },

  configure(context) {
    return { env: pointedAtUs(context), files: { [`${folder}/settings.json`]: json(settings(context)) } };
  },

  end({ exit_code, stderr }) {
    const last = lastLine(stderr);
    // A stream that broke off, and an empty answer, end it with exit code 0 and this line.
    if (exit_code === 0 && !last?.startsWith("[ERROR] ")) return { failed: false, message: null };
    return { failed: true, message: last };
  },
};

const folder = ".gemini";

function pointedAtUs(context: Pick<HarnessContext, "baseUrl" | "apiKey" | "model" | "home">): Record<string, string> {
  return {
    GOOGLE_GEMINI_BASE_URL: context.baseUrl,
    GEMINI_API_KEY: context.apiKey,
    GEMINI_MODEL: context.model,
    GEMINI_CLI_HOME: context.home,
    // Without a terminal, Gemini CLI cannot ask whether to trust the task's folder and its variables.
    GEMINI_CLI_TRUST_WORKSPACE: "true",
  };
}

function settings(context: Pick<HarnessContext, "model">) {
  return {
    privacy: { usageStatisticsEnabled: false },
    telemetry: { enabled: false },
    general: { disableAutoUpdate: true, enableAutoUpdate: false },
    model: { name: context.model },
    security: { auth: { selectedType: "gemini-api-key" } },
  };
}

function json(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}
