import { visibleText } from "./visible-text.ts";

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
