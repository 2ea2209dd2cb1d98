/** Looks for the known solution and the hidden tests in what an agent can read: files, git's objects, variables, the image's words. */
import type { ImageStore, Sandbox } from "../../sandboxes/sandbox.ts";
import type { LeakScan } from "../../schema/admission.ts";
import { leaksAt, linesIn, type TellingLines } from "./telling-lines.ts";

/** For all files, and again for the git objects. */
const scanSeconds = 120;
/** More files than these hold no second answer. */
const mostFiles = 50;
const sought = "/tmp/.alidade-sought";

/** Names of the files that hold one of the lines. Whole system folders, but no devices and no processes. */
const findFiles = `find / \\( -path /proc -o -path /sys -o -path /dev -o -path ${sought} \\) -prune -o -type f -size -4096k -print0 2>/dev/null |
xargs -0 grep -lsF -f ${sought} -- 2>/dev/null | head -n ${mostFiles}; true`;
const linesOfFile = `grep -aoF -f ${sought} -- "$1" 2>/dev/null | sort -u | head -c 200000; true`;
/** All objects, also those that no branch leads to. */
const linesOfGit = `command -v git >/dev/null 2>&1 || exit 3
[ -d .git ] || exit 4
git -c safe.directory='*' cat-file --batch-all-objects --batch --unordered --buffer 2>/dev/null | grep -aoF -f ${sought} | sort -u | head -c 200000; true`;

/** `sandbox`: as an agent gets it, before it did anything; it is left as it was. `images`: those of its backend. */
export async function leakScan(
  sandbox: Sandbox,
  telling: readonly TellingLines[],
  images: ImageStore | undefined,
  signal: AbortSignal,
): Promise<LeakScan> {
  const all = telling.flatMap(({ lines }) => lines);
  const scan: LeakScan = { leaks: [], looked_for: all.length, not_scanned: [] };
  if (all.length === 0) return scan;
  const run = (script: string, ...args: string[]) =>
    sandbox.exec(["sh", "-c", script, "sh", ...args], { timeout_ms: scanSeconds * 1000, max_output_bytes: 1_000_000, signal });
  await sandbox.exec(["sh", "-c", `cat > ${sought}`], { stdin: `${all.join("\n")}\n`, signal });
  try {
    const files = await run(findFiles);
    if (files.timed_out) scan.not_scanned.push(`files: their scan did not end in ${scanSeconds} seconds`);
    for (const path of files.stdout.split("\n").filter((line) => line !== ""))
      scan.leaks.push(...leaksAt(path, new Set((await run(linesOfFile, path)).stdout.split("\n")), telling));
    const git = await run(linesOfGit);
    if (git.exit_code === 3) scan.not_scanned.push("git objects: the sandbox has no git");
    else if (git.timed_out) scan.not_scanned.push(`git objects: their scan did not end in ${scanSeconds} seconds`);
    else if (git.exit_code === 0) scan.leaks.push(...leaksAt("objects of .git", new Set(git.stdout.split("\n")), telling));
    const { stdout } = await run("env");
    scan.leaks.push(...leaksAt("environment variables", linesIn(stdout, telling), telling));
  } finally {
    await run(`rm -f ${sought}`);
  }
  await scanImage(scan, sandbox.facts.image, telling, images, signal);
  return scan;
}

async function scanImage(
  scan: LeakScan,
  image: string | null,
  telling: readonly TellingLines[],
  images: ImageStore | undefined,
  signal: AbortSignal,
): Promise<void> {
  if (image === null || images?.words === undefined) {
    scan.not_scanned.push("the image's history: this backend does not tell it");
    return;
  }
  const words = await images.words(image, signal);
  scan.leaks.push(...leaksAt("history, variables or labels of the image", linesIn(words.join("\n"), telling), telling));
}
