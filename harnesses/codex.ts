/**
 * Codex CLI (npm `@openai/codex`), over the Responses dialect: the only one it still speaks. The model's name decides
 * its tools; a name that it does not know gets the plain shell tool `exec_command`.
 */
import type { Harness, HarnessContext, PackPlatform } from "./harness.ts";
import { checkedInstruction } from "./instruction.ts";
import { lastJsonLine } from "./last-json-line.ts";
import { lastLine } from "./last-line.ts";
import { tomlString } from "./toml-string.ts";

const packageName = "@openai/codex";
const version = "0.169.0";
const keyVariable = "ALIDADE_API_KEY";

export const codex: Harness = {
  name: "codex",
  title: "Codex",
  dialects: ["openai-responses"],
  packages: { [packageName]: version },
  version,
  // Agents are turned off, and compaction is out of reach (below).
  makes: [],
  commands: ["codex"],

  program: () => `node_modules/${packageName}/bin/codex.js`,
  unneeded: (platform) => [`node_modules/${packageName}-${platform}/vendor/${targets[platform]}/codex-resources/voice`],

  launch(context) {
    return {
      argv: [
        `${context.pack}/bin/codex`,
        "exec",
        "--json",
        "--ephemeral",
        "--skip-git-repo-check",
        // Approvals and Codex's own sandbox are off: it already runs in one.
        "--dangerously-bypass-approvals-and-sandbox",
        "--",
        checkedInstruction(context.instruction),
      ],
      env: { HOME: context.home, CODEX_HOME: `${context.home}/.codex`, [keyVariable]: context.apiKey },
      files: { ".codex/config.toml": toml([...pointedAtUs(context), ...unattended], [...provider(context), ...noRetries], lean) },
    };
  },

  configure(context) {
    return {
      env: { CODEX_HOME: `${context.home}/.codex`, [keyVariable]: context.apiKey },
      files: { ".codex/config.toml": toml(pointedAtUs(context), provider(context), []) },
    };
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

type Line = [key: string, value: string | number | boolean];

function pointedAtUs(context: Pick<HarnessContext, "model" | "contextWindow">): Line[] {
  const lines: Line[] = [
    ["model", context.model],
    ["model_provider", "alidade"],
    ["check_for_update_on_startup", false],
  ];
  if (context.contextWindow !== null) lines.push(["model_context_window", context.contextWindow]);
  return lines;
}

/** Compaction has no switch, so its threshold is set out of reach: it would split the conversation in two. */
const unattended: Line[] = [
  ["model_auto_compact_token_limit", 1_000_000_000],
  ["web_search", "disabled"],
  // A login shell would read /etc/profile, which on Debian throws the image's PATH away.
  ["allow_login_shell", false],
];

function provider(context: Pick<HarnessContext, "baseUrl">): Line[] {
  return [
    ["name", "alidade"],
    ["base_url", `${context.baseUrl}/v1`],
    ["env_key", keyVariable],
    ["wire_api", "responses"],
  ];
}

/** The proxy tries again where that is right; it keeps the stream alive, so an hour of silence is a fault. */
const noRetries: Line[] = [
  ["request_max_retries", 0],
  ["stream_max_retries", 0],
  ["stream_idle_timeout_ms", 3_600_000],
];

/** What looks for the network at start or adds tools that only the vendor's service can serve. */
const lean: Line[] = [
  ["apps", false],
  ["goals", false],
  ["plugins", false],
  ["tool_suggest", false],
  // With it Codex waits for ever where the connection is refused, which no retry setting changes.
  ["unbounded_connection_retries", false],
];

function toml(top: Line[], provider: Line[], features: Line[]): string {
  return [
    table(null, top),
    table("model_providers.alidade", provider),
    table("features", features),
    features.length > 0 ? table("agents", [["enabled", false]]) : "",
    table("analytics", [["enabled", false]]),
    table("feedback", [["enabled", false]]),
  ].join("\n");
}

function table(name: string | null, lines: Line[]): string {
  const body = lines.map(([key, value]) => `${key} = ${typeof value === "string" ? tomlString(value) : value}\n`).join("");
  return name === null ? body : `[${name}]\n${body}`;
}

function failureInEvents(stdout: string): string | null {
  const event = lastJsonLine(stdout, (line) => line.includes('"turn.failed"') || line.includes('"type":"error"'));
  const error = event?.error ?? event;
  return typeof error === "object" && error !== null && "message" in error ? String(error.message).slice(0, 2000) : null;
}
