/** The tests that a work is graded by: files of a folder of the host, those that a patch makes of the delivered ones, and delivered ones that stay. */
import { AlidadeError } from "../base/errors.ts";
import { applyPatch } from "../base/files/apply-patch.ts";
import { matchesAny, overlay, readFolder, type TreeFile } from "../base/files/file-tree.ts";
import { patchedPaths } from "../base/files/parse-patch.ts";
import type { Sandbox } from "../sandboxes/index.ts";

type HiddenTestsSpec = { tests: string | null; test_patch?: string | undefined; test_files?: string[] | undefined };
type HiddenTests = { files: TreeFile[] /** Paths in the workdir that the patch removes. */; removed: string[] };

/** `sandbox`: as it is delivered, with nothing of a work in it. Throws `task_invalid` where the patch does not fit. */
export async function hiddenTests({ tests, test_patch, test_files = [] }: HiddenTestsSpec, sandbox: Sandbox): Promise<HiddenTests> {
  const folder = tests === null ? [] : await readFolder(tests);
  const delivered = test_files.length === 0 ? [] : await filesAt(sandbox, await pathsLike(test_files, sandbox));
  if (test_patch === undefined) return { files: overlay(delivered, folder), removed: [] };
  const patched = applyPatch(await filesAt(sandbox, patchedPaths(test_patch)), test_patch);
  const left = new Set(patched.map(({ path }) => path));
  const removed = new Set(patchedPaths(test_patch).filter((path) => !left.has(path)));
  const kept = delivered.filter(({ path }) => !removed.has(path));
  return { files: overlay(overlay(kept, patched), folder), removed: [...removed] };
}

/** Paths of regular files in the workdir that fit one of the globs; git's own folder is passed over. */
async function pathsLike(globs: string[], sandbox: Sandbox): Promise<string[]> {
  const argv = ["find", ".", "-path", "./.git", "-prune", "-o", "-type", "f", "-print0"];
  const { exit_code, stdout, stderr, dropped_bytes } = await sandbox.exec(argv, { timeout_ms: 120_000, max_output_bytes: mostBytes });
  if (exit_code !== 0 || dropped_bytes > 0)
    throw new AlidadeError(
      "sandbox_error",
      `could not list the test files of the image (find ended with ${exit_code}): ${stderr.slice(-500)}`,
    );
  const paths = stdout.split("\0").map((path) => path.slice("./".length));
  return paths.filter((path) => path !== "" && matchesAny(path, globs)).sort();
}

/** Arguments of one command. */
const mostPaths = 400;
/** As much as a task's folder may hold, and a third more in base64. */
const mostBytes = 700 * 1024 * 1024;

const readEach = `for path; do
  [ -f "./$path" ] && [ ! -L "./$path" ] || continue
  if [ -x "./$path" ]; then mode=755; else mode=644; fi
  printf '%s\\0%s\\0' "$path" "$mode"; base64 < "./$path" || exit; printf '\\0'
done`;

/** The files at paths of the workdir; those that are not there are left out. No work may be in the sandbox yet: it runs `sh`. */
export async function filesAt(sandbox: Sandbox, paths: string[]): Promise<TreeFile[]> {
  const files: TreeFile[] = [];
  for (let at = 0; at < paths.length; at += mostPaths) {
    const argv = ["sh", "-c", readEach, "sh", ...paths.slice(at, at + mostPaths)];
    const { exit_code, stdout, stderr, dropped_bytes } = await sandbox.exec(argv, { timeout_ms: 120_000, max_output_bytes: mostBytes });
    if (exit_code !== 0 || dropped_bytes > 0)
      throw new AlidadeError(
        "sandbox_error",
        `could not read the files that a patch changes (sh ended with ${exit_code}): ${stderr.slice(-500)}`,
      );
    const fields = stdout.split("\0");
    for (let field = 0; field + 2 < fields.length; field += 3)
      files.push({
        path: fields[field] as string,
        mode: fields[field + 1] === "755" ? 0o755 : 0o644,
        content: Buffer.from(fields[field + 2] as string, "base64"),
      });
  }
  return files;
}
