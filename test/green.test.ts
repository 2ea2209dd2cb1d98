import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, posix, relative } from "node:path";
import { type TestContext, test } from "node:test";
import { scratchFolder } from "./fakes/machine/scratch-folder.ts";
import { beginMarks, type FileResult, isCommonInput, noteGreen, recording, sayUnchanged, unchangedFiles } from "./green.ts";

const scratch = scratchFolder("green");
const root = join(import.meta.dirname, "..");
const file = "test/slow.test.ts";
const passed: FileResult = { passed: 2, failed: 0, skipped: 0, seconds: 60 };
const loads = ["module test/slow.test.ts", "module src/x.ts", "module src/gone.ts"];

/** A repository with one slow test, and a cache of its own. */
function repository(t: TestContext) {
  const place = join(scratch, t.name.replaceAll(/\W+/g, "-"));
  const { ALIDADE_CACHE: cache, ALIDADE_TEST_AGAIN: again } = process.env;
  t.after(() => {
    for (const [name, value] of Object.entries({ ALIDADE_CACHE: cache, ALIDADE_TEST_AGAIN: again }))
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
  });
  process.env.ALIDADE_CACHE = join(place, "cache");
  delete process.env.ALIDADE_TEST_AGAIN;
  const write = (path: string, text = `// ${path}`): void => {
    mkdirSync(join(place, posix.dirname(path)), { recursive: true });
    writeFileSync(join(place, path), text);
  };
  write(".gitignore", "cache\nlists\n");
  for (const path of [file, "src/x.ts", "src/gone.ts", "src/other.ts", "src/x.json", "docs/x.md", "examples/x.ts"]) write(path);
  execFileSync("git", ["init", "--quiet"], { cwd: place });
  const lists = join(place, "lists");
  mkdirSync(lists);
  return {
    write,
    remove: (path: string) => rmSync(join(place, path)),
    begin: () => beginMarks(lists, place),
    /** Notes a run that loaded the modules in `lines`. */
    note: (result = passed, { begun = beginMarks(lists, place), lines = loads } = {}) => {
      writeFileSync(join(lists, file.replaceAll("/", "-")), `${lines.join("\n")}\n`);
      noteGreen(file, result, begun, place);
    },
    unchanged: async () => (await unchangedFiles([file], place)).map(sayUnchanged),
  };
}

test("a slow file is not run again until something that it loaded, or that is no module, changes; the runner says so", async (t) => {
  const { write, remove, note, unchanged } = repository(t);
  assert.deepEqual(await unchanged(), []);
  note();
  const [said = ""] = await unchanged();
  assert.match(said, /^Not run again: test\/slow\.test\.ts: .* passed whole on 20\d\d-\S+ at commit \S+\. .*ALIDADE_TEST_AGAIN=1/);
  for (const path of ["src/other.ts", "src/new.ts", "docs/x.md", "test/other.test.ts"]) {
    write(path, "changed");
    assert.deepEqual(await unchanged(), [said], path);
  }
  for (const path of [file, "src/x.ts", "src/x.json", "examples/x.ts"]) {
    write(path, "changed");
    assert.deepEqual(await unchanged(), [], path);
    write(path);
    assert.deepEqual(await unchanged(), [said], path);
  }
  remove("src/gone.ts");
  assert.deepEqual(await unchanged(), []);
  write("src/gone.ts");
  write("src/new.json", "{}");
  assert.deepEqual(await unchanged(), []);
});

test("a file depends on the documents that its text names, or whose folder it names", async (t) => {
  const { write, note, unchanged } = repository(t);
  write(file, 'read("docs/x.md"); list("docs/guides");');
  write("docs/guides/a.md");
  note();
  for (const [path, kept] of [
    ["docs/y.md", 1],
    ["docs/x.md", 0],
    ["docs/guides/a.md", 0],
  ] as const) {
    write(path, "changed");
    assert.equal((await unchanged()).length, kept, path);
    write(path);
  }
});

