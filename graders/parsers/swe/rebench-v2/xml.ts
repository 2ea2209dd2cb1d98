/** Reads JUnit's XML inside a log as SWE-rebench-V2 does. Each of its parsers reads it in another way. */
import { tagsOf } from "../../../bounded/xml-tags.ts";
import type { Status, Statuses } from "../status-log.ts";

type TestCase = { attributes: ReadonlyMap<string, string>; parent: string; children: Set<string> };

/** Returns a document's test cases, with the names of their elements. null: the document is not well-formed. */
function casesOf(text: string): TestCase[] | null {
  if (text.indexOf("<?xml", 1) !== -1 || hasTextAround(text) || hasBareAnd(text)) return null;
  const cases: TestCase[] = [];
  const open: { name: string; test: TestCase | null }[] = [];
  let roots = 0;
  for (const tag of tagsOf(text)) {
    if (tag === null) return null;
    if (tag.closing) {
      if (open.pop()?.name !== tag.name) return null;
      continue;
    }
    if (open.length === 0 && ++roots > 1) return null;
    const above = open.at(-1);
    above?.test?.children.add(tag.name);
    const test = tag.name === "testcase" && above ? { attributes: tag.attributes, parent: above.name, children: new Set<string>() } : null;
    if (test !== null) cases.push(test);
    if (!tag.empty) open.push({ name: tag.name, test });
  }
  return roots === 1 && open.length === 0 ? cases : null;
}

export function isWellFormed(text: string): boolean {
  return casesOf(text) !== null;
}

/** Whether there is text before the first element or after the last one. */
function hasTextAround(text: string): boolean {
  const first = text.search(/<(?![?!])/);
  const before = text.slice(0, Math.max(first, 0)).replace(/^<\?xml[^>]*\?>/, "");
  return (first > 0 && !before.includes("<") && before.trim() !== "") || text.slice(text.lastIndexOf(">") + 1).trim() !== "";
}

/** Whether an ampersand begins no entity, which XML allows only in a CDATA section. */
function hasBareAnd(text: string): boolean {
  return !text.includes("<![CDATA[") && /&(?!(?:lt|gt|amp|quot|apos|#\d{1,7}|#x[0-9a-fA-F]{1,6});)/.test(text);
}

/** Returns how a case ended, by the first element in `order` that it has. */
function statusOf({ children }: TestCase, order: readonly string[]): Status {
  const words = new Map<string, Status>([
    ["failure", "FAILED"],
    ["error", "ERROR"],
    ["skipped", "SKIPPED"],
  ]);
  const found = order.find((name) => children.has(name));
  return found === undefined ? "PASSED" : (words.get(found) as Status);
}

/** Reads several documents, each up to its `</testsuites>`. Skips a broken one. */
export function reports(log: string): Statuses {
  const found: Statuses = new Map();
  const begins = placesOf(log, "<?xml");
  const closes = placesOf(log, "</testsuites>");
  for (let start = begins(0); start !== -1; ) {
    const close = closes(start);
    if (close === -1) break;
    const end = close + "</testsuites>".length;
    for (const one of casesOf(log.slice(start, end)) ?? [])
      found.set(
        `${one.attributes.get("classname") ?? "None"}::${one.attributes.get("name") ?? "None"}`,
        statusOf(one, ["failure", "skipped", "error"]),
      );
    start = begins(end);
  }
  return found;
}

/** Reads testthat's one document. */
export function testthat(log: string): Statuses {
  const found: Statuses = new Map();
  const start = log.indexOf("<?xml");
  if (start === -1) return found;
  const end = log.indexOf("</testsuites>", start);
  for (const one of casesOf(end === -1 ? log.slice(start) : log.slice(start, end + "</testsuites>".length)) ?? []) {
    if (one.parent !== "testsuite") continue;
    const [name = "", suite = ""] = [one.attributes.get("name"), one.attributes.get("classname")];
    found.set(suite === "" ? name : `${suite}::${name}`, statusOf(one, ["failure", "error", "skipped"]));
  }
  return found;
}

/** Reads Gradle's files in a log, from the line with `<?xml` to the line with `</testsuite>`. */
export function gradleReports(log: string): Statuses {
  const found: Statuses = new Map();
  let block: string[] | null = null;
  for (const line of log.split("\n")) {
    const text = line.trim();
    if (text.startsWith("<?xml")) block = [line];
    else if (block !== null) block.push(line);
    if (block === null || text.startsWith("<?xml") || !text.startsWith("</testsuite>")) continue;
    for (const one of (block[0]?.startsWith("<?xml") ? casesOf(block.join("\n")) : null) ?? []) {
      const [name = "", suite = ""] = [one.attributes.get("name"), one.attributes.get("classname")];
      found.set(suite !== "" && name !== "" ? `${name} (${suite})` : name, statusOf(one, ["skipped", "failure", "error"]));
    }
    block = null;
  }
  return found;
}

/** How much is searched of a case whose end is missing. */
const longestOpenCase = 4_096;

/** Returns a search for the next `what`. Ask it with growing places only, so each part of the text is read once. */
function placesOf(text: string, what: string): (from: number) => number {
  let at = text.indexOf(what);
  return (from) => {
    if (at !== -1 && at < from) at = text.indexOf(what, from);
    return at;
  };
}

/** Reads test cases anywhere in a text that need not be XML. Their name is `classname name`. */
export function fragments(log: string): Statuses {
  const found: Statuses = new Map();
  const opens = /<testcase\b/g;
  const tagEnds = placesOf(log, ">");
  const caseEnds = placesOf(log, "</testcase>");
  for (let open = opens.exec(log); open; open = opens.exec(log)) {
    const end = tagEnds(opens.lastIndex);
    if (end === -1) break;
    const raw = log.slice(opens.lastIndex, end);
    const attributes = new Map(Array.from(raw.matchAll(/([\p{L}\p{N}_]+)="([^"]*)"/gu), ([, name, value]) => [name, value] as const));
    opens.lastIndex = end + 1;
    const name = attributes.get("name");
    if (!name) continue;
    let content = "";
    if (!raw.trim().endsWith("/")) {
      const close = caseEnds(end + 1);
      content = close === -1 ? log.slice(end + 1, end + 1 + longestOpenCase) : log.slice(end + 1, close);
      if (close !== -1) opens.lastIndex = close + "</testcase>".length;
    }
    const suite = attributes.get("classname");
    const status = content.includes("<failure")
      ? "FAILED"
      : content.includes("<error")
        ? "ERROR"
        : content.includes("<skipped")
          ? "SKIPPED"
          : "PASSED";
    found.set(suite ? `${suite} ${name}`.trim() : name, status);
  }
  return found;
}
