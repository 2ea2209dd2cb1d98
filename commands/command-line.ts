/** What the verbs of the command line share: how they end, how they speak, and when they stop. */
import { asAlidadeError } from "../errors.ts";
import { visibleText } from "./show/visible-text.ts";

/** One Ctrl-C can arrive twice: from the terminal and from the launcher that passes it on. */
const sameStopMs = 500;

/** Aborted by the first Ctrl-C or SIGTERM; a second one ends the process at once. */
export function stopSignal(): AbortSignal {
  const controller = new AbortController();
  let stoppedAt: number | null = null;
  const stop = (): void => {
    if (stoppedAt !== null && Date.now() - stoppedAt < sameStopMs) return;
    if (stoppedAt !== null) process.exit(130);
    stoppedAt = Date.now();
    process.stderr.write("\nalidade: stopping; what is recorded stays (Ctrl-C again to end at once)\n");
    controller.abort(new Error("stopped by a signal"));
  };
  process.on("SIGINT", stop);
  process.on("SIGTERM", stop);
  return controller.signal;
}

/**
 * People read stderr; stdout is for the result, so that it can be piped. What is said may quote a grader, an engine or an
 * agent, so it is written out: it must not act on the terminal.
 */
export function say(text: string): void {
  process.stderr.write(`${visibleText(text)}\n`);
}

export function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

/** One line for people, one JSON object for machines; 2 for a mistake of the user's, 1 for anything else. */
export function fail(error: unknown, json: boolean): number {
  const ours = asAlidadeError(error, "internal");
  if (json) print(JSON.stringify({ error: ours.toJSON() }));
  else say(`alidade: ${ours.message}`);
  if (ours.code === "internal" && error instanceof Error && process.env.ALIDADE_DEBUG) say(error.stack ?? "");
  return ours.owner === "user" ? 2 : 1;
}

/** A flag's number. An empty text is none: of an unset variable (`--port "$PORT"`) `Number` makes 0. */
export function toNumber(text: string): number {
  return text.trim() === "" ? Number.NaN : Number(text);
}

/** Columns padded to their widest cell; numbers are set to the right. Cells may quote a stranger, and are one line each. */
export function table(head: string[], rows: (string | number | null)[][]): string {
  const cells = [head, ...rows.map((row) => row.map((cell) => (cell === null ? "–" : visibleText(String(cell)).replaceAll("\n", "\\n"))))];
  const widths = head.map((_, column) => Math.max(...cells.map((row) => (row[column] ?? "").length)));
  const numeric = head.map((_, column) => rows.every((row) => typeof row[column] === "number" || row[column] === null));
  const line = (row: string[]): string =>
    row
      .map((cell, column) => (numeric[column] ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0)))
      .join("  ")
      .trimEnd();
  return [line(head), widths.map((width) => "─".repeat(width)).join("  "), ...cells.slice(1).map(line)].join("\n");
}
