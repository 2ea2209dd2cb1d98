/**
 * Says which files of an agent's layer stay out of the sandbox that runs the tests. These files would speak for the tests
 * instead of being judged by them: rewards, tests and solutions of the agent's own, programs that replace the image's, and
 * files that Python and pytest load by themselves.
 */
import { posix } from "node:path";
import { AlidadeError } from "../../base/errors.ts";
import { isInside } from "../../base/files/file-tree.ts";
import type { LayerEntry } from "../../base/files/layer.ts";
import type { Sandbox } from "../../sandboxes/index.ts";

type HeldEntry = Pick<LayerEntry, "path" | "type" | "kind">;

/** The verifier's own places. Nothing of the agent's is ever put there. */
const places = ["tests", "solution", "logs/verifier"];

/** Loaded by Python, by the dynamic linker, or by pytest, which looks above /tests. */
const loaded = [
  "**/*.pth",
  "**/sitecustomize.py",
  "**/usercustomize.py",
  "etc/ld.so.preload",
  ...["conftest.py", "pytest.ini", ".pytest.ini", "pytest.toml", "pyproject.toml", "tox.ini", "setup.cfg"],
];

export type HeldBack = {
  isHeld(entry: HeldEntry): boolean;
  /** Paths of the work that are held back, sorted. */
  of(changes: readonly HeldEntry[]): string[];
};

/** `sandbox`: one without the work, whose PATH and programs count. `all`: false holds back the verifier's own places alone. */
export async function heldBack(sandbox: Sandbox, all: boolean, signal: AbortSignal): Promise<HeldBack> {
  const programs = all ? await programsOf(sandbox, signal) : null;
  const isHeld = ({ path, type, kind }: HeldEntry): boolean => {
    const inside = path.slice(1);
    // A folder of logs may be there, and nothing else in its place.
    if (isInside(inside, places) || (path === "/logs" && type !== "folder")) return true;
    if (programs === null || type === "folder") return false;
    if (isInside(inside, loaded)) return kind !== "deleted";
    const isProgram = programs.folders.has(posix.dirname(path)) && programs.names.has(posix.basename(path));
    return isProgram && type !== "deleted";
  };
  const of = (changes: readonly HeldEntry[]) =>
    changes
      .filter((change) => change.type !== "folder" && isHeld(change))
      .map(({ path }) => path)
      .sort();
  return { isHeld, of };
}

/** Prints PATH, then the files in its folders. */
const list =
  'printf "%s\\0\\0" "$PATH"; IFS=:; for folder in $PATH; do [ -d "$folder" ] && find -H "$folder" -maxdepth 1 ! -type d -print0; done; exit 0';
/** Enough for a hundred thousand programs with long names. */
const mostBytes = 16 * 1024 * 1024;

/** Returns the folders where the sandbox looks for programs, also by their names below /usr, and the names of its programs. */
async function programsOf(sandbox: Sandbox, signal: AbortSignal): Promise<{ folders: Set<string>; names: Set<string> }> {
  const { stdout, exit_code, dropped_bytes } = await sandbox.exec(["sh", "-c", list], {
    signal,
    timeout_ms: 60_000,
    max_output_bytes: mostBytes,
  });
  if (exit_code !== 0 || dropped_bytes > 0) throw new AlidadeError("sandbox_error", "could not list the programs of the task's image");
  const [path = "", ...found] = stdout.split("\0").filter((one) => one !== "");
  const folders = new Set(path.split(":").filter((folder) => folder.startsWith("/")));
  // /bin is a link to /usr/bin in most images, and the layer names the latter.
  for (const folder of [...folders]) folders.add(posix.join("/usr", folder));
  return { folders, names: new Set(found.map((one) => posix.basename(one))) };
}
