/** The rules of the house that a linter can only keep if it is asked to: that they are on, and those it does not know. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, globSync, readFileSync } from "node:fs";
import { copyFile, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join, relative } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";

const root = join(import.meta.dirname, "..");

/** Imports point to earlier tiers only; rooms of one tier never see each other. A room may lie in another one, and is one by itself. */
const tiers = [
  ["base/schema"],
  ["base/media"],
  ["base/tokens", "base/wire", "base/host", "base/statistics"],
  ["proxy/dialects", "engines", "proxy/store", "reconstruct", "base/files", "practice", "service/ledger", "service/blobs"],
  ["sandboxes"],
  ["exporters", "harnesses", "graders", "proxy", "service/watch", "service/figures"],
  ["tasks"],
  ["rollouts"],
  ["service", "service/nodes"],
  ["view"],
  ["cli"],
];
const rooms = tiers.flat();
/** What `ls` shows. */
const storeys = [...new Set(rooms.map(storeyOf))];
const mostStoreys = 16;
/** Each room may import these. */
const everywhere = ["base/errors.ts", "base/version.ts"];
/** No room may import these. */
const tops = ["index.ts"];

const sources = globSync(["*.ts", ...[...storeys, "examples", "bench", "test"].map((folder) => `${folder}/**/*.ts`)], { cwd: root });
const production = sources.filter((path) => !/^(test|bench)\//.test(path));

test("imports point to earlier tiers only", () => {
  const inRooms = sources.filter((path) => roomOf(path) !== undefined);
  const wrong = inRooms.flatMap((path) => {
    const targets = importedFiles(path).filter((target) => !mayImport(roomOf(path) ?? "", target));
    return targets.map((target) => `${path} imports ${target}`);
  });
  assert.deepEqual(wrong, []);
  assert.ok(inRooms.some((path) => importedFiles(path).length > 0));
});

test("the rule on imports refuses what points up or sideways, and no other", () => {
  const refused = (from: string) => [...rooms.map((room) => `${room}/x.ts`), ...tops].filter((file) => !mayImport(from, file));
  assert.deepEqual(refused("base/schema"), [...rooms.slice(1).map((room) => `${room}/x.ts`), ...tops]);
  assert.deepEqual(refused("rollouts"), ["service/x.ts", "service/nodes/x.ts", "view/x.ts", "cli/x.ts", ...tops]);
  for (const tier of tiers.slice(1)) {
    const beside = tier.map((room) => `${room}/x.ts`);
    for (const room of tier)
      assert.deepEqual(
        beside.filter((file) => refused(room).includes(file)),
        beside.filter((file) => file !== `${room}/x.ts`),
      );
  }
  assert.ok(mayImport("base/schema", "base/errors.ts"));
});

/** The checks of plug-ins are loaded by the one verb that runs them, so they are no part of a front door. */
const besideTheDoor = ["contract.ts"];

test("a room is entered by a front door, the `index.ts` of the room or of a folder in it", () => {
  const past = production
    .filter((path) => !path.startsWith("examples/"))
    .flatMap((path) =>
      importedFiles(path)
        .filter((target) => isPastDoor(path, target))
        .map((target) => `${path} imports ${target}`),
    );
  assert.deepEqual(past, []);
  assert.ok(isPastDoor("rollouts/x.ts", "graders/grade.ts"));
  assert.ok(!isPastDoor("rollouts/x.ts", "graders/work/index.ts"));
  assert.ok(!isPastDoor("rollouts/x.ts", "base/wire/sse.ts"), "each file of `base/` stands for itself");
});

test("a front door only hands on, and only what somebody outside takes", () => {
  const doors = new Set(production.flatMap((path) => importedFiles(path).filter((target) => isDoor(path, target))));
  for (const door of doors) {
    const { handed, rest } = exportsOfDoor(readFileSync(join(root, door), "utf8"));
    assert.equal(rest, "", `${door} holds more than exports`);
    const taken = new Set(sources.flatMap((path) => namesTaken(path, door)));
    assert.deepEqual(
      handed.filter((name) => !taken.has(name)),
      [],
      `${door} hands on what nobody takes`,
    );
  }
});

test("the top shows at most sixteen storeys of source, and none imports another in a circle, of types either", async () => {
  const shown = (await readdir(root, { withFileTypes: true })).filter((entry) => entry.isDirectory()).map(({ name }) => name);
  const sourceFolders = shown.filter((name) => production.some((path) => path.startsWith(`${name}/`) && !path.startsWith("examples/")));
  assert.deepEqual(sourceFolders.sort(), storeys.sort());
  assert.ok(storeys.length <= mostStoreys, `${storeys.length} storeys`);
  assert.deepEqual(circleOf(storeyImports()), null);
});

test("no files import each other in a circle, of types either", () => {
  const imports = new Map(production.map((path) => [path, importedFiles(path)]));
  assert.deepEqual(circleOf(imports), null);
});

/** Outside of `sandboxes/` code asks what a backend can do. Its name and the word of its isolation are for records and people. */
const namesABackend =
  /\bisolation\s*[!=]==?\s*["'`]|["'`]\s*[!=]==?\s*\S*\bisolation\b|\bbackend(?:\.name)?\s*[!=]==?\s*["'`]|\bpickBackend\(\s*["'`]/;

test("no code outside of sandboxes compares a backend or its isolation with a word, so that a user's own can take any place", () => {
  // The two words of records that are ours.
  const others = production.filter((path) => !/^(sandboxes|bench|examples)\/|^base\/schema\/rollout\.ts$/.test(path));
  assert.deepEqual(
    others.filter((path) => namesABackend.test(readFileSync(join(root, path), "utf8"))),
    [],
  );
  for (const line of [
    'capabilities.isolation === "none"',
    '"shared" !== facts.isolation',
    'backend.name === "docker"',
    'pickBackend("docker", signal)',
  ])
    assert.ok(namesABackend.test(line), line);
  assert.ok(!namesABackend.test('const isolation = isIsolated(one) ? "shared" : "none"; pickBackend(name, signal)'));
});

test("no files of a Python package import each other in a circle, inside of functions either", () => {
  const files = globSync("{graders,clients}/**/*.py", { cwd: root });
  const relativeImport = /^\s*from \.(\w+) import/gm;
  const imports = files.map((path): [string, string[]] => {
    const names = [...readFileSync(join(root, path), "utf8").matchAll(relativeImport)].map(([, name]) => `${dirname(path)}/${name}.py`);
    return [path, names];
  });
  assert.ok(imports.some(([, names]) => names.length > 0));
  assert.deepEqual(circleOf(new Map(imports)), null);
});

test("the rule on circles finds one of three names, and not what hangs on it", () => {
  const circle = circleOf(
    new Map([
      ["a", ["b"]],
      ["b", ["c", "d"]],
      ["c", ["a"]],
      ["d", []],
    ]),
  );
  assert.deepEqual(circle?.toSorted(), ["a", "b", "c"]);
});

test("the linter refuses cycles", async () => {
  const cycles = await lint(
    {
      "base/tokens/a.ts": `import { b } from "./b.ts";\nexport const a = () => b;\n`,
      "base/tokens/b.ts": `import { a } from "./a.ts";\nexport const b = () => a;\n`,
    },
    "lint/suspicious/noImportCycles",
  );
  assert.deepEqual([...cycles.keys()], ["base/tokens/a.ts", "base/tokens/b.ts"]);
});

test("dockerode is imported in sandboxes only, vendor SDKs in engines only, tests aside", async () => {
  const homes: Record<string, RegExp> = {
    dockerode: /^sandboxes\//,
    "tar-stream": /^base\/files\//,
    openai: /^engines\//,
    "@anthropic-ai/sdk": /^engines\//,
    "@google/genai": /^engines\//,
    commander: /^cli\//,
  };
  for (const path of production) {
    for (const name of importedPackages(await readFile(join(root, path), "utf8"))) {
      const home = homes[name];
      if (home !== undefined) assert.match(path, home, `${path} imports ${name}`);
    }
  }
});

test("an image is asked for by `imageAt` alone, which lets nothing but a name into the request's path", async () => {
  for (const path of production)
    if (path !== "sandboxes/docker/images/image-at.ts") assert.doesNotMatch(await readFile(join(root, path), "utf8"), /\bgetImage\(/, path);
});

/** Forms that leave a stream's error without a listener, which ends the process, and the files that may have them. */
const bareStreams: [what: RegExp, instead: string, allowed: string[]][] = [
  [
    // Schemas have pipes of their own.
    /\.pipe\((?!\s*(?:z\.|[A-Z]))/,
    "pipeline of node:stream/promises",
    // Runs inside the sandbox and listens itself; hands a child's own output to the terminal.
    ["sandboxes/door/join-connections.ts", "cli/commands/proxy/record.ts"],
  ],
  [
    /\.on\("data"/,
    "BoundedOutput.follow, for await or pipeline",
    // Each listens for errors beside it.
    [
      "base/host/bounded-output.ts",
      "sandboxes/door/forwarder.ts",
      "sandboxes/door/join-connections.ts",
      "sandboxes/docker/hosts/ssh-connection.ts",
      "sandboxes/network/forward-proxy.ts",
      "tasks/made/run-git.ts",
      "graders/runners/line-thread.ts",
      "graders/runners/tape-runner.ts",
    ],
  ],
  [/from "tar-stream"/, "packTar and readTar", ["base/files/read-tar.ts"]],
];

test("streams are read and written in ways that hand on their errors", () => {
  for (const [what, instead, allowed] of bareStreams) {
    const found = production.filter((path) => !path.startsWith("bench/") && what.test(readFileSync(join(root, path), "utf8")));
    assert.deepEqual(found.sort(), [...allowed].sort(), `use ${instead} in the place of ${what}`);
  }
});

test("production code imports only what is in dependencies", async () => {
  const manifest = JSON.parse(await readFile(join(root, "package.json"), "utf8"));
  for (const path of production) {
    for (const name of importedPackages(await readFile(join(root, path), "utf8")))
      assert.ok(name in manifest.dependencies, `${path} imports ${name}, which is not in dependencies`);
  }
});

test("a file is named after its idea, in kebab-case", () => {
  for (const path of sources) {
    const name = basename(path).replace(/(\.test)?\.ts$/, "");
    assert.match(name, /^[a-z0-9]+(-[a-z0-9]+)*$/, path);
    assert.doesNotMatch(name, /^(utils?|helpers?|misc|common|stuff)$/, `${path}: what is its idea?`);
  }
});

/** Folders of plug-ins: each file is one, and the registry lists them. */
const shelves = ["exporters"];

test("a folder of sources holds few enough files to be read at a glance: more want rooms", () => {
  const flat = new Map<string, number>();
  for (const path of production) flat.set(dirname(path), (flat.get(dirname(path)) ?? 0) + 1);
  const full = [...flat].filter(([folder, count]) => count > 24 && !shelves.includes(folder)).map(([folder]) => folder);
  assert.deepEqual(full, []);
});

test("the tests of a room lie in a room of the same name, and those of the whole in a folder of their own kind", () => {
  const own = /^test\/(contracts|docker|e2e|harness|interop)\//;
  const tests = sources.filter((path) => path.endsWith(".test.ts") && dirname(path) !== "test" && !own.test(path));
  const homeless = tests.filter((path) => !existsSync(join(root, relative("test", dirname(path)))));
  assert.deepEqual(homeless, []);
});

test("a file that is named by its place beside the one that names it is there", async () => {
  const beside = /(?:new URL\(|join\(import\.meta\.dirname, )"([^"$]+)"/g;
  for (const path of sources)
    for (const [, name = ""] of (await readFile(join(root, path), "utf8")).matchAll(beside))
      if (/^[./].*\.\w+$/.test(name)) assert.ok(existsSync(join(root, dirname(path), name)), `${path} names ${name}`);
});

test("a type has one name and a name one type: none is declared in two files", () => {
  const declared = new Map<string, string[]>();
  for (const path of production.filter((path) => !path.startsWith("examples/")))
    for (const name of declaredTypes(readFileSync(join(root, path), "utf8"))) declared.set(name, [...(declared.get(name) ?? []), path]);
  assert.deepEqual(
    [...declared].filter(([, paths]) => paths.length > 1),
    [],
  );
});

/** How English hides the subject: a genitive in front, and a person where a process acts. */
const riddles = [/(?:\/\*\*|\/\/|\/\*\*\n \*)\s*Of \w/g, /\b(?:no|some|every|any)body\b|\bwho(?:m?ever)\b|\b(?:some|every|any)one\b/gi];

test("comments and messages say the subject first, and call no process a person", () => {
  const found = sources
    .filter((path) => path !== "test/house.test.ts")
    .flatMap((path) => {
      const text = readFileSync(join(root, path), "utf8");
      return riddles.flatMap((riddle) => text.match(riddle) ?? []).map((words) => `${path}: ${words}`);
    });
  assert.deepEqual(found, [], "name what acts, and begin with it");
});

test("the rule on riddles finds them in comments and messages", () => {
  const found = (text: string) => riddles.some((riddle) => text.match(riddle) !== null);
  for (const text of [
    "/** Of the sampled token. */",
    "// Of two",
    "/**\n * Of a call",
    "asked by Nobody",
    "for whoever reads",
    "somebody's",
  ])
    assert.ok(found(text), text);
  for (const text of ["/** The sampled token's. */", "a list Of", "the body", "whose"]) assert.ok(!found(text), text);
});

test("every folder of sources is compiled and published, also a file that is only started", async () => {
  for (const file of ["tsconfig.json", "tsconfig.build.json"]) {
    const { include } = JSON.parse(await readFile(join(root, file), "utf8")) as { include: string[] };
    const left = production
      .map((path) => path.split("/")[0] ?? "")
      .filter((folder) => !folder.endsWith(".ts") && !include.includes(folder));
    assert.deepEqual([...new Set(left)], [], file);
  }
});

test("no string names a .ts file: the published package has .js there", async () => {
  for (const path of production.filter((path) => !path.startsWith("examples/"))) {
    const lines = (await readFile(join(root, path), "utf8")).split("\n");
    const named = lines.filter((line) => /["'`/][\w./-]*\w\.ts["'`]/.test(line) && !/\b(from|import)\b|^\s*(\*|\/\/|\/\*)/.test(line));
    assert.deepEqual(named, [], `${path}: take the extension from import.meta.filename`);
  }
});

test("text is read by readJson alone: the runtime's own parser confuses keys with escapes", async () => {
  // They read no keys of others, or are what readJson is made of.
  const own = ["base/schema/read-json.ts", "base/schema/exact-json.ts", "base/wire/written-numbers.ts", "base/version.ts"];
  const without = ["base/tokens/id-text.ts", "engines/vllm/token-chunk.ts", "graders/runners/sealed-report.ts", "graders/runners/peer.ts"];
  for (const path of production.filter((path) => ![...own, ...without].includes(path))) {
    const calls = (await readFile(join(root, path), "utf8"))
      .split("\n")
      .filter((line) => /\bJSON\.parse\(|\.json\(\)/.test(line) && !/^\s*\*/.test(line));
    assert.deepEqual(calls, [], path);
  }
});

test("no table of a module is indexed by a word: constructor and __proto__ are found on every object", async () => {
  for (const path of production)
    assert.deepEqual(wordLookups(await readFile(join(root, path), "utf8")), [], `${path}: use a Map or Object.hasOwn`);
});

test("the rule about tables finds each way to write such a lookup, and leaves keys alone that the types prove", () => {
  const table = "const modes: Record<string, string> = { AUTO: 'auto' };\n";
  const lookups = [
    "modes[mode]",
    "modes[body.mode]",
    "modes[`$" + "{x}`]",
    "modes?.[mode]",
    "mode in modes",
    "(other as Record<string, string>)[mode]",
  ];
  for (const lookup of lookups) assert.deepEqual(wordLookups(`${table}const found = ${lookup};\n`), [lookup], lookup);
  for (const lookup of ['modes["AUTO"]', "modes.AUTO", "Object.hasOwn(modes, mode) ? modes[mode] : null", "forms[kind]"])
    assert.deepEqual(wordLookups(`${table}const forms: Record<Kind, string> = {};\nconst found = ${lookup};\n`), [], lookup);
  for (const declared of [
    "export const modes: Partial<Record<string, string>> = {",
    "  readonly modes: Record<string, string> = {",
    "const modes: { [name: string]: string } = {",
  ])
    assert.deepEqual(wordLookups(`${declared}};\nfind(modes[mode]);\n`), ["modes[mode]"], declared);
});

test("a promise is awaited before the scope that it needs is released", async () => {
  const texts = await Promise.all(production.map(async (path) => [path, await readFile(join(root, path), "utf8")] as const));
  const names = promising(texts.map(([, source]) => source));
  const unawaited = texts.flatMap(([path, source]) => unawaitedReturns(source, names).map((line) => `${path}: ${line}`));
  assert.deepEqual(unawaited, [], "write return await");
});

test("the rule about scopes finds a promise that is returned as it is, also from a block, and no other return", () => {
  const names = promising(["async function read(): Promise<string> {}\n  async #take(): Promise<void> {}\nfunction size(): number {}\n"]);
  const found = (line: string) =>
    unawaitedReturns(`async function one() {\n  await using scope = await open();\n  ${line}\n}\n`, names).length > 0;
  for (const line of [
    "return read(scope);",
    "if (scope.ok) return new Reader(scope).read();",
    "return this.#take();",
    "{\n    return read(scope);\n  }",
  ])
    assert.equal(found(line), true, line);
  for (const line of [
    "return await read(scope);",
    "return size(scope);",
    "each(async () => {\n    return read(scope);\n  });",
    "}\nasync function b() {\n  return read();",
  ])
    assert.equal(found(line), false, line);
});

test("each folder of plug-ins says what one is, and lists them under unique names", async () => {
  const registries = [
    ["proxy/dialects", "dialect", "dialects"],
    ["engines", "engine", "engines"],
    ["sandboxes", "sandbox", "backends"],
    ["harnesses", "harness", "harnesses"],
    ["graders", "grader", "graders"],
    ["exporters", "exporter", "exporters"],
    ["tasks", "task-format", "taskFormats"],
  ] as const;
  for (const [folder, noun, list] of registries) {
    assert.ok((await readdir(join(root, folder))).includes(`${noun}.ts`), `${folder}/${noun}.ts says what a ${noun} is`);
    const module = (await import(join(root, folder, "index.ts"))) as Record<string, unknown>;
    const registry = module[list] as readonly { name?: string; kind?: string }[];
    assert.ok(Array.isArray(registry) && registry.length > 0, `${folder}/index.ts exports the list ${list}`);
    const names = registry.map((entry) => entry.name ?? entry.kind);
    assert.deepEqual([...new Set(names)], names, `${list}: names are unique`);
    assert.ok(!names.includes(undefined), `${list}: each has a name`);
  }
});

test("the lock file names no host of a registry, and every dependency is pinned", async () => {
  assert.doesNotMatch(await readFile(join(root, "package-lock.json"), "utf8"), /"resolved": "https?:/);
  const manifest = JSON.parse(await readFile(join(root, "package.json"), "utf8"));
  for (const [name, version] of Object.entries({ ...manifest.dependencies, ...manifest.devDependencies }))
    assert.match(String(version), /^\d+\.\d+\.\d+$/, `${name} ${version}`);
  assert.equal((await readFile(join(root, ".node-version"), "utf8")).trim(), manifest.devDependencies.node);
});

test("loading a test file does nothing: no file, no process, no listener, no other folder or environment", {
  timeout: 300_000,
}, async () => {
  const files = sources.filter((path) => path.endsWith(".test.ts")).map((path) => join(root, path));
  assert.deepEqual(await doneAtImport(files), []);
});

test("what a test file may not do while it is loaded is seen, each with its file", { timeout: 300_000 }, async () => {
  const folder = await mkdtemp(join(tmpdir(), "alidade-at-import-"));
  try {
    const probes = {
      "harmless.test.ts": `import { test } from "node:test";\ntest("later", () => process.chdir("/"));\n`,
      "chdir.test.ts": `process.chdir("/");\n`,
      "chdir-to-nowhere.test.ts": `process.chdir("/no/such/cache");\n`,
      "environment.test.ts": `process.env.ALIDADE_PROBE = "1";\n`,
      "file.test.ts": `import { mkdtemp } from "node:fs/promises";\nawait mkdtemp("${folder}/");\n`,
      "listener.test.ts": `import { createServer } from "node:net";\nawait new Promise((resolve) => createServer().listen(0, resolve));\n`,
      "process.test.ts": `import { execFileSync } from "node:child_process";\nexecFileSync("true");\n`,
    };
    for (const [name, source] of Object.entries(probes)) await writeFile(join(folder, name), source);
    const seen = await doneAtImport(Object.keys(probes).map((name) => join(folder, name)));
    assert.deepEqual(
      seen.map((line) => basename(line.split(": ")[0] ?? "")),
      Object.keys(probes).filter((name) => name !== "harmless.test.ts"),
      seen.join("\n"),
    );
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});

/** Loads the files one after the other, as a machine with an empty home; a line for each that did something. */
async function doneAtImport(files: string[]): Promise<string[]> {
  const home = await mkdtemp(join(tmpdir(), "alidade-home-"));
  const { ALIDADE_CACHE: _cache, XDG_CACHE_HOME: _xdg, ...env } = process.env;
  try {
    const argv = ["--permission", "--allow-fs-read=*", join(root, "test/load-alone.ts"), ...files];
    const { stdout } = await promisify(execFile)(process.execPath, argv, { env: { ...env, HOME: home }, maxBuffer: 1 << 26 });
    return stdout.split("\n").filter((line) => line !== "");
  } finally {
    await rm(home, { recursive: true, force: true });
  }
}

/** Files of the house that a source imports, from its root. */
function importedFiles(path: string): string[] {
  const specifiers = [...readFileSync(join(root, path), "utf8").matchAll(/(?:\bfrom|\bimport)\s*\(?\s*"(\.{1,2}\/[^"]+)"/g)];
  return specifiers.map((match) => relative(root, join(root, dirname(path), match[1] ?? "")));
}

function mayImport(from: string, file: string): boolean {
  if (everywhere.includes(file)) return true;
  const to = roomOf(file);
  if (to === undefined) return false;
  const tier = (room: string) => tiers.findIndex((names) => names.includes(room));
  return from === to || tier(to) < tier(from);
}

/** Whether an import goes from one room to another. Each file of `base/` stands for itself, so none of its rooms has a door. */
function isAcrossRooms(from: string, file: string): boolean {
  const to = roomOf(file);
  return to !== undefined && storeyOf(file) !== "base" && roomOf(from) !== to;
}

function isDoor(from: string, file: string): boolean {
  return isAcrossRooms(from, file) && basename(file) === "index.ts";
}

function isPastDoor(from: string, file: string): boolean {
  return isAcrossRooms(from, file) && basename(file) !== "index.ts" && !besideTheDoor.includes(basename(file));
}

const handedOn = /export (?:type )?\{([^}]*)\} from "[^"]+";/g;

/** The names that a front door hands on, and what else its file holds, comments aside. */
function exportsOfDoor(source: string): { handed: string[]; rest: string } {
  const handed = [...source.matchAll(handedOn)].flatMap((match) => namesIn(match[1] ?? "").map(({ shown }) => shown));
  return {
    handed,
    rest: source
      .replace(handedOn, "")
      .replace(/\/\*.*?\*\//gs, "")
      .trim(),
  };
}

/** The names that a file takes from a front door. */
function namesTaken(path: string, door: string): string[] {
  const source = readFileSync(join(root, path), "utf8");
  const forms = [/(?:import|export)(?: type)? \{([^}]*)\} from "(\.{1,2}\/[^"]+)"/g, /\{([^}]*)\} = await import\("(\.{1,2}\/[^"]+)"\)/g];
  const taken = forms.flatMap((form) => [...source.matchAll(form)]);
  return taken
    .filter(([, , specifier = ""]) => relative(root, join(root, dirname(path), specifier)) === door)
    .flatMap(([, names = ""]) => namesIn(names).map(({ own }) => own));
}

/** The names between the braces of an import or export: as they are where they come from, and as they are called after it. */
function namesIn(braces: string): { own: string; shown: string }[] {
  const names = braces.split(",").map((name) => name.trim().replace(/^type /, ""));
  return names.filter(Boolean).map((name) => {
    const [own = "", shown = own] = name.split(" as ");
    return { own, shown };
  });
}

/** The innermost room that a file lies in. */
function roomOf(path: string): string | undefined {
  return rooms.filter((room) => path.startsWith(`${room}/`)).sort((one, other) => other.length - one.length)[0];
}

function storeyOf(path: string): string {
  return path.split("/")[0] ?? "";
}

/** The storeys that each storey imports. */
function storeyImports(): Map<string, string[]> {
  const inside = sources.filter((path) => storeys.includes(storeyOf(path)));
  const importedBy = (storey: string) =>
    inside
      .filter((path) => storeyOf(path) === storey)
      .flatMap(importedFiles)
      .map(storeyOf);
  return new Map(storeys.map((storey) => [storey, [...new Set(importedBy(storey))].filter((other) => other !== storey)]));
}

/**
 * Names that import each other in a circle; null: there is none. Names that import nothing left, and those that nothing left
 * imports, are taken away until none of either is there.
 */
function circleOf(imports: Map<string, string[]>): string[] | null {
  const left = new Set(imports.keys());
  const drop = (isEnd: (name: string) => boolean): void => {
    for (const name of left) if (isEnd(name)) left.delete(name);
  };
  for (let before = Number.NaN; left.size !== before; ) {
    before = left.size;
    drop((name) => !imports.get(name)?.some((other) => left.has(other)));
    const imported = new Set([...left].flatMap((name) => imports.get(name) ?? []));
    drop((name) => !imported.has(name));
  }
  return left.size === 0 ? null : [...left];
}

/**
 * Where a source looks a word up on a plain object: on a module's constant or a class's field that is declared with any
 * word for a key (`Record<string, …>`), or by a cast to one. A table with keys of a closed type is safe: the compiler
 * refuses other words. A lookup behind `Object.hasOwn` on the same line is none.
 */
function wordLookups(source: string): string[] {
  const anyWord = String.raw`(?:Readonly<|Partial<)*Record<string, (?!unknown>)|\{ \[\w+: string\]`;
  const declared = source.matchAll(
    new RegExp(String.raw`^(?:(?:export )?const|  (?:private )?(?:readonly )?(?=#?\w+: .* = \{)) ?(#?\w+): (?:${anyWord}).* = \{`, "gm"),
  );
  const names = [...declared].map((match) => match[1] ?? "");
  const named = names.map((name) => String.raw`(?<![\w.#]|\bconst )(?:this\.)?${name}(?:\?\.)?\[(?!["'\d])[^\]]*\]|\b\w+ in ${name}\b`);
  const lookup = new RegExp([...named, String.raw`\(\w+ as Record<string, (?!unknown>)[^()]*>\)\[(?!["'\d])[^\]]*\]`].join("|"), "g");
  return source
    .split("\n")
    .filter((line) => !/\bObject\.hasOwn\(|\bfor \(const \w+ in /.test(line))
    .flatMap((line) => [...line.matchAll(lookup)].map((match) => match[0]));
}

/** Names of asynchronous functions and methods. One that is declared as both counts: an `await` too many does no harm. */
function promising(sources: string[]): Set<string> {
  const declared = /\basync (?:function\*? )?(#?\w+)(?:<[^(]*>)?\(|\b(?:const|readonly) (#?\w+)(?:: [^=]+)? = async\b/g;
  const named = sources.flatMap((source) => [...source.matchAll(declared)].map((match) => match[1] ?? match[2] ?? ""));
  // `of` makes a value of its arguments wherever it is a method.
  return new Set(["readFile", "readdir", "stat", ...named.filter((name) => name !== "of")]);
}

/** Lines behind an `await using` of the same function that return what a function of `names` gives, without `await`. */
function unawaitedReturns(source: string, names: Set<string>): string[] {
  const lines = source.split("\n");
  const indentOf = (line: string): number => /^\s*/.exec(line)?.[0].length ?? 0;
  return lines.flatMap((line, at) => {
    const called = /\breturn (?!await\b|async\b)(?:new )?(?:[\w.#]+(?:\([^()]*\))?\.)?(#?\w+)\(/.exec(line)?.[1];
    if (called === undefined || !names.has(called)) return [];
    let indent = indentOf(line);
    for (let above = at - 1; above >= 0; above--) {
      const text = lines[above] ?? "";
      if (text.trim() === "" || indentOf(text) > indent) continue;
      // A deeper line may be the body of another function, which has scopes of its own.
      if (indentOf(text) < indent && beginsFunction(text)) return [];
      if (/^\s*await using /.test(text)) return [line.trim()];
      indent = indentOf(text);
    }
    return [];
  });
}

const beginsFunction = (line: string): boolean =>
  /=> \{$|\bfunction\b|^\s*(?:static |private )?(?:async )?(?!if\b|for\b|while\b|switch\b|catch\b)#?\w+(?:<.*>)?\(.*\{$/.test(line);

/** Types, interfaces, classes and enums at the top level of a source, exported or not. */
function declaredTypes(source: string): Set<string> {
  const found = source.matchAll(/^(?:export )?(?:default )?(?:declare )?(?:abstract )?(?:type|interface|class|enum) (\w+)/gm);
  return new Set([...found].map((match) => match[1] ?? ""));
}

/** Bare package names of a source's imports. */
function importedPackages(source: string): string[] {
  const specifiers = [...source.matchAll(/(?:^|\s)(?:from|import)\s*\(?\s*"([^".\s][^"\s]*)"/g)].map((match) => match[1] ?? "");
  const outside = specifiers.filter((specifier) => !specifier.startsWith("node:"));
  return outside.map((specifier) =>
    specifier
      .split("/")
      .slice(0, specifier.startsWith("@") ? 2 : 1)
      .join("/"),
  );
}

/** Runs the linter with our rules over files in a folder of their own: path -> lines that `category` complains of, sorted. */
async function lint(files: Record<string, string>, category: string): Promise<Map<string, number[]>> {
  const folder = await mkdtemp(join(tmpdir(), "alidade-lint-"));
  try {
    await copyFile(join(root, "biome.json"), join(folder, "biome.json"));
    for (const [path, source] of Object.entries(files)) {
      await mkdir(dirname(join(folder, path)), { recursive: true });
      await writeFile(join(folder, path), source);
    }
    const biome = join(root, "node_modules/.bin/biome");
    const output = await new Promise<string>((resolve) => {
      execFile(biome, ["lint", "--max-diagnostics=none", "--reporter=json", "."], { cwd: folder, maxBuffer: 1 << 26 }, (_error, stdout) =>
        resolve(stdout),
      );
    });
    const found = new Map<string, number[]>();
    for (const { category: kind, location } of JSON.parse(output).diagnostics) {
      if (kind === category) found.set(location.path, [...(found.get(location.path) ?? []), location.start.line]);
    }
    return new Map([...found].sort().map(([path, lines]) => [path, lines.sort((a, b) => a - b)]));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
