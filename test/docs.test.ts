/** The pages that people read: their links lead somewhere, and the glossary says each word once. */
import assert from "node:assert/strict";
import { existsSync, globSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { test } from "node:test";

const root = join(import.meta.dirname, "..");
const pages = globSync(["*.md", "docs/**/*.md", "bench/*.md", "exporters/*.md", "proxy/**/*.md"], { cwd: root });

test("every link of a page leads to a file, and to a heading where it names one", () => {
  for (const page of pages) {
    for (const [, target = "", anchor] of read(page).matchAll(/\]\(([^)\s#]*)(?:#([^)\s]*))?\)/g)) {
      if (/^[a-z]+:/.test(target)) continue;
      const file = target === "" ? page : relative(root, join(root, dirname(page), target));
      assert.ok(existsSync(join(root, file)), `${page} links to ${target}, which is not there`);
      if (anchor) assert.ok(headings(file).includes(anchor), `${page} links to #${anchor}, which is no heading of ${file}`);
    }
  }
});

test("README leads to every page of docs/, and to each page of its folder the page of the same name", () => {
  for (const page of pages.filter((page) => page.startsWith("docs/"))) {
    const above = `${dirname(page)}.md`;
    const from = pages.includes(above) ? above : "README.md";
    const linked = [...read(from).matchAll(/\]\(([^)#]*)/g)].map(([, target = ""]) => relative(root, join(root, dirname(from), target)));
    assert.ok(linked.includes(page), `${from} does not link ${page}`);
  }
});

/** What a reader takes in at one sitting. Pages that are made from the code are looked up, not read. */
const mostBytes = 12_288;

test("a page of docs/ that is written by hand holds at most 12 kB", () => {
  const long = pages.filter((page) => page.startsWith("docs/") && !isGenerated(page) && Buffer.byteLength(read(page)) > mostBytes);
  assert.deepEqual(long, []);
});

function isGenerated(page: string): boolean {
  return /\b[Gg]enerated by `/.test(read(page));
}

test("README says which Node a global install needs, and which one a checkout brings", () => {
  const { engines, devDependencies } = JSON.parse(read("package.json"));
  const wanted = /\d+/.exec(engines.node)?.[0];
  assert.equal(devDependencies.node.split(".")[0], wanted);
  assert.match(read("README.md"), new RegExp(`it brings the Node ${wanted} .*global install\\]\\S+ needs Node ${wanted} itself`));
});

test("the glossary has at most 60 words, in order, each once", () => {
  const words = [...read("docs/glossary.md").matchAll(/^\| ([^|]+?) \|/gm)].map((match) => match[1] ?? "").slice(2);
  assert.deepEqual(words, [...new Set(words)].sort());
  assert.ok(words.length > 0 && words.length <= 60, `${words.length} words`);
});

function read(page: string): string {
  return readFileSync(join(root, page), "utf8");
}

/** A page's headings as GitHub names them in links: lower case, spaces as hyphens, punctuation left out. */
function headings(page: string): string[] {
  return [...read(page).matchAll(/^#+ (.+)$/gm)].map((match) =>
    (match[1] ?? "")
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, "")
      .trim()
      .replace(/\s/g, "-"),
  );
}
