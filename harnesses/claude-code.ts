/**
 * Claude Code (npm `@anthropic-ai/claude-code`), over the Messages dialect. Our settings switch off what breaks the common
 * prefix of two turns: cache markers that move, a billing line with a changing hash, tools that are loaded later, and
 * background work.
 */
import type { Harness } from "./harness.ts";
import { asText, checkedInstruction } from "./instruction.ts";
import { lastJsonLine, lastLine } from "./last-line.ts";
import { goesOn, HarnessConfiguration, ownHome, type Setting, type SettingContext, toolServers } from "./settings.ts";

const packageName = "@anthropic-ai/claude-code";
const version = "2.1.329";

/** The tools that a task in a sandbox needs. */
const tools = ["Bash", "Edit", "Read", "Write"];

/** The others that this version offers in a headless run. */
export const claudeToolsLeftOut = [
  ...["Agent", "CronCreate", "CronDelete", "CronList", "EnterWorktree", "ExitWorktree", "ListAgents", "Monitor", "NotebookEdit"],
  ...["ReportFindings", "ScheduleWakeup", "SendMessage", "Skill", "TaskStop", "WebFetch", "WebSearch", "Workflow"],
];

const maxOutputTokens = 8192;

/** It has no setting for this limit. */
const mostPictureBytes = 512_000;

/** Below HOME, and no argument: what stands there holds the key. */
const ownSettings = ".alidade-settings.json";
const toolsFile = ".alidade-mcp.json";
const claudeFile = ".claude/.claude.json";

/** Variables of the run that hold also against the settings of the task's own folder, which stand above those of the process. */
const addresses: Setting[] = [
  {
    place: "env",
    key: "ANTHROPIC_BASE_URL",
    value: ({ baseUrl }) => baseUrl,
    says: "the proxy",
    about: "address",
    why: "its calls are recorded",
  },
  {
    place: "env",
    key: "ANTHROPIC_API_KEY",
    value: ({ apiKey }) => apiKey,
    says: "the session's key",
    about: "address",
    why: "it says whose calls they are",
  },
  ...[
    "ANTHROPIC_MODEL",
    "ANTHROPIC_DEFAULT_OPUS_MODEL",
    "ANTHROPIC_DEFAULT_SONNET_MODEL",
    "ANTHROPIC_DEFAULT_HAIKU_MODEL",
    "CLAUDE_CODE_SUBAGENT_MODEL",
  ].map(
    (key): Setting => ({
      place: "env",
      key,
      value: ({ model }) => model,
      says: "the run's model",
      about: "address",
      why: "each name of a model that it knows leads to the policy, so that sub-agents and side calls arrive too",
    }),
  ),
  {
    place: "env",
    key: "CLAUDE_CONFIG_DIR",
    value: ({ home }) => `${home}/.claude`,
    says: "a folder of the rollout's home",
    about: "run",
    why: "no settings of a person are read",
  },
  {
    place: "env",
    key: "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
    value: "1",
    about: "run",
    why: "no telemetry, no error reports, no look-ups at the vendor",
  },
  { place: "env", key: "DISABLE_AUTOUPDATER", value: "1", about: "run", why: "the version is pinned" },
  {
    place: "env",
    key: "CLAUDE_CODE_ATTRIBUTION_HEADER",
    value: "0",
    about: "agent",
    why: "its hash differs between the conversations of one run, and it stands at the very head of the prompt",
  },
  {
    place: "env",
    key: "CLAUDE_CODE_MAX_CONTEXT_TOKENS",
    value: ({ contextWindow }) => contextWindow?.toString(),
    says: "the engine's window, where it is known",
    about: "agent",
    why: "it plans by the window that there is",
  },
];

