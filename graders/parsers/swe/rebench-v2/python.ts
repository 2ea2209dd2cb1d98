/** Reads pytest's logs as SWE-rebench-V2 does. XFAIL is no status there, so such a line is ignored. */
import { linesOf, type Statuses, splitLines, UnreadableLog, wordsOf } from "../status-log.ts";

const statuses = ["PASSED", "FAILED", "SKIPPED", "ERROR"];
const begins = (line: string): boolean => statuses.some((status) => line.startsWith(status));
const summaryWords = (line: string): string[] => wordsOf(line.startsWith("FAILED") ? line.replaceAll(" - ", " ") : line);

/** The second word of a summary's line is the name, whatever follows it. */
export function pytest(log: string, nameOf = (name: string): string => name): Statuses {
  const found: Statuses = new Map();
  for (const line of linesOf(log).filter(begins)) {
    const [status = "", name] = summaryWords(line);
    if (name !== undefined) found.set(nameOf(name), status);
  }
  return found;
}

/** Python 3.11 writes these two in another way than earlier versions. */
export function matplotlib(log: string): Statuses {
  return pytest(log.replaceAll("MouseButton.LEFT", "1").replaceAll("MouseButton.RIGHT", "3"));
}

/** Reads a status before a name, and `PASSED` after one. */
export function seaborn(log: string): Statuses {
  const found: Statuses = new Map();
  for (const line of linesOf(log)) {
    const [first = "", second] = wordsOf(line);
    const isRow = line.startsWith("FAILED") || (line.startsWith("PASSED") && !line.includes(" PASSED "));
    if (isRow && second === undefined) throw new UnreadableLog("the log has a status alone in a line");
    if (isRow) found.set(second as string, line.startsWith("FAILED") ? "FAILED" : "PASSED");
    else if (line.includes(" PASSED ") && second === "PASSED") found.set(first, "PASSED");
  }
  return found;
}

/** Removes colours that lost their escape, and control characters. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: the characters to remove
const withoutControls = (line: string): string => line.replace(/\[\d+m/g, "").replace(/[\x01-\x1f]/g, "");

/**
 * Reads lines of the summary and of -v. V2's code gives a log up if a line holds a status alone. `isFour`: as swebench 4.1's code,
 * which also knows XFAIL, and allows such a line in the summary.
 */
export function pytestBoth(log: string, isFour = false): Statuses {
  const found: Statuses = new Map();
  const isOne = (at: "startsWith" | "endsWith", line: string): boolean =>
    [...statuses, ...(isFour ? ["XFAIL"] : [])].some((word) => line[at](word));
  for (const line of linesOf(log).map(withoutControls)) {
    const isSummary = isOne("startsWith", line);
    if (!isSummary && !isOne("endsWith", line)) continue;
    const [first, second] = summaryWords(line);
    if (second === undefined && isFour && isSummary) continue;
    if (second === undefined) throw new UnreadableLog(`the log has a status alone in a line: ${JSON.stringify(line.slice(0, 200))}`);
    if (isSummary) found.set(second, first as string);
    else found.set(first as string, second);
  }
  return found;
}

const word = statuses.join("|");
const worker = /^\[gw\d+\]\s+\[[^\]]{0,64}\]\s+(\w+)\s+(.*)$/s;
const verbose = new RegExp(String.raw`^(\S+(?:\s+\S+)*?)\s+(${word})\s+\[[^\]]{0,64}\]\s+in\s+\d+(?:\.\d+)?s$`);
const summary = new RegExp(String.raw`^(${word})\s+(.*)$`, "s");
const beforeTime = (text: string): string => (text.split(" in ", 1)[0] as string).trim();

/** Reads lines of workers (pytest-xdist), of -v with a time, and of the summary. */
export function pytestWorkers(log: string): Statuses {
  const found: Statuses = new Map();
  for (const line of splitLines(log).map((raw) => withoutControls(raw).trim())) {
    const [, status = "", rest = ""] = worker.exec(line) ?? [];
    const [, name, ended] = verbose.exec(line) ?? [];
    const [, first, second = ""] = summary.exec(line) ?? [];
    if (statuses.includes(status)) found.set(beforeTime(rest), status);
    else if (name !== undefined) found.set(name.trim(), ended as string);
    else if (first !== undefined) found.set(beforeTime(second), first);
  }
  return found;
}

const banner = `${"=".repeat(35)} FAILURES ${"=".repeat(35)}`;
const failureHead = /^_{27} (.*?) _{27}$/s;

/** `parse_log_cpp`: reads the lines of pytest -v. Below the heading of the failures, only the headings of failed tests count. */
export function pytestVerbose(log: string): Statuses {
  const found: Statuses = new Map();
  let failures = false;
  for (const line of splitLines(log).map((raw) => raw.trim())) {
    if (line.startsWith(banner)) failures = true;
    else if (failures) {
      const name = failureHead.exec(line)?.[1];
      if (name !== undefined) found.set(name, "FAILED");
    } else {
      const [name, status] = firstStatus(line) ?? [];
      if (name !== undefined && status !== undefined && !(status === "PASSED" && found.has(name))) found.set(name, status);
    }
  }
  return found;
}

/** Made once: a log may have millions of lines. */
const blankAndStatus = statuses.map((status) => [status, new RegExp(String.raw`\s${status}`)] as const);

/** Looks for each status in turn, after a space. The name is the text after the last `::`. */
function firstStatus(line: string): readonly [name: string, status: string] | null {
  for (const [status, behindBlank] of blankAndStatus) {
    const at = line.search(behindBlank);
    if (at === -1) continue;
    const name = line.slice(0, at).trimEnd();
    return [name.slice(name.lastIndexOf("::") + (name.includes("::") ? 2 : 1)), status];
  }
  return null;
}
