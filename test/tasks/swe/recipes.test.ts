/** Recipes in rows as builds: which files a builder gets, and what a row may not say. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import type { AlidadeError } from "../../../base/errors.ts";
import { loadTasks } from "../../../tasks/load-tasks.ts";
import type { LoadOptions } from "../../../tasks/task-format.ts";
import { ownCache } from "../../fakes/machine/own-cache.ts";
import { scratchFolder } from "../../fakes/machine/scratch-folder.ts";

const scratch = scratchFolder("recipes");
ownCache("recipes-cache");

const patch = "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-one\n+two\n";
const common = {
  instance_id: "any__thing-8",
  repo: "any/thing",
  base_commit: "22623bd8c265b78b161542663ee980738441c307",
  patch,
  test_patch: patch.replaceAll("a.py", "test_a.py"),
  problem_statement: "It is broken.",
  FAIL_TO_PASS: ["test_a.py::test_new"],
  PASS_TO_PASS: [],
};
const told = { test_cmd: "pytest", log_parser: "parse_log_pytest" };
const first = {
  python: "3.9",
  packages: "requirements.txt",
  pip_packages: ["pytest<8", "it's"],
  reqs_path: ["reqs/dev.txt", "-r.txt"],
  pre_install: ["apt-get update"],
  install: "pip install -e .",
};

type Loaded = { leftOut: AlidadeError[]; image?: string | null; context?: string; files: Record<string, string> };

/** The files of the build that the row's recipe becomes. */
async function built(row: object, options: LoadOptions = {}): Promise<Loaded> {
  const path = join(scratch, "rows.jsonl");
  await writeFile(path, JSON.stringify({ ...common, ...row }));
  const leftOut: AlidadeError[] = [];
  const [task] = await loadTasks(path, { images: "build", ...options, onLeftOut: (error) => leftOut.push(error) });
  if (!task) return { leftOut, files: {} };
  const { image, build } = task.environment;
  const read = async (name: string) => [name, await readFile(join(build?.context ?? "", name), "utf8")] as const;
  return {
    leftOut,
    image,
    context: build?.context,
    files: Object.fromEntries(await Promise.all(["Dockerfile", "install.sh", "at-commit.sh"].map(read))),
  };
}

test("a row of SWE-rebench becomes a build: what swebench installs, the clone, conda's environment, the row's own commands", async () => {
  const { image, files, leftOut } = await built({ install_config: { ...told, ...first } });
  assert.deepEqual([image, leftOut], [null, []]);
  assert.deepEqual(
    files.Dockerfile?.split("\n").filter((line) => /^(?:FROM|WORKDIR|RUN git)/.test(line)),
    [
      "FROM ubuntu:22.04",
      "RUN git clone -q -o origin https://github.com/any/thing /testbed && rm -rf /alidade-repository.git",
      "WORKDIR /testbed",
    ],
  );
  assert.match(files["at-commit.sh"] ?? "", /git reset -q --hard 22623bd8c265b78b161542663ee980738441c307\n/);
  const lines = (files["install.sh"] ?? "").split("\n");
  assert.deepEqual(
    lines.filter((line) => !line.startsWith("if ")),
    [
      "set -e",
      "export LANG=C.UTF-8 LC_ALL=C.UTF-8",
      "conda create -q -y -n testbed python=3.9",
      ". /opt/miniconda3/bin/activate && conda activate testbed",
      "python -m pip install 'pytest<8' 'it'\\''s'",
      "apt-get update",
      "pip install -e .",
      "",
    ],
  );
  assert.equal(lines.filter((line) => line.startsWith("if [ -f reqs/dev.txt ]") || line.startsWith("if [ -f -r.txt ]")).length, 2);
});

for (const [title, more, expected] of [
  ["packages of conda", { packages: "numpy pytest" }, "conda create -q -y -n testbed python=3.9 numpy pytest"],
  [
    "an environment file",
    { packages: "environment.yml", env_yml_path: ["ci/env.yml"] },
    'conda env create -q -n testbed -f "$(ls -d -- ci/env.yml 2>/dev/null | head -n 1)"',
  ],
  ["a Python that conda no longer has", { packages: null, python: "2.7" }, "conda create -q -y -n testbed python=3.6"],
] as const)
  test(`${title} are installed as the set does`, async () => {
    const { files, leftOut } = await built({ install_config: { ...told, ...first, ...more } });
    assert.deepEqual(leftOut, []);
    assert.ok(files["install.sh"]?.split("\n").includes(expected), files["install.sh"]);
  });

