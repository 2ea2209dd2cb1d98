/** The command that installs optional packages beside this very program, wherever it lies. */
import { existsSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

/**
 * `root`: the folder of our package.json. In a checkout it names these packages as optional peers, and npm installs nothing, without
 * a word, for a package that is named as one: it must hear that this time it is of another kind. `from`: where the user stands.
 */
export function installCommand(packages: readonly string[], { root = ownRoot(), from = process.cwd() } = {}): string {
  const words = packages.join(" ");
  const modules = dirname(root);
  if (basename(modules) !== "node_modules") return `npm install --save-prod --no-save${at(root, from)} ${words}`;
  const project = dirname(modules);
  return existsSync(join(project, "package.json")) ? `npm install${at(project, from)} ${words}` : `npm install -g ${words}`;
}

function at(folder: string, from: string): string {
  return resolve(from) === resolve(folder) ? "" : ` --prefix ${folder}`;
}

/** A checkout's root lies two folders above this file's; the published package has its programs in a folder more. */
function ownRoot(): string {
  const above = fileURLToPath(new URL("../..", import.meta.url)).replace(/\/$/, "");
  return existsSync(join(above, "package.json")) ? above : dirname(above);
}
