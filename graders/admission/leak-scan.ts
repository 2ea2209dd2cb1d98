/** Looks for the known solution and the hidden tests in what an agent can read: files, git's objects, variables, the image's words. */
import { isBelow } from "../../base/files/file-tree.ts";
import type { LeakScan } from "../../base/schema/admission.ts";
import type { ImageStore, Sandbox } from "../../sandboxes/index.ts";
import { leaksAt, linesIn, type TellingLines } from "./telling-lines.ts";

/** The scan of all files may take this long, and so may that of the git objects. */
const scanSeconds = 120;
/** Files that are listed. Further ones would tell nothing new. */
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

type LinesAt = { place: string; lines: Set<string> };

/** `sandbox`: as an agent gets it, before it did anything; it is left as it was. `images`: those of its backend. */
export async function leakScan(
  sandbox: Sandbox,
  workdir: string,
  telling: readonly TellingLines[],
  images: ImageStore | undefined,
  signal: AbortSignal,
): Promise<LeakScan> {
  const scan: LeakScan = { leaks: [], looked_for: telling.flatMap(({ lines }) => lines).length, not_scanned: [] };
  // Apart: a name that stands in half of the image's files would leave no room among the files that hold the solution.
  for (const isName of [false, true]) {
    const wanted = telling.filter(({ what, lines }) => (what === "names") === isName && lines.length > 0);
    if (wanted.length === 0) continue;
    const places = await placesOf(wanted, sandbox, scan, signal);
    const own = isName ? wanted.map((names) => withoutCommon(names, places, workdir)) : wanted;
    scan.leaks.push(...places.flatMap(({ place, lines }) => leaksAt(place, lines, own)));
    await scanImage(scan, sandbox.facts.image, own, images, signal);
  }
  return scan;
}

/** Files, git's objects and variables in which one of the lines stands. */
async function placesOf(wanted: readonly TellingLines[], sandbox: Sandbox, scan: LeakScan, signal: AbortSignal): Promise<LinesAt[]> {
  const run = (script: string, ...args: string[]) =>
    sandbox.exec(["sh", "-c", script, "sh", ...args], { timeout_ms: scanSeconds * 1000, max_output_bytes: 1_000_000, signal });
  const foundIn = (stdout: string) => new Set(stdout.split("\n").filter((line) => line !== ""));
  await sandbox.exec(["sh", "-c", `cat > ${sought}`], { stdin: `${wanted.flatMap(({ lines }) => lines).join("\n")}\n`, signal });
  try {
    const places: LinesAt[] = [];
    const files = await run(findFiles);
    if (files.timed_out) notScanned(scan, `files: their scan did not end in ${scanSeconds} seconds`);
    for (const path of foundIn(files.stdout)) places.push({ place: path, lines: foundIn((await run(linesOfFile, path)).stdout) });
    const git = await run(linesOfGit);
    if (git.exit_code === 3) notScanned(scan, "git objects: the sandbox has no git");
    else if (git.timed_out) notScanned(scan, `git objects: their scan did not end in ${scanSeconds} seconds`);
    else if (git.exit_code === 0) places.push({ place: "objects of .git", lines: foundIn(git.stdout) });
    return [...places, { place: "environment variables", lines: linesIn((await run("env")).stdout, wanted) }];
  } finally {
    await run(`rm -f ${sought}`);
  }
}

/** A name that so many files outside of the work have is one that frameworks and packages use too. */
const commonFiles = 3;

function withoutCommon(names: TellingLines, places: readonly LinesAt[], workdir: string): TellingLines {
  const outside = places.filter(({ place }) => place.startsWith("/") && !isBelow(place, workdir));
  const isCommon = (name: string) => outside.filter(({ lines }) => lines.has(name)).length >= commonFiles;
  return { ...names, lines: names.lines.filter((name) => !isCommon(name)) };
}

function notScanned(scan: LeakScan, why: string): void {
  if (!scan.not_scanned.includes(why)) scan.not_scanned.push(why);
}

async function scanImage(
  scan: LeakScan,
  image: string | null,
  telling: readonly TellingLines[],
  images: ImageStore | undefined,
  signal: AbortSignal,
): Promise<void> {
  if (image === null || images?.words === undefined) {
    notScanned(scan, "the image's history: this backend does not tell it");
    return;
  }
  const words = await images.words(image, signal);
  scan.leaks.push(...leaksAt("history, variables or labels of the image", linesIn(words.join("\n"), telling), telling));
}