const second = {
  image_name: "swerebenchv2/any-thing:9",
  install_config: { ...told, base_image_name: "c:latest", install: ["make", "false"] },
};

test("a row of SWE-rebench-V2 begins with the set's own base image, and a command that fails ends nothing", async () => {
  const { files } = await built(second);
  assert.match(files.Dockerfile ?? "", /^FROM swe-rebench-v2\/c:latest\n/);
  assert.match(files.Dockerfile ?? "", /^WORKDIR \/thing$/m);
  assert.equal(files["install.sh"], "set -x\n( make\n) || true\n( false\n) || true\n");
});

test("without the word to build, rows have their published images", async () => {
  const path = join(scratch, "rows.jsonl");
  await writeFile(path, JSON.stringify({ ...common, ...second }));
  const [task] = await loadTasks(path);
  assert.deepEqual([task?.environment.image, task?.environment.build], [second.image_name, null]);
});

const injected = "3.9\nRUN touch /injected";
for (const [title, row, param, says] of [
  [
    "a set without recipes",
    { version: "1.1", repo: "psf/requests" },
    "images",
    /SWE-bench, .*do not say how their image is made.*--images build/,
  ],
  ["a row without a version of Python", { install_config: { ...told, install: "make" } }, "install_config.python", /python/],
  [
    "a line end in the version",
    { install_config: { ...told, ...first, python: injected } },
    "install_config.python",
    /no version of Python/,
  ],
  [
    "a line end in a package",
    { install_config: { ...told, ...first, pip_packages: ["a\nRUN b"] } },
    "install_config.pip_packages.0",
    /line end/,
  ],
  [
    "an escape in a command",
    { install_config: { ...told, ...first, install: "\u001b[2Jmake" } },
    "install_config.install",
    /control character/,
  ],
  [
    "a base image with an option",
    { ...second, install_config: { ...second.install_config, base_image_name: "c:1 AS x\nRUN y" } },
    "install_config.base_image_name",
    /a name of an image/,
  ],
  ["a repository above the mirror", { ...second, repo: "../thing" }, "repo", /is no repository/],
  [
    "a megabyte of commands",
    { ...second, install_config: { ...second.install_config, install: ["x".repeat(1e6)] } },
    "install_config",
    /at most 100000/,
  ],
] as const)
  test(`${title} is named, and no build is made`, async () => {
    const { leftOut, files } = await built(row);
    assert.deepEqual(files, {});
    assert.ok(leftOut[0]?.param?.startsWith(param), String(leftOut[0]?.param));
    assert.match(leftOut[0]?.message ?? "", says);
  });

test("rows of two repositories with one commit have builds of their own", async () => {
  const [source, mirrors] = [join(scratch, "source"), join(scratch, "two")];
  const git = (...args: string[]) => execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b.c", ...args], { encoding: "utf8" });
  git("init", "--quiet", source);
  git("-C", source, "commit", "--quiet", "--allow-empty", "--message", "one");
  const base_commit = git("-C", source, "rev-parse", "HEAD").trim();
  const contexts = [];
  for (const repo of ["any/thing", "other/thing"]) {
    git("clone", "--quiet", "--bare", source, join(mirrors, `${repo}.git`));
    contexts.push((await built({ ...second, repo, base_commit }, { repositories: mirrors })).context);
  }
  assert.equal(new Set(contexts).size, 2);
});

test("a folder of mirrors that is not there, and a mirror without the commit, are named", async () => {
  const missing = await built(second, { repositories: join(scratch, "none") });
  assert.deepEqual([missing.leftOut[0]?.code, missing.leftOut[0]?.param], ["config_invalid", "repositories"]);
  await mkdir(join(scratch, "mirrors/any/thing.git"), { recursive: true });
  const { leftOut } = await built(second, { repositories: join(scratch, "mirrors") });
  assert.deepEqual([leftOut[0]?.code, leftOut[0]?.param], ["task_invalid", "base_commit"]);
});
