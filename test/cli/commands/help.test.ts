import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { cli, cliProcess, jsonOf } from "../../fakes/processes/cli.ts";

const verbs = [
  "serve",
  "record",
  "run",
  "service",
  "node",
  "status",
  "results",
  "doctor",
  "check",
  "regrade",
  "ls",
  "stats",
  "show",
  "view",
  "diff",
  "fidelity",
  "audit",
  "export",
  "images",
  "reap",
  "config",
  "plugin",
];

test("the help lists every verb, and each verb's help teaches with an example and says what --json prints", async () => {
  const main = await cli(["--help"]);
  assert.equal(main.code, 0);
  const helps = await Promise.all(verbs.map(async (verb) => ({ verb, ...(await cli([verb, "--help"])) })));
  for (const { verb, code, stdout } of helps) {
    assert.match(main.stdout, new RegExp(`^  ${verb}\\b`, "m"));
    assert.equal(code, 0, verb);
    assert.match(stdout, new RegExp(`Examples?:\\n(?:.*\\n)*? {2}(?:\\w+=\\S+ )?alidade ${verb}\\b`), verb);
    assert.match(stdout, /--json +\S/, verb);
  }
});

test("what is typed wrongly ends with 2 and a hint, and never with a stack trace", async () => {
  for (const args of [["fly"], ["run", "--fast"], ["diff"], ["record"], []]) {
    const { code, stderr } = await cli(args);
    assert.equal(code, 2, args.join(" "));
    assert.doesNotMatch(stderr, / {4}at /);
    assert.match(stderr, /--help|Usage/, args.join(" "));
  }
  const version = await cli(["--version"]);
  assert.deepEqual([version.code, /^\d+\.\d+\.\d+\n$/.test(version.stdout)], [0, true]);
});

test("a word that is nearly one is answered with it: verbs, flags and keys of the run file", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "alidade-near-"));
  t.after(() => rm(folder, { recursive: true }));
  const file = join(folder, "run.yaml");
  for (const [args, text, hint] of [
    [["exprot"], "", /Did you mean export\?/],
    [["export", "--formt", "flat"], "", /Did you mean --format\?/],
    [["run", "-c", file], "sample: 3", /"sample" is no key of the configuration \(did you mean samples\?\);/],
    [["run", "-c", file], "budgets: { max_turn: 3 }", /"budgets\.max_turn" .*did you mean max_turns\?/],
    [["run", "-c", file], "engines: [{ name: a, url: b, modles: [c] }]", /did you mean models\?/],
    [["run", "-c", file], "harness: { comand: [x] }", /did you mean command\?/],
    [["run", "-c", file], "colour: red", /"colour" is no key of the configuration; /],
  ] as const) {
    await writeFile(file, text);
    const { code, stderr } = await cli([...args]);
    assert.deepEqual([code, hint.test(stderr)], [2, true], stderr);
  }
});

test("the completion of each shell knows every verb, its flags and their choices", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "alidade-completion-"));
  t.after(() => rm(folder, { recursive: true }));
  const { stdout } = await cli(["completion", "bash"]);
  const script = join(folder, "alidade.bash");
  await writeFile(script, `${stdout}COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _alidade; echo "\${COMPREPLY[@]}"`);
  const complete = async (...words: string[]) => {
    const { stdout: found } = await promisify(execFile)("bash", [script, "alidade", ...words], { cwd: folder });
    return found.trim();
  };
  assert.deepEqual([await complete("ex"), await complete("run", "--unsafe")], ["export", "--unsafe-host"]);
  assert.equal(await complete("export", "--select", "st"), "strict");
  assert.equal(await complete("show", "alid"), "alidade.bash", "files where nothing else is known");
  const fish = (await cli(["completion", "fish"])).stdout;
  for (const verb of verbs) assert.match(fish, new RegExp(`-a ${verb} -d '.+'\n`));
  assert.match(fish, /__fish_seen_subcommand_from export' -l select -x -a '[^']*strict/);
  assert.match((await cli(["completion", "zsh"])).stdout, /bashcompinit\n_alidade\(\)/);
  assert.equal((await cli(["completion", "tcsh"])).code, 2);
});

test("without an engine, an export format or a run that are known, the verbs say what there is", async (t) => {
  // Not in the folder of this checkout, where a user's own `serve` may be at work.
  const folder = await mkdtemp(join(tmpdir(), "alidade-help-"));
  t.after(() => rm(folder, { recursive: true }));
  const noEngine = await cli(["serve", "--out", folder]);
  assert.equal(noEngine.code, 2);
  assert.match(noEngine.stderr, /engine\.url is not set: give --engine/);
  const noRun = await cliProcess(["export"], { cwd: "/" });
  assert.match(noRun.stderr, /there is no run below runs\/ here/);
  const noFormat = jsonOf<{ error: { code: string; message: string } }>(await cli(["export", "--format", "arrow", "--json"]));
  assert.equal(noFormat.error.code, "plugin_unknown");
  assert.match(noFormat.error.message, /canonical, flat, parquet, chat/);
  assert.match((await cli(["export", "--max-tokens", "few"])).stderr, /--max-tokens <number>' argument 'few' is invalid. Give a number/);
  assert.match((await cli(["export", "--run", "/no/such/folder"])).stderr, /there is no folder \/no\/such\/folder/);
  assert.match((await cli(["show", "x", "--run", "exporters"])).stderr, /exporters holds no run/);
});