const settings: Setting[] = [
  ...addresses,
  ownHome,
  { place: "argv", key: "--print", value: true, about: "run", why: "without a terminal", only: "run" },
  { place: "argv", key: "--output-format", value: "json", about: "run", why: "its last line says how it ended", only: "run" },
  {
    place: "argv",
    key: "--dangerously-skip-permissions",
    value: true,
    about: "agent",
    why: "no person is there to ask; the sandbox is the boundary",
    only: "run",
  },
  {
    place: "argv",
    key: "--settings",
    value: ({ home }) => `${home}/${ownSettings}`,
    says: "a file with the variables above that `record` has too",
    about: "address",
    why: "variables in the settings of the task's own folder would stand above those of the process",
    only: "run",
  },
  {
    place: "argv",
    key: "--tools",
    value: ({ skills }) => [...tools, ...(skills ? ["Skill"] : [])].join(","),
    says: `\`${tools.join(",")}\`, and \`Skill\` for a task with skills`,
    about: "agent",
    why: `a task in a sandbox needs no more, and the first prompt is a quarter as long; left out are ${claudeToolsLeftOut.join(", ")}. Without \`Agent\` there are no sub-agents`,
    only: "run",
  },
  {
    place: "argv",
    key: "--mcp-config",
    value: ({ home, tools = [] }) => (tools.length === 0 ? undefined : `${home}/${toolsFile}`),
    says: "a file with the task's servers of tools",
    about: "agent",
    why: "it gets their tools",
    only: "run",
  },
  {
    place: "argv",
    key: "--strict-mcp-config",
    value: ({ tools = [] }) => (tools.length === 0 ? undefined : true),
    says: "given, where the task has servers of tools",
    about: "agent",
    why: "no other servers are started",
    only: "run",
  },
  goesOn("--continue"),
  {
    place: toolsFile,
    key: "mcpServers",
    value: toolServers(({ url }) => ({ type: "http", url })),
    says: "the task's servers of tools",
    about: "agent",
    why: "it gets their tools",
    only: "run",
  },
  {
    place: "env",
    key: "IS_SANDBOX",
    value: "1",
    about: "run",
    why: "as root it refuses to work without approvals, unless this says that it is in a sandbox",
    only: "run",
  },
  {
    place: "env",
    key: "CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS",
    value: "1",
    about: "agent",
    why: "no fields that only the vendor's service understands, such as its clearing of old tool results",
    only: "run",
  },
  {
    place: "env",
    key: "DISABLE_PROMPT_CACHING",
    value: "1",
    about: "run",
    why: "its cache markers move from turn to turn, and the engine caches prefixes without them",
    only: "run",
  },
  {
    place: "env",
    key: "DISABLE_AUTO_COMPACT",
    value: "1",
    about: "agent",
    why: "a compaction cuts the conversation in two; a full context is the engine's to say",
    only: "run",
  },
  {
    place: "env",
    key: "ENABLE_TOOL_SEARCH",
    value: "false",
    about: "agent",
    why: "tools that are loaded later change the head of the prompt",
    only: "run",
  },
  {
    place: "env",
    key: "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS",
    value: "1",
    about: "agent",
    why: "what runs in the background changes the prompt at a time of its own",
    only: "run",
  },
  {
    place: "env",
    key: "CLAUDE_CODE_DISABLE_BUNDLED_SKILLS",
    value: "1",
    about: "agent",
    why: "their list makes the prompt longer; skills of the task are listed without them",
    only: "run",
  },
  {
    place: "env",
    key: "CLAUDE_CODE_DISABLE_WORKFLOWS",
    value: "1",
    about: "agent",
    why: "they start sub-agents in the background",
    only: "run",
  },
  { place: "env", key: "CLAUDE_CODE_MAX_RETRIES", value: "0", about: "run", why: "the proxy tries again where that is right", only: "run" },
  ...["API_TIMEOUT_MS", "CLAUDE_STREAM_IDLE_TIMEOUT_MS", "CLAUDE_BYTE_STREAM_IDLE_TIMEOUT_MS"].map(
    (key): Setting => ({
      place: "env",
      key,
      value: "3600000",
      about: "run",
      why: "the proxy keeps the stream alive, so an hour of silence is a fault",
      only: "run",
    }),
  ),
  {
    place: "env",
    key: "CLAUDE_CODE_MAX_OUTPUT_TOKENS",
    value: ({ contextWindow }) =>
      String(contextWindow === null ? maxOutputTokens : Math.min(maxOutputTokens, Math.ceil(contextWindow / 4))),
    says: `${maxOutputTokens}, or a quarter of the engine's window where that is less`,
    about: "agent",
    why: "it requests 32 000 tokens by default, more than the whole context of many engines",
    only: "run",
  },
  {
    place: claudeFile,
    key: "hasCompletedOnboarding",
    value: true,
    about: "run",
    why: "it spares a person its questions at the first start",
    only: "record",
  },
  {
    place: claudeFile,
    key: "customApiKeyResponses",
    // It knows a key by its last twenty characters.
    value: ({ apiKey }) => ({ approved: [apiKey.slice(-20)], rejected: [] }),
    says: "the session's key is approved",
    about: "run",
    why: "it would ask the person about it",
    only: "record",
  },
];

export const claudeCode: Harness = {
  name: "claude-code",
  title: "Claude Code",
  dialects: ["anthropic-messages"],
  packages: { [packageName]: version },
  version,
  // Without the Agent tool there are no sub-agents, and compaction is switched off (settings).
  makes: [],
  commands: ["claude"],
  tools: true,
  skills: ".claude/skills",
  resumes: true,
  sight: `Claude Code hands on only pictures of at most ${mostPictureBytes} bytes as they are, and compresses larger ones: show less on the screen, or a smaller one`,

  program: (platform) => `node_modules/${packageName}-${platform}/claude`,

  settings,

  launch(context) {
    const set = new HarnessConfiguration(settings, "run", context);
    return {
      argv: [`${context.pack}/bin/claude-code`, ...set.argv(), "--", checkedInstruction(asText(context.instruction))],
      env: set.env(),
      files: {
        [ownSettings]: JSON.stringify({ env: addressesOf(context) }),
        ...(context.tools?.length && { [toolsFile]: set.json(toolsFile) }),
      },
    };
  },

  configure(context) {
    return { env: addressesOf(context), files: { [claudeFile]: new HarnessConfiguration(settings, "record", context).json(claudeFile) } };
  },

  end({ exit_code, stdout, stderr }) {
    const result = lastJsonLine(stdout, (line) => line.includes('"type":"result"'));
    const failed = exit_code !== 0 || result?.is_error === true;
    if (!failed) return { failed, message: null };
    return { failed, message: lastLine(typeof result?.result === "string" ? result.result : stderr) };
  },
};

function addressesOf(context: SettingContext): Record<string, string> {
  return new HarnessConfiguration(addresses, "record", context).env();
}
