/**
 * Codex CLI (npm `@openai/codex`), over the Responses dialect: the only one it still speaks. The model's name decides
 * its tools; a name that it does not know gets the plain shell tool `exec_command`.
 */
import type { Harness, PackPlatform } from "./harness.ts";
import { checkedInstruction } from "./instruction.ts";
import { lastJsonLine, lastLine } from "./last-line.ts";
import { goesOn, HarnessConfiguration, keepsNone, ownHome, type Setting, toolServers, toolTimeoutSeconds, withTools } from "./settings.ts";

const packageName = "@openai/codex";
const version = "0.169.0";
const keyVariable = "ALIDADE_API_KEY";
const config = ".codex/config.toml";

const provider = (key: string, value: Setting["value"], why: string, says?: string): Setting => ({
  place: config,
  key: `model_providers.alidade.${key}`,
  value,
  about: "address",
  why,
  ...(says && { says }),
});
const off = (key: string, why: string): Setting => ({ place: config, key, value: false, about: "agent", why, only: "run" });

const settings: Setting[] = [
  ownHome,
  {
    place: "env",
    key: "CODEX_HOME",
    value: ({ home }) => `${home}/.codex`,
    says: "a folder of the rollout's home",
    about: "run",
    why: "no settings of a person are read",
  },
  {
    place: "env",
    key: keyVariable,
    value: ({ apiKey }) => apiKey,
    says: "the session's key",
    about: "address",
    why: "it says whose calls they are",
  },
  { place: "argv", key: "exec", value: true, about: "run", why: "without a terminal", only: "run" },
  { place: "argv", key: "--json", value: true, about: "run", why: "its last events say how it ended", only: "run" },
  keepsNone("--ephemeral"),
  { place: "argv", key: "--skip-git-repo-check", value: true, about: "run", why: "a task's folder need not be a repository", only: "run" },
  {
    place: "argv",
    key: "--dangerously-bypass-approvals-and-sandbox",
    value: true,
    about: "agent",
    why: "no person is there to ask, and it already runs in a sandbox",
    only: "run",
  },
  goesOn("resume", "--last"),
  {
    place: config,
    key: "model",
    value: ({ model }) => model,
    says: "the run's model",
    about: "address",
    why: "the name decides its tools: one that it does not know gets the plain shell tool `exec_command`",
  },
  { place: config, key: "model_provider", value: "alidade", about: "address", why: "the provider below" },
  { place: config, key: "check_for_update_on_startup", value: false, about: "run", why: "the version is pinned" },
  {
    place: config,
    key: "model_context_window",
    value: ({ contextWindow }) => contextWindow ?? undefined,
    says: "the engine's window, where it is known",
    about: "agent",
    why: "it plans by the window that there is",
  },
  {
    place: config,
    key: "model_auto_compact_token_limit",
    value: 1_000_000_000,
    about: "agent",
    why: "compaction has no switch, so its threshold is out of reach: it would cut the conversation in two",
    only: "run",
  },
  {
    place: config,
    key: "web_search",
    value: "disabled",
    about: "agent",
    why: "only the vendor's service can serve this tool",
    only: "run",
  },
  {
    place: config,
    key: "allow_login_shell",
    value: false,
    about: "run",
    why: "a login shell would read /etc/profile, which on Debian throws the image's PATH away",
    only: "run",
  },
  provider("name", "alidade", "it must have one"),
  provider("base_url", ({ baseUrl }) => `${baseUrl}/v1`, "its calls are recorded", "the proxy"),
  provider("env_key", keyVariable, "the variable above"),
  provider("wire_api", "responses", "the only dialect that it still speaks"),
  { ...provider("request_max_retries", 0, "the proxy tries again where that is right"), about: "run", only: "run" },
  { ...provider("stream_max_retries", 0, "the proxy tries again where that is right"), about: "run", only: "run" },
  {
    ...provider("stream_idle_timeout_ms", 3_600_000, "the proxy keeps the stream alive, so an hour of silence is a fault"),
    about: "run",
    only: "run",
  },
  off("features.apps", "they look for the vendor's service at the start"),
  off("features.goals", "its tools (`get_goal`, `create_goal`, `update_goal`) are for work over several sessions"),
  off("features.plugins", "they look for the vendor's service at the start"),
  off("features.tool_suggest", "it suggests tools of the vendor's service"),
  {
    ...off(
      "features.unbounded_connection_retries",
      "with it Codex waits for ever where the connection is refused, which no retry setting changes",
    ),
    about: "run",
  },
  {
    place: config,
    key: "mcp_optional_startup_grace_ms",
    value: withTools(0),
    says: "`0`, where the task has servers of tools",
    about: "agent",
    why: "it would give a server one second, and begin without its tools",
    only: "run",
  },
  {
    place: config,
    key: "mcp_servers",
    value: toolServers(({ url }) => ({ url, required: true, startup_timeout_sec: 60, tool_timeout_sec: toolTimeoutSeconds })),
    says: "the task's servers of tools, each with `required`",
    about: "agent",
    why: "it waits for their tools, and leaves it to the relay how long a call may take",
    only: "run",
  },
  off("agents.enabled", "no sub-agents: the tool `multi_agent_v1` is gone"),
  { place: config, key: "analytics.enabled", value: false, about: "run", why: "nothing is asked of the network, or sent to it, but calls" },
  { place: config, key: "feedback.enabled", value: false, about: "run", why: "nothing is asked of the network, or sent to it, but calls" },
];

export const codex: Harness = {
  name: "codex",
  title: "Codex",
  dialects: ["openai-responses"],
  packages: { [packageName]: version },
  version,
  // Agents are turned off, and compaction is out of reach (settings).
  makes: [],
  commands: ["codex"],
  tools: true,
  skills: ".agents/skills",
  resumes: true,

  program: () => `node_modules/${packageName}/bin/codex.js`,
  unneeded: (platform) => [`node_modules/${packageName}-${platform}/vendor/${targets[platform]}/codex-resources/voice`],

  settings,

  launch(context) {
    const set = new HarnessConfiguration(settings, "run", context);
    return {
      argv: [`${context.pack}/bin/codex`, ...set.argv(), "--", checkedInstruction(context.instruction)],
      env: set.env(),
      files: { [config]: set.toml(config) },
    };
  },

  configure(context) {
    const set = new HarnessConfiguration(settings, "record", context);
    return { env: set.env(), files: { [config]: set.toml(config) } };
  },

  end({ exit_code, stdout, stderr }) {
    if (exit_code === 0) return { failed: false, message: null };
    return { failed: true, message: failureInEvents(stdout) ?? lastLine(stderr) };
  },
};

const targets: Record<PackPlatform, string> = {
  "linux-x64": "x86_64-unknown-linux-musl",
  "linux-arm64": "aarch64-unknown-linux-musl",
  "darwin-x64": "x86_64-apple-darwin",
  "darwin-arm64": "aarch64-apple-darwin",
};

function failureInEvents(stdout: string): string | null {
  const event = lastJsonLine(stdout, (line) => line.includes('"turn.failed"') || line.includes('"type":"error"'));
  const error = event?.error ?? event;
  return typeof error === "object" && error !== null && "message" in error ? String(error.message).slice(0, 2000) : null;
}
