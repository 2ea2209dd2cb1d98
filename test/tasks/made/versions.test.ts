import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { type TestContext, test } from "node:test";
import { gzipSync } from "node:zlib";
import { type Header, pack } from "tar-stream";
import { currentOwner } from "../../../base/host/owner.ts";
import { checkTask } from "../../../graders/check.ts";
import { TestsSpec } from "../../../graders/tests.ts";
import { localProcess } from "../../../sandboxes/process.ts";
import { loadTasks } from "../../../tasks/load-tasks.ts";
import { makeTasks } from "../../../tasks/made/make-tasks.ts";
import { publishedVersion } from "../../../tasks/made/published-version.ts";
import { readTarball } from "../../../tasks/made/read-tarball.ts";
import { type PackageRegistry, registries } from "../../../tasks/made/registries.ts";
import { sourceDistribution } from "../../../tasks/made/source-distribution.ts";
import { usualTests } from "../../../tasks/made/test-files.ts";
import { type VersionPair, versionFix } from "../../../tasks/made/version-fix.ts";
import { cli, jsonOf } from "../../fakes/processes/cli.ts";
import { need } from "../../needs.ts";

type EntryHeader = Partial<Header> & Pick<Header, "name">;

const owner = { run_id: "run-test-versions", owner: await currentOwner() };
const [npm, pypi] = ["npm", "pypi"].map((name) => registries.find((one) => one.name === name) as PackageRegistry) as [
  PackageRegistry,
  PackageRegistry,
];

async function tarballOf(files: Record<string, string>, links: EntryHeader[] = []): Promise<Buffer> {
  const archive = pack();
  for (const [name, content] of Object.entries(files)) archive.entry({ name }, content);
  for (const link of links) archive.entry(link);
  archive.finalize();
  return gzipSync(await buffer(archive));
}

async function folderOf(t: TestContext): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "alidade-versions-"));
  t.after(() => rm(folder, { recursive: true }));
  return folder;
}

/** A test that reports in TAP whether each word stands in the source. */
const asks = (...words: string[]) =>
  `echo 1..${words.length}\n${words.map((word) => `grep -q ${word} source.txt || printf 'not '; echo 'ok - has ${word}'`).join("\n")}\n`;

/** Two tarballs on the disk, in the form of a registry. */
async function pairOf(t: TestContext, registry: PackageRegistry, more: Record<string, string> = {}): Promise<VersionPair> {
  const folder = await folderOf(t);
  const [one, two] = [join(folder, "words-1.0.0.tgz"), join(folder, "words-1.0.1.tgz")];
  const old = "# 1.0.0\n\n* Begin\n";
  await writeFile(one, await tarballOf({ "package/source.txt": "one\n", "package/test/run.sh": asks("one"), "package/CHANGELOG.md": old }));
  const fixed = { "package/source.txt": "one two\n", "package/test/run.sh": asks("one", "two") };
  await writeFile(two, await tarballOf({ ...fixed, "package/CHANGELOG.md": `# 1.0.1\n\n* Say two\n\n${old}`, ...more }));
  const [before, after] = await Promise.all([one, two].map((path) => publishedVersion(registry, "words", path, t.signal)));
  return { registry: registry.name, name: "words", before: before!, after: after!, instruction: null, tests: usualTests };
}

async function make(t: TestContext, pair: VersionPair, out: string) {
  const passedOver = { merge: 0, first_commit: 0, no_test_changed: 0, only_tests_changed: 0 };
  const how = { test: "sh test/run.sh", parser: "tap", image: null, tests: usualTests, test_seconds: 120, memory_mb: 256 } as const;
  const options = { out, source: "npm:words", how, backend: localProcess, owner, signal: t.signal, progress: () => undefined };
  return makeTasks(versionFix(pair, owner, passedOver, t.signal), options);
}

