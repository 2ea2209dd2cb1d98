/**
 * Claude Code (npm `@anthropic-ai/claude-code`), over the Messages dialect. All settings are environment variables. The
 * lean ones switch off what breaks the common prefix of two turns: cache markers that move, a billing line with a changing
 * hash, tools that are loaded later, and background work.
 */
import type { Harness, HarnessContext } from "./harness.ts";
import { asText, checkedInstruction } from "./instruction.ts";
import { lastJsonLine } from "./last-json-line.ts";
import { lastLine } from "./last-line.ts";

const packageName = "@anthropic-ai/claude-code";
const version = "2.1.329";

/** The tools that a task in a sandbox needs; the twelve others make the first prompt twice as long. */
const tools = "Bash,Edit,Read,Write";

const maxOutputTokens = 8192;

/** Below HOME, and no argument: what stands there holds the key. */
const settings = ".alidade-settings.json";

export const claudeCode: Harness = {
  name: "claude-code",
  title: "Claude Code",
  dialects: ["anthropic-messages"],
  packages: { [packageName]: version },
  version,
  // Without the Agent tool there are no sub-agents, and compaction is switched off.
  makes: [],
  commands: ["claude"],

  program: (platform) => `node_modules/${packageName}-${platform}/claude`,

  launch(context) {
    return {
      argv: [
        `${context.pack}/bin/claude-code`,
        "--print",
        "--output-format",
        "json",
        "--dangerously-skip-permissions",
        // Variables in the settings of the task's own folder would stand above those of the process.
        "--settings",
        `${context.home}/${settings}`,
        "--tools",
        tools,
        "--",
        checkedInstruction(asText(context.instruction)),
      ],
      env: { HOME: context.home, ...pointedAtUs(context), ...lean, ...limits(context) },
      files: { [settings]: JSON.stringify({ env: pointedAtUs(context) }) },
    };
  },

  configure(context) {
    return {
      env: pointedAtUs(context),
      files: { ".claude/.claude.json": `${JSON.stringify(acquainted(context.apiKey), null, 2)}\n` },
    };
  },

  end({ exit_code, stdout, stderr }) {
    const result = lastJsonLine(stdout, (line) => line.includes('"type":"result"'));
    const failed = exit_code !== 0 || result?.is_error === true;
    if (!failed) return { failed, message: null };
    return { failed, message: lastLine(typeof result?.result === "string" ? result.result : stderr) };
  },
};

/** Each name of a model that Claude Code knows leads to ours, so that sub-agents and side calls arrive too. */
function pointedAtUs(context: Omit<HarnessContext, "instruction" | "pack">): Record<string, string> {
  return {
    ANTHROPIC_BASE_URL: context.baseUrl,
    ANTHROPIC_API_KEY: context.apiKey,
    ANTHROPIC_MODEL: context.model,
    ANTHROPIC_DEFAULT_OPUS_MODEL: context.model,
    ANTHROPIC_DEFAULT_SONNET_MODEL: context.model,
    ANTHROPIC_DEFAULT_HAIKU_MODEL: context.model,
    CLAUDE_CODE_SUBAGENT_MODEL: context.model,
    CLAUDE_CONFIG_DIR: `${context.home}/.claude`,
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
    DISABLE_AUTOUPDATER: "1",
    // Its hash differs between the conversations of one run, and it stands at the very head of the prompt.
    CLAUDE_CODE_ATTRIBUTION_HEADER: "0",
    ...(context.contextWindow === null ? {} : { CLAUDE_CODE_MAX_CONTEXT_TOKENS: String(context.contextWindow) }),
  };
}

const lean = {
  // As root it refuses to work without approvals, unless a variable says that this is a sandbox.
  IS_SANDBOX: "1",
  CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS: "1",
  DISABLE_PROMPT_CACHING: "1",
  DISABLE_AUTO_COMPACT: "1",
  ENABLE_TOOL_SEARCH: "false",
  CLAUDE_CODE_DISABLE_BACKGROUND_TASKS: "1",
  CLAUDE_CODE_DISABLE_BUNDLED_SKILLS: "1",
  CLAUDE_CODE_DISABLE_WORKFLOWS: "1",
  // The proxy tries again where that is right; it keeps the stream alive, so an hour of silence is a fault.
  CLAUDE_CODE_MAX_RETRIES: "0",
  API_TIMEOUT_MS: "3600000",
  CLAUDE_STREAM_IDLE_TIMEOUT_MS: "3600000",
  CLAUDE_BYTE_STREAM_IDLE_TIMEOUT_MS: "3600000",
};

/** It requests 32 000 tokens by default, more than the whole context of many engines. */
function limits(context: Pick<HarnessContext, "contextWindow">): Record<string, string> {
  const tokens = context.contextWindow === null ? maxOutputTokens : Math.min(maxOutputTokens, Math.ceil(context.contextWindow / 4));
  return { CLAUDE_CODE_MAX_OUTPUT_TOKENS: String(tokens) };
}

/** What spares a person its questions at the first start: it knows a key by its last twenty characters. */
function acquainted(apiKey: string) {
  return { hasCompletedOnboarding: true, customApiKeyResponses: { approved: [apiKey.slice(-20)], rejected: [] } };
}
