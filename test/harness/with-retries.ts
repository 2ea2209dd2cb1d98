/** The real harnesses as they are launched, but with their own retries and a short patience: what people run. */
import type { HarnessLaunch } from "../../harnesses/harness.ts";
import type { HarnessContext } from "../../harnesses/harness-context.ts";
import { harnessNamed } from "../../harnesses/registry.ts";

export type Persistent = {
  /** The tool call by which its model runs a command. */
  shell(command: string): { name: string; arguments: Record<string, unknown> };
  /** `idleMs`: how long it waits for the next byte of an answer; null is its own default of minutes. */
  launch(context: HarnessContext, idleMs: number | null): HarnessLaunch;
};

export const persistent = {
  pi: {
    shell: (command) => ({ name: "bash", arguments: { command } }),
    launch(context, idleMs) {
      const launch = harnessNamed("pi").launch(context);
      const file = ".pi/agent/settings.json";
      const { retry: _retry, ...settings } = JSON.parse(launch.files[file] ?? "{}") as Record<string, unknown>;
      return { ...launch, files: { ...launch.files, [file]: JSON.stringify({ ...settings, httpIdleTimeoutMs: idleMs ?? 0 }) } };
    },
  },
  codex: {
    shell: (cmd) => ({ name: "exec_command", arguments: { cmd } }),
    launch(context, idleMs) {
      const launch = harnessNamed("codex").launch(context);
      const file = ".codex/config.toml";
      const lines = (launch.files[file] ?? "").split("\n").filter((line) => !/^(request|stream)_max_retries|^stream_idle/.test(line));
      const at = lines.indexOf("[model_providers.alidade]") + 1;
      if (idleMs !== null) lines.splice(at, 0, `stream_idle_timeout_ms = ${idleMs}`);
      return { ...launch, files: { ...launch.files, [file]: lines.join("\n") } };
    },
  },
  "claude-code": {
    shell: (command) => ({ name: "Bash", arguments: { command } }),
    launch(context, idleMs) {
      const launch = harnessNamed("claude-code").launch(context);
      const { CLAUDE_CODE_MAX_RETRIES: _retries, ...env } = launch.env;
      const idle: Record<string, string> =
        idleMs === null ? {} : { CLAUDE_STREAM_IDLE_TIMEOUT_MS: `${idleMs}`, CLAUDE_BYTE_STREAM_IDLE_TIMEOUT_MS: `${idleMs}` };
      return { ...launch, env: { ...env, ...idle } };
    },
  },
  "gemini-cli": {
    shell: (command) => ({ name: "run_shell_command", arguments: { command } }),
    launch(context) {
      const launch = harnessNamed("gemini-cli").launch(context);
      const file = ".gemini/settings.json";
      const { general, ...settings } = JSON.parse(launch.files[file] ?? "{}") as { general: Record<string, unknown> };
      const { maxAttempts: _attempts, ...kept } = general;
      return {
        ...launch,
        files: { ...launch.files, [file]: JSON.stringify({ ...settings, general: { ...kept, retryFetchErrors: true } }) },
      };
    },
  },
} as const satisfies Record<string, Persistent>;

export type PersistentHarness = keyof typeof persistent;