test("two published versions become a task that check holds, told by the changelog of the later one", async (t) => {
  if (!(await need(t, "git"))) return;
  const out = await folderOf(t);
  const pair = await pairOf(t, npm);
  const tried = await make(t, pair, out);
  assert.deepEqual(
    tried.map((one) => [one.key, one.state]),
    [["words-1.0.0..words-1.0.1", "kept"]],
  );
  const [task] = await loadTasks(out);
  const { fail_to_pass, pass_to_pass } = TestsSpec.parse(task?.grader);
  assert.deepEqual([fail_to_pass, pass_to_pass], [["has two"], ["has one"]]);
  assert.deepEqual(
    [task?.data_source, task?.labels.instruction, task?.labels.fixed_integrity],
    ["npm/words", "changelog", pair.after.integrity],
  );
  assert.match(task?.instruction ?? "", /\n\n> # 1\.0\.1\n>\n> \* Say two\n$/);
  assert.equal((await checkTask(task!, localProcess, { times: 1, signal: t.signal, ...owner })).passed, true);

  const told = await folderOf(t);
  await make(t, { ...pair, instruction: "Say two, please.\n" }, told);
  const [other] = await loadTasks(told);
  assert.deepEqual([other?.instruction, other?.labels.instruction], ["Say two, please.\n", "given"]);
});

test("a package without a changelog wants an instruction, and what packing writes is in no tree", async (t) => {
  if (!(await need(t, "git"))) return;
  const pair = await pairOf(t, pypi, { "words-1.0.1/PKG-INFO": "x", "words-1.0.1/words.egg-info/SOURCES.txt": "x" });
  assert.deepEqual(pair.after.files.map(({ path }) => path).sort(), ["CHANGELOG.md", "source.txt", "test/run.sh"]);
  const silent = { ...pair, after: { ...pair.after, files: pair.after.files.filter(({ path }) => path !== "CHANGELOG.md") } };
  await assert.rejects(make(t, silent, await folderOf(t)), { code: "config_invalid", param: "instruction" });
});

test("a tarball's links and ways out are left out, and one that is too large is refused", async (t) => {
  const folder = await folderOf(t);
  const out = {
    "package/../../escaped": "x",
    "/package/escaped": "x",
    "package/.git/config": "x",
    "package/a/.GIT/hooks/x": "x",
    [`package/${"n".repeat(80)}`]: "x",
  };
  const links: EntryHeader[] = [
    { name: "package/link", type: "symlink", linkname: "/etc/passwd" },
    { name: "package/hard", type: "link", linkname: "/etc/passwd" },
  ];
  await writeFile(join(folder, "x.tgz"), await tarballOf({ ...out, "package/kept.txt": "x" }, links));
  const { files } = await publishedVersion(npm, "x", join(folder, "x.tgz"), t.signal);
  assert.deepEqual(files.map(({ path }) => path).sort(), ["kept.txt", "n".repeat(80), "package/escaped"]);
  const many = await tarballOf(Object.fromEntries(Array.from({ length: 5_001 }, (_, at) => [`package/${at}`, ""])));
  await assert.rejects(readTarball(many), { code: "task_invalid", message: /larger than 5000 files/ });
  await writeFile(join(folder, "broken.tgz"), "no tarball");
  await assert.rejects(publishedVersion(npm, "x", join(folder, "broken.tgz"), t.signal), {
    code: "task_invalid",
    message: /a tar packed with gzip is needed/,
  });
  await assert.rejects(publishedVersion(npm, "x", "latest", t.signal), {
    code: "config_invalid",
    message: /"latest" is no exact version and no tarball/,
  });
});

test("a source distribution is read from the index of the user's pip, with its login, and held against the digest", async (t) => {
  const tarball = await tarballOf({ "odd_name-1.0/setup.py": "raise SystemExit" });
  const sha256 = createHash("sha256").update(tarball).digest("hex");
  const asked: [string | undefined, string | undefined][] = [];
  const server = createServer((request, response) => {
    asked.push([request.url, request.headers.authorization]);
    const file = (version: string, digest: string) => ({
      filename: `Odd_Name-${version}.tar.gz`,
      url: `/files/${version}`,
      hashes: { sha256: digest },
    });
    response.end(
      request.url?.startsWith("/files") ? tarball : JSON.stringify({ files: [file("1.0", sha256), file("1.1", "0".repeat(64))] }),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.close().closeAllConnections());
  const before = process.env.PIP_INDEX_URL;
  t.after(() => {
    if (before === undefined) delete process.env.PIP_INDEX_URL;
    else process.env.PIP_INDEX_URL = before;
  });
  process.env.PIP_INDEX_URL = `http://ann:p%40ss@127.0.0.1:${(server.address() as AddressInfo).port}/simple/`;
  assert.deepEqual(await sourceDistribution("odd.name", "1.0", t.signal), tarball);
  assert.deepEqual(asked[0], ["/simple/odd-name/", `Basic ${btoa("ann:p@ss")}`]);
  await assert.rejects(sourceDistribution("odd.name", "1.1", t.signal), {
    code: "pack_failed",
    message: /says that Odd_Name-1\.1\.tar\.gz is sha256 0000/,
  });
  await assert.rejects(
    sourceDistribution("odd.name", "2.0", t.signal),
    (error: Error) => /lists no odd\.name-2\.0\.tar\.gz/.test(error.message) && !error.message.includes("p%40ss"),
  );
});

test("from-npm refuses a name that is none, before it asks for anything", async () => {
  const refused = await cli(["tasks", "from-npm", "--json", "--test", "true", "--parser", "tap", "--", "-x", "1.0.0", "1.0.1"]);
  assert.deepEqual(jsonOf<{ error: { param: string } }>(refused).error.param, "package");
});
