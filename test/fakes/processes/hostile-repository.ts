/**
 * Run in a container alone: makes a repository whose every part would run a command or write elsewhere, reads it as
 * `tasks from-git` does, writes what it made, and prints what came of it as JSON.
 */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fixingCommits } from "../../../tasks/made/commit-fixes.ts";
import { writeTrees } from "../../../tasks/made/draft-task.ts";
import { Repository } from "../../../tasks/made/repository.ts";
import { usualTests } from "../../../tasks/made/test-files.ts";

const [place = ""] = process.argv.slice(2);
const [folder, traps, out] = ["hostile", "traps", "out"].map((name) => join(place, name));
const env = { PATH: process.env.PATH, HOME: place };
const who = ["-c", "user.name=a", "-c", "user.email=a@b"];
const git = (args: string[], input: string | Buffer = "") =>
  execFileSync("git", ["-C", folder!, ...who, ...args], { env, input, stdio: ["pipe", "pipe", "ignore"] })
    .toString("latin1")
    .trim();
const ran = (name: string) => `touch ${traps}/${name};`;

/** Keys of a repository's configuration that name a program. */
const programs = [
  ...["core.fsmonitor", "core.sshCommand", "core.pager", "core.editor", "core.askPass", "core.gitProxy", "core.alternateRefsCommand"],
  ...["diff.external", "diff.x.textconv", "diff.x.command", "filter.x.clean", "filter.x.smudge", "filter.x.process", "gpg.program"],
  ...[
    "uploadpack.packObjectsHook",
    "credential.helper",
    "remote.origin.uploadpack",
    "remote.origin.vcs",
    "sequence.editor",
    "merge.x.driver",
  ],
];
const hooks = [
  "post-checkout",
  "reference-transaction",
  "pre-auto-gc",
  "post-index-change",
  "pre-commit",
  "post-commit",
  "fsmonitor-watchman",
];

async function setTraps(): Promise<void> {
  for (const key of programs) git(["config", key, `sh -c '${ran(key)}'`]);
  git(["config", "log.showSignature", "true"]);
  for (const hook of hooks) await writeFile(join(folder!, ".git/hooks", hook), `#!/bin/sh\n${ran(`hook-${hook}`)}\n`, { mode: 0o755 });
  await writeFile(join(folder!, ".git/info/attributes"), "* filter=x diff=x merge=x\n");
}

/** A tree as its entries say, also where git would make none such. */
function treeOf(entries: [mode: string, name: string | Buffer, id: string][]): string {
  const parts = entries.flatMap(([mode, name, id]) => [
    Buffer.from(`${mode} `),
    Buffer.from(name),
    Buffer.from([0]),
    Buffer.from(id, "hex"),
  ]);
  return git(["hash-object", "-t", "tree", "-w", "--literally", "--stdin"], Buffer.concat(parts));
}

async function makeRepository(): Promise<void> {
  await mkdir(folder!, { recursive: true });
  git(["init", "-q", "-b", "main"]);
  const blob = (text: string) => git(["hash-object", "-w", "--stdin"], text);
  const [evil, good, fixed] = ["evil\n", "good\n", "fixed\n"].map(blob);
  const inGit = treeOf([["100644", "config", evil!]]);
  const outside: [string, string | Buffer, string][] = [
    ["40000", "..", treeOf([["100644", "escaped", evil!]])],
    ["40000", ".git", inGit],
    ["40000", ".GIT", inGit],
    ["100644", "a/../../escaped", evil!],
    ["100644", "/tmp/escaped", evil!],
    ["100644", "n".repeat(300), evil!],
    ["100644", Buffer.from([0x66, 0xff]), evil!],
    ["120000", "link", blob("/etc/passwd")],
    ["160000", "module", "1".repeat(40)],
  ];
  const modules = blob(`[submodule "module"]\n\tpath = module\n\turl = ext::sh -c '${ran("submodule")}'\n`);
  const attributes = blob("* filter=x diff=x merge=x -text\n");
  const tree = (source: string, test: string) =>
    treeOf([
      ...outside,
      ["100644", ".gitattributes", attributes],
      ["100644", ".gitmodules", modules],
      ["100644", "source.txt", source],
      ["100644", "x_test.go", test],
    ]);
  const first = git(["commit-tree", "-m", "Begin", tree(good!, good!)]);
  git(["update-ref", "refs/heads/main", git(["commit-tree", "-m", "Fix it", "-p", first, tree(fixed!, fixed!)])]);
}

/** The error's first line for a source that is to be refused. */
function refusalOf(source: string): Promise<string> {
  return Repository.copy(source, { run_id: "r", owner: "1:1" }, new AbortController().signal).then(
    () => "was copied",
    (error: Error) => error.message.split("\n")[0] ?? "",
  );
}

await mkdir(traps!, { recursive: true });
await makeRepository();
await setTraps();
// Traps that catch nothing would prove nothing.
for (const args of [
  ["status"],
  ["diff", "--ext-diff", "HEAD~1", "HEAD"],
  ["checkout", "-q", "-f", "HEAD~1", "--", "source.txt"],
  ["update-ref", "refs/x", "HEAD"],
])
  spawnSync("git", ["-C", folder!, ...args], { env });
const live = await readdir(traps!);
await rm(traps!, { recursive: true });
await mkdir(traps!);

const signal = new AbortController().signal;
const written: string[] = [];
{
  await using repository = await Repository.copy(folder!, { run_id: "r", owner: "1:1" }, signal);
  const passedOver = { merge: 0, first_commit: 0, no_test_changed: 0, only_tests_changed: 0 };
  for await (const candidate of fixingCommits(repository, { tests: usualTests }, passedOver)) await writeTrees(out!, await candidate.fix());
  written.push(
    ...(await readdir(out!, { recursive: true, withFileTypes: true }))
      .filter((entry) => !entry.isDirectory())
      .map((entry) => join(entry.parentPath, entry.name).slice(out!.length + 1)),
  );
}
const promised = ["extensions.partialClone", "remote.origin.promisor"].map((key) => [
  "config",
  key,
  key.startsWith("remote") ? "true" : "origin",
]);
for (const args of promised) git(args);
git(["config", "core.repositoryFormatVersion", "1"]);
git(["config", "remote.origin.url", place]);
const source = git(["rev-parse", "HEAD:source.txt"]);
await rm(join(folder!, ".git/objects", source.slice(0, 2), source.slice(2)), { force: true });
const refused = [
  await refusalOf(folder!),
  await refusalOf(`ext::sh -c "${ran("ext")}"`),
  await refusalOf(`--upload-pack=sh -c '${ran("option")}'`),
];
const left = (await readdir(place)).filter((name) => !["hostile", "traps", "out"].includes(name));
process.stdout.write(`${JSON.stringify({ live, sprung: await readdir(traps!), written: written.sort(), refused, left })}\n`);
