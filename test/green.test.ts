import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, posix } from "node:path";
import { type TestContext, test } from "node:test";
import { scratchFolder } from "./fakes/machine/scratch-folder.ts";
import {
  beginSuites,
  type FileResult,
  filesOf,
  isInput,
  noteGreen,
  type Suite,
  sayUnchanged,
  suites,
  suitesOfFiles,
  unchangedSuites,
} from "./green.ts";

const scratch = scratchFolder("green");
const root = join(import.meta.dirname, "..");
const suite: Suite = { name: "heavy", tests: ["test/heavy/*.test.ts"], inputs: ["src/**", "test/heavy/**"], needs: [] };
const [a, b] = ["test/heavy/a.test.ts", "test/heavy/b.test.ts"] as const;
const passed: FileResult = { passed: 2, failed: 0, skipped: 0, seconds: 60 };

/** A repository with one suite, and a cache of its own. */
function repository(t: TestContext): { place: string; write: (path: string, text: string) => void; unchanged: () => Promise<string[]> } {
  const place = join(scratch, t.name.replaceAll(/\W+/g, "-"));
  const { ALIDADE_CACHE: cache, ALIDADE_TEST_AGAIN: again } = process.env;
  t.after(() => {
    for (const [name, value] of Object.entries({ ALIDADE_CACHE: cache, ALIDADE_TEST_AGAIN: again }))
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
  });
  process.env.ALIDADE_CACHE = join(place, "cache");
  delete process.env.ALIDADE_TEST_AGAIN;
  const write = (path: string, text: string): void => {
    mkdirSync(join(place, posix.dirname(path)), { recursive: true });
    writeFileSync(join(place, path), text);
  };
  for (const path of ["src/x.ts", "src/x.md", a, b, "other.ts"]) write(path, `// ${path}`);
  return { place, write, unchanged: async () => (await unchangedSuites([a, b], [suite], place)).map(sayUnchanged) };
}

test("a suite that passed whole is not run again until a file that it depends on changes, and the runner says so", async (t) => {
  const { place, write, unchanged } = repository(t);
  assert.deepEqual(await unchanged(), []);
  noteGreen(new Map([a, b].map((file) => [file, passed])), beginSuites([a, b], [suite], place), place);
  const [said = ""] = await unchanged();
  assert.match(
    said,
    /^Not run again: heavy \(.*a\.test\.ts, .*b\.test\.ts\): .* passed whole on 20\d\d-\S+ at commit \S+\. .*ALIDADE_TEST_AGAIN=1/,
  );
  write("other.ts", "changed");
  write("src/x.md", "changed");
  assert.deepEqual(await unchanged(), [said], "it depends on neither");
  write("src/x.ts", "changed");
  assert.deepEqual(await unchanged(), []);
  write("src/x.ts", "// src/x.ts");
  assert.deepEqual(await unchanged(), [said]);
  write("src/new.ts", "");
  assert.deepEqual(await unchanged(), []);
});

test("a run that was cut down, failed, left a test out or was edited meanwhile leaves no mark", async (t) => {
  const { place, write, unchanged } = repository(t);
  const begun = beginSuites([a, b], [suite], place);
  const results: Record<string, FileResult>[] = [
    { [a]: passed },
    { [a]: passed, [b]: { ...passed, failed: 1 } },
    { [a]: passed, [b]: { ...passed, skipped: 1 } },
    { [a]: passed, [b]: { ...passed, passed: 0 } },
  ];
  for (const one of results) noteGreen(new Map(Object.entries(one)), begun, place);
  assert.deepEqual([...beginSuites([a], [suite], place)], []);
  write("src/x.ts", "edited while it ran");
  noteGreen(new Map([a, b].map((file) => [file, passed])), begun, place);
  assert.deepEqual(await unchanged(), []);
  write("src/x.ts", "// src/x.ts");
  assert.deepEqual(await unchanged(), []);
});

test("a green suite runs when it is asked to run again, when only some of its files are, and when what it needs is gone", async (t) => {
  const { place } = repository(t);
  const lost: Suite = { ...suite, needs: ["consumers"] };
  for (const one of [suite, lost]) noteGreen(new Map([a, b].map((file) => [file, passed])), beginSuites([a, b], [one], place), place);
  assert.equal((await unchangedSuites([a, b], [suite], place)).length, 1);
  assert.deepEqual(await unchangedSuites([a], [suite], place), []);
  // The cache of this test holds no trainers.
  assert.deepEqual(await unchangedSuites([a, b], [lost], place), []);
  process.env.ALIDADE_TEST_AGAIN = "1";
  assert.deepEqual(await unchangedSuites([a, b], [suite], place), []);
});

test("a suite has its mark when the last of its files ends, whatever becomes of the run", async (t) => {
  const { place, unchanged } = repository(t);
  const begun = beginSuites([a, b], [suite], place);
  const results = new Map<string, FileResult>([[a, passed]]);
  noteGreen(results, begun, place);
  assert.deepEqual(await unchanged(), []);
  noteGreen(results.set(b, passed), begun, place);
  assert.equal((await unchanged()).length, 1);
  assert.equal(begun.size, 0, "it is hashed once");
});

test("a slow file of no suite depends on all but documents and other tests, and a quick one is always run", async (t) => {
  const { place, write } = repository(t);
  execFileSync("git", ["init", "--quiet"], { cwd: place });
  write(".gitignore", "cache\n");
  const files = ["test/slow.test.ts", "test/quick.test.ts"];
  for (const file of files) write(file, 'need(t, "git")');
  const known = suitesOfFiles([a, ...files], [suite], place);
  assert.deepEqual(
    known.map(({ tests, needs }) => [tests[0], needs]),
    files.map((file) => [file, ["git"]]),
  );
  const unchanged = async (): Promise<string[]> => (await unchangedSuites(files, known, place)).flatMap((one) => one.files);
  const begun = beginSuites(files, known, place);
  const results = files.map((file) => [file, { ...passed, seconds: file === files[0] ? 60 : 1 }] as const);
  noteGreen(new Map(results), begun, place);
  assert.deepEqual(await unchanged(), ["test/slow.test.ts"]);
  write("src/x.md", "changed");
  write(a, "changed");
  assert.deepEqual(await unchanged(), ["test/slow.test.ts"]);
  write("other.ts", "changed");
  assert.deepEqual(await unchanged(), []);
});

test("each heavy suite has files, and depends on nothing but its inputs", () => {
  for (const one of suites) {
    const files = filesOf(one, root);
    assert.notDeepEqual(files, [], one.name);
    assert.deepEqual(
      importedBy(files).filter((path) => !isInput(one, path)),
      [],
      one.name,
    );
  }
});

/** The files and all that they import, directly or not. */
function importedBy(files: string[]): string[] {
  const seen = new Set(files);
  for (const path of seen)
    for (const [, to = ""] of readFileSync(join(root, path), "utf8").matchAll(/(?:\bfrom|\bimport)\s*\(?\s*"(\.{1,2}\/[^"]+)"/g)) {
      const target = posix.join(posix.dirname(path), to);
      if (existsSync(join(root, target))) seen.add(target);
    }
  return [...seen];
}