test("the last three marks of a file are kept, so that going back needs no run", async (t) => {
  const { write, note, unchanged } = repository(t);
  for (const text of ["a", "b", "b", "c", "d"]) {
    write("src/x.ts", text);
    note();
  }
  const held: string[] = [];
  for (const text of ["a", "b", "c", "d"]) {
    write("src/x.ts", text);
    if ((await unchanged()).length > 0) held.push(text);
  }
  assert.deepEqual(held, ["b", "c", "d"]);
});

test("a run that was quick, failed, left a test out, was edited meanwhile or was not recorded leaves no mark", async (t) => {
  const { write, remove, begin, note, unchanged } = repository(t);
  for (const less of [{ seconds: 1 }, { failed: 1 }, { skipped: 1 }, { passed: 0 }]) note({ ...passed, ...less });
  note(passed, { lines: [] });
  for (const [path, text] of [
    ["src/x.ts", "edited"],
    ["src/x.json", "edited"],
  ] as const) {
    const begun = begin();
    write(path, text);
    note(passed, { begun });
    assert.deepEqual(await unchanged(), [], path);
    write(path);
  }
  const begun = begin();
  remove("src/gone.ts");
  note(passed, { begun });
  assert.deepEqual(await unchanged(), []);
});

test("a green file runs when it is asked to run again, and when what its tests asked for is gone", async (t) => {
  const { note, unchanged } = repository(t);
  note();
  assert.equal((await unchanged()).length, 1);
  process.env.ALIDADE_TEST_AGAIN = "1";
  assert.deepEqual(await unchanged(), []);
  delete process.env.ALIDADE_TEST_AGAIN;
  // The cache of this test holds no trainers.
  note(passed, { lines: [...loads, "need consumers"] });
  assert.deepEqual(await unchanged(), []);
});

test("what a test file, its commands, their children and threads load is recorded at once, and so is what it needs", () => {
  const lists = join(scratch, "lists");
  mkdirSync(lists);
  const place = join(scratch, "recorded.test.ts");
  const script = `
    import { spawnSync } from "node:child_process";
    import { Worker } from "node:worker_threads";
    import { missing } from ${JSON.stringify(join(root, "test/needs.ts"))};
    await missing("git");
    const start = (...argv) => spawnSync(process.execPath, argv, { encoding: "utf8" }).stdout;
    start(${JSON.stringify(join(root, "cli/cli.ts"))}, "config", "--help");
    start("-e", 'require("node:child_process").spawnSync(process.execPath, [${JSON.stringify(join(root, "base/version.ts"))}])');
    start("--input-type=module", "-e", 'await import(${JSON.stringify(join(root, "base/wire/sse.ts"))}); process.kill(process.pid, "SIGKILL")');
    new Worker(${JSON.stringify(join(root, "proxy/http/gate.ts"))}, { execArgv: [] });
  `;
  writeFileSync(place, script);
  const { status, stderr } = spawnSync(process.execPath, [place], {
    env: { ...process.env, NODE_OPTIONS: recording(lists) },
    encoding: "utf8",
  });
  assert.equal(status, 0, stderr);
  const lines = readFileSync(join(lists, relative(root, place).replaceAll("/", "-")), "utf8").split("\n");
  const missed = ["cli/cli.ts", "cli/commands/config.ts", "base/version.ts", "base/wire/sse.ts", "proxy/http/gate.ts", "test/needs.ts"];
  assert.deepEqual(
    [...missed.map((path) => `module ${path}`), "need git"].filter((line) => !lines.includes(line)),
    [],
  );
  assert.ok(!lines.some((line) => line.includes("exporters/areal.ts") || line.includes("node_modules")));
});

test("what runs unrecorded imports nothing but what every file depends on", () => {
  const started = [
    "practice/server.ts",
    "graders/bounded/answer-child.ts",
    "sandboxes/desktop/inside/computer-server.ts",
    "sandboxes/desktop/inside/screen.ts",
    "sandboxes/door/forwarder.ts",
    ...["episode", "solve"].map((name) => `tasks/tool-sets/miniwob/service/${name}.js`),
    "test/interop/trainers/talk.ts",
    ...["chat", "talking"].map((name) => `test/fakes/rollouts/${name}-harness.ts`),
  ];
  assert.deepEqual(
    importedBy(started).filter((path) => !isCommonInput(path)),
    [],
  );
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
