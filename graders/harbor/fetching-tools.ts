/** Finds the programs by which a test script fetches from a network. Without a network such a script cannot judge a work. */

import type { TreeFile } from "../../base/files/file-tree.ts";

/** Patterns of the lines that run them. Each wants a subcommand or an address: a name alone also stands in options and paths. */
const fetching: Record<string, RegExp> = {
  "apt-get": /\b(?:apt-get|apt)\s+(?:-\S+\s+)*(?:update|install|upgrade|build-dep)\b/,
  apk: /\bapk\s+(?:-\S+\s+)*(?:add|update)\b/,
  dnf: /\b(?:dnf|yum|microdnf)\s+(?:-\S+\s+)*(?:install|update)\b/,
  pip: /\bpip3?\s+(?:-\S+\s+)*(?:install|download)\b/,
  uv: /\buv\s+(?:-\S+\s+)*(?:pip|add|sync|run|tool|init|venv|python)\b/,
  uvx: /\buvx\s+\S/,
  npm: /\b(?:npm|pnpm|yarn)\s+(?:-\S+\s+)*(?:install|ci|i|add)\b/,
  npx: /\bnpx\s+\S/,
  cargo: /\bcargo\s+(?:install|fetch)\b/,
  go: /\bgo\s+(?:install|get|mod\s+download)\b/,
  gem: /\b(?:gem|bundle)\s+install\b/,
  conda: /\b(?:conda|mamba|micromamba)\s+(?:-\S+\s+)*(?:install|create)\b/,
  git: /\bgit\s+clone\s+(?:-\S+\s+)*https?:/,
  curl: /\bcurl\s[^|;&]*https?:\/\/(?!localhost|127\.|\[::1\]|\$)/,
  wget: /\bwget\s[^|;&]*https?:\/\/(?!localhost|127\.|\[::1\]|\$)/,
};

/** Longer than scripts of tests are. The rest of a longer one is not searched. */
const longestScript = 1024 * 1024;

/** Returns the lines that fetch in the `.sh` files among the tests, and the tools by which they do. */
export function fetchingScripts(files: readonly Pick<TreeFile, "path" | "content">[]): { lines: string[]; tools: string[] } {
  const lines = files
    .filter(({ path }) => path.endsWith(".sh"))
    .flatMap(({ content }) => codeOf(content.subarray(0, longestScript).toString("utf8")));
  return { lines: lines.filter((line) => Object.values(fetching).some((pattern) => pattern.test(line))), tools: toolsIn(lines) };
}

/** Returns the tools' names in the order of the list above. Ignores comments. */
export function fetchingTools(script: string): string[] {
  return toolsIn(codeOf(script.slice(0, longestScript)));
}

function codeOf(script: string): string[] {
  return script
    .replace(/\\\n/g, " ")
    .split("\n")
    .map((line) => line.replace(/(^|\s)#.*$/, "").slice(0, 4_000));
}

function toolsIn(lines: readonly string[]): string[] {
  return Object.entries(fetching)
    .filter(([, pattern]) => lines.some((line) => pattern.test(line)))
    .map(([name]) => name);
}
