/**
 * Puts a task's skills where each real harness looks for them. The harness lists the skills in its first request. It loads one when
 * its model asks for it.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { Harness } from "../../harnesses/harness.ts";
import { harnesses } from "../../harnesses/registry.ts";
import { type ScriptedTurn, scriptedHarnessApi } from "../fakes/proxies/scripted-harness-api.ts";
import { installedPack } from "./installed-pack.ts";
import { runCommand, temporaryPlace, writeBelow } from "./run-harness.ts";

/** A CLI starts in about a second; on a loaded machine in ten times that. */
const timeout = 300_000;

const skill = {
  "fold-paper/SKILL.md": "---\nname: fold-paper\ndescription: How to fold a paper crane.\n---\n\nFold it seven times.\n",
  "fold-paper/steps.txt": "one by one\n",
};

/** How a model loads a skill: by the tool of the harness that is meant for it, else by reading its file. */
const loads: Record<string, (folder: string) => [tool: string, args: Record<string, unknown>]> = {
  pi: (folder) => ["read", { path: `${folder}/fold-paper/SKILL.md` }],
  codex: (folder) => ["exec_command", { cmd: `cat ${folder}/fold-paper/SKILL.md` }],
  "claude-code": () => ["Skill", { skill: "fold-paper" }],
  "gemini-cli": () => ["activate_skill", { name: "fold-paper" }],
  "qwen-code": () => ["skill", { skill: "fold-paper" }],
  opencode: () => ["skill", { name: "fold-paper" }],
};

for (const harness of harnesses.filter(({ skills }) => skills))
  test(`${harness.name} lists the skills of its folder, and its model can load one`, { timeout }, async (t) => {
    const requests = await requestsOf(t, harness, true);
    if (requests === null) return;
    const [first = "", second = ""] = requests;
    assert.ok(first.includes("fold-paper") && first.includes("How to fold a paper crane."), first.slice(0, 2_000));
    assert.ok(!first.includes("seven times"), "a skill is loaded when it is asked for");
    assert.ok(
      second.includes("Fold it seven times."),
      second.slice(second.indexOf("Fold a crane."), second.indexOf("Fold a crane.") + 1500),
    );
  });

test("the harnesses that read a folder of skills are these", () => {
  assert.deepEqual(
    harnesses.flatMap(({ name, skills }) => (skills ? [name] : [])),
    Object.keys(loads),
  );
});

test("without skills Claude Code is given no tool for them", { timeout }, async (t) => {
  const claudeCode = harnesses.find(({ name }) => name === "claude-code") ?? assert.fail();
  const requests = await requestsOf(t, claudeCode, false);
  if (requests !== null) assert.ok(!requests[0]?.includes('"name":"Skill"'));
});

/** The bodies of its requests; null: the harness is not installed. */
async function requestsOf(t: TestContext, harness: Harness, has: boolean): Promise<string[] | null> {
  const pack = await installedPack(t, harness);
  if (pack === null) return null;
  await using place = await temporaryPlace({ "README.md": "" });
  execFileSync("git", ["init", "-q", "."], { cwd: place.workdir });
  const folder = join(place.home, harness.skills ?? assert.fail(`${harness.name} names no folder of skills`));
  await mkdir(folder, { recursive: true });
  const [name, args] = (loads[harness.name] ?? assert.fail(harness.name))(folder);
  const turns: ScriptedTurn[] = [...(has ? [{ tools: [{ name, arguments: args }] }] : []), { text: "I see." }];
  await using api = await scriptedHarnessApi(turns);
  const { home, workdir } = place;
  const launch = harness.launch({
    ...{ instruction: "Fold a crane.", baseUrl: api.url, apiKey: "sk-local", model: "org/practice:free", home, workdir },
    ...{ pack: pack.folder, contextWindow: 32_768, ...(has && { skills: true }) },
  });
  await writeBelow(home, launch.files);
  if (has) await writeBelow(folder, skill);
  const env = { PATH: "/usr/sbin:/usr/bin:/bin", ...launch.env };
  const ended = await runCommand(launch.argv, { cwd: workdir, env, signal: t.signal });
  assert.equal(ended.exit_code, 0, ended.stderr);
  assert.equal(api.requests.length, turns.length, ended.stderr);
  return api.requests.map(({ body }) => JSON.stringify(body));
}
