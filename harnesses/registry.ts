/** The harnesses that Alidade installs and starts. A new one is a file and a line here. */
import { registryOf } from "../base/host/plug-ins.ts";
import { claudeCode } from "./claude-code.ts";
import { codex } from "./codex.ts";
import { geminiCli } from "./gemini-cli.ts";
import type { Harness } from "./harness.ts";
import { opencode } from "./opencode.ts";
import { pi } from "./pi.ts";
import { qwenCode } from "./qwen-code.ts";

export const harnessRegistry = registryOf<Harness>({
  noun: "harness",
  param: "harness",
  list: [pi, codex, claudeCode, geminiCli, qwenCode, opencode],
  members: {
    name: "text",
    title: "text",
    dialects: "list or null",
    packages: "object",
    own: "object?",
    version: "text or null",
    program: "function?",
    unneeded: "function?",
    runs: "function?",
    input: "text?",
    tools: "boolean?",
    skills: "text?",
    resumes: "boolean?",
    sight: "text?",
    fixedWindow: "number?",
    makes: "list",
    commands: "list",
    settings: "list?",
    launch: "function",
    configure: "function",
    end: "function",
  },
  unknown: "harness_unknown",
});
export const { list: harnesses, named: harnessNamed } = harnessRegistry;

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
