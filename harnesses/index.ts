/** The harnesses that Alidade installs and starts. A new one is a file and a line here. */
import { AlidadeError } from "../errors.ts";
import { claudeCode } from "./claude-code.ts";
import { codex } from "./codex.ts";
import { geminiCli } from "./gemini-cli.ts";
import type { Harness } from "./harness.ts";
import { opencode } from "./opencode.ts";
import { pi } from "./pi.ts";
import { qwenCode } from "./qwen-code.ts";

export const harnesses: readonly Harness[] = [pi, codex, claudeCode, geminiCli, qwenCode, opencode];

/** Throws `harness_unknown` with the names that there are. */
export function harnessNamed(name: string): Harness {
  const harness = harnesses.find((candidate) => candidate.name === name);
  if (harness !== undefined) return harness;
  const names = harnesses.map((candidate) => candidate.name).join(", ");
  throw new AlidadeError("harness_unknown", `There is no harness "${name}". Known: ${names}. A run file can give a command of your own.`, {
    param: "harness",
  });
}

/** The harness that a command line starts, for `alidade record -- codex exec …`; null for an unknown program. */
export function harnessFor(commandLine: readonly string[]): Harness | null {
  const program = programOf(commandLine);
  if (program === null) return null;
  return harnesses.find((harness) => harness.commands.includes(program.name) || program.package in harness.packages) ?? null;
}

/** The program behind `/usr/bin/codex`, `claude.cmd`, `npx -y @openai/codex@0.169.0` or `env A=b codex`. */
function programOf(commandLine: readonly string[]): { name: string; package: string } | null {
  let rest = commandLine;
  if (basename(rest[0]) === "env") rest = rest.slice(1 + rest.slice(1).findIndex((argument) => !/^(-i|[A-Za-z_]\w*=.*)$/.test(argument)));
  if (runners.has(basename(rest[0]))) {
    const requested = rest.slice(1).find((argument) => !argument.startsWith("-") && argument !== "dlx" && argument !== "exec");
    return requested === undefined ? null : { name: requested, package: requested.replace(/(?<=.)@[^@/]*$/, "") };
  }
  return rest[0] === undefined ? null : { name: basename(rest[0]), package: "" };
}

const runners = new Set(["npx", "bunx", "pnpx", "pnpm"]);

function basename(path = ""): string {
  return (path.split(/[\\/]/).at(-1) ?? "").replace(/\.(cmd|exe|ps1|js|mjs)$/i, "");
}
