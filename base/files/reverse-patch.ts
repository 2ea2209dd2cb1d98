/** The patch that undoes a patch. */
import { type FilePatch, type Hunk, parsePatch } from "./parse-patch.ts";

/** A unified diff from the new files to the old ones. Throws `task_invalid` as `parsePatch` does. */
export function reversePatch(patch: string): string {
  const changes = parsePatch(Buffer.from(patch, "utf8").toString("latin1"));
  return Buffer.from(changes.map(reverseFile).join(""), "latin1").toString("utf8");
}

function reverseFile({ oldPath, newPath, hunks }: FilePatch): string {
  const name = (side: "a" | "b", path: string | null): string => (path === null ? "/dev/null" : `${side}/${path}`);
  const shown = Buffer.from(newPath ?? oldPath ?? "", "utf8").toString("latin1");
  const latin = (path: string | null): string | null => path && Buffer.from(path, "utf8").toString("latin1");
  const head = [`diff --git a/${shown} b/${shown}`];
  if (oldPath !== null && newPath !== null && oldPath !== newPath)
    head.push(`rename from ${latin(newPath)}`, `rename to ${latin(oldPath)}`);
  if (hunks.length > 0) head.push(`--- ${name("a", latin(newPath))}`, `+++ ${name("b", latin(oldPath))}`);
  return `${head.join("\n")}\n${hunks.map(reverseHunk).join("")}`;
}

function reverseHunk({ oldStart, oldCount, newStart, newCount, lines }: Hunk): string {
  const swapped = lines.map((line) => (line[0] === "+" ? `-${line.slice(1)}` : line[0] === "-" ? `+${line.slice(1)}` : line));
  const text = swapped.map((line) => (line.endsWith("\n") ? line : `${line}\n\\ No newline at end of file\n`)).join("");
  return `@@ -${newStart},${newCount} +${oldStart},${oldCount} @@\n${text}`;
}
