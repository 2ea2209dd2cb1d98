import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { access, cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { type Edit, loadPlays, type PlayedHarness, type PlayScript, playsFor } from "../../examples/demo/plays.ts";
import { hermesTurn } from "../fakes/engines/hermes-turn.ts";
import { addScript } from "../fakes/rollouts/add-script.ts";

const played: PlayedHarness[] = ["pi", "codex", "claude-code", "gemini-cli", "qwen-code", "opencode"];

/** Each harness's tools and the arguments that they want, as the harness itself declares them (it refuses others). */
const tools: Record<PlayedHarness, Record<string, string[]>> = {
  pi: { bash: ["command"], edit: ["path", "edits"] },
  codex: { exec_command: ["cmd"] },
  "claude-code": { Read: ["file_path", "limit"], Edit: ["file_path", "old_string", "new_string"], Bash: ["command"] },
  "gemini-cli": { run_shell_command: ["command"], replace: ["file_path", "instruction", "old_string", "new_string"] },
  "qwen-code": { run_shell_command: ["command", "is_background"] },
  opencode: { read: ["filePath", "limit"], edit: ["filePath", "oldString", "newString"], bash: ["command", "description"] },
};

for (const harness of played) {
  test(`every turn of ${harness} but the last is calls of its own tools, and the last is words`, () => {
    const turns = choicesOf(harness, addScript, "mixed");
    assert.equal(turns.length, 4);
    for (const [index, choices] of turns.entries()) {
      for (const choice of choices) {
        const { text, calls } = hermesTurn(choice);
        if (index === turns.length - 1) assert.ok(calls.length === 0 && text !== "");
        else assert.ok(calls.length > 0 && text === "", choice);
        for (const call of calls) assert.deepEqual(Object.keys(call.arguments), tools[harness][call.name], choice);
      }
    }
  });

  test(`${harness} is offered the right fix and the wrong one, and only the one where only one is asked for`, () => {
    const has = (mix: "mixed" | "right" | "wrong", code: string) =>
      choicesOf(harness, addScript, mix)[1]?.some((choice) => choice.includes(code));
    assert.ok(has("mixed", "a + b;") && has("mixed", "a * b;"));
    assert.ok(has("right", "a + b;") && !has("right", "a * b;"));
    assert.ok(!has("wrong", "a + b;") && has("wrong", "a * b;"));
  });

  for (const mix of ["mixed", "right", "wrong"] as const) {
    test(`at least five places of every ${mix} turn of ${harness} are the policy's choice`, () => {
      for (const choices of choicesOf(harness, addScript, mix)) {
        assert.equal(new Set(choices).size, choices.length);
        for (const choice of choices) assert.ok(branchings(choice, choices) >= 5, `${branchings(choice, choices)}: ${choice}`);
      }
    });
  }

  test(`no answer of ${harness} is the beginning of another, so that the end is never ambiguous`, () => {
    for (const choices of choicesOf(harness, addScript, "mixed")) {
      const sorted = [...choices].sort();
      for (const [index, choice] of sorted.entries()) assert.ok(!sorted[index + 1]?.startsWith(choice));
    }
  });

  test(`the calls of ${harness} are spaced as a chat template prints them again`, () => {
    for (const choice of choicesOf(harness, addScript, "right").slice(0, 3).flat()) {
      for (const call of hermesTurn(choice).calls) assert.equal(call.raw, spaced(call.arguments));
    }
  });
}

test("a file that is edited but not looked at is refused, for Claude Code would not edit it", () => {
  assert.throws(() => playsFor("claude-code", { ...addScript, look: ["other.js"] }, "mixed"), /add\.js is edited, so it must be in "look"/);
});

test("quotes, backslashes and line breaks of an edit arrive as they are in every harness", () => {
  const edit = { path: "add.js", old: `const odd = 'it\\'s "\\n"';`, new: `const odd = \`$\{1}\`;\n// $& $1 \\ '` };
  for (const harness of played) {
    const [choice = ""] = choicesOf(harness, { ...addScript, fixes: { right: [[edit]], wrong: [[edit]] } }, "right")[1] ?? [];
    const text = JSON.stringify(hermesTurn(choice).calls[0]?.arguments);
    const once = JSON.stringify(edit.old).slice(1, -1);
    // Those that edit by a program have it in a string of that program.
    assert.ok(text.includes(text.includes("<<'EDIT'") ? JSON.stringify(once).slice(1, -1) : once), text);
  }
});

for (const task of ["merge-ranges", "parse-duration"]) {
  test(`every right fix of ${task} passes the tests that grade it, and every wrong one fails them`, async () => {
    const folder = join(import.meta.dirname, "../../examples/demo/tasks", task);
    const { look, fixes } = await loadPlays(join(folder, "plays.json"));
    for (const [kind, edits] of [
      ...fixes.right.map((fix) => ["right", fix] as const),
      ...fixes.wrong.map((fix) => ["wrong", fix] as const),
    ]) {
      const work = await mkdtemp(join(tmpdir(), "alidade-plays-"));
      try {
        for (const part of ["files", "tests"]) await cp(join(folder, part), work, { recursive: true });
        for (const edit of edits) await apply(join(work, edit.path), edit);
        for (const path of look) await access(join(work, path));
        assert.equal(await testsPass(work), kind === "right", JSON.stringify(edits));
      } finally {
        await rm(work, { recursive: true, force: true });
      }
    }
  });
}

test("the plays of the SWE task have the form that plays have", async () => {
  const script = await loadPlays(join(import.meta.dirname, "../../examples/tasks/plays/minimist-constructor-pollution.json"));
  for (const harness of played) assert.equal(choicesOf(harness, script, "mixed").length, 4);
});

async function apply(path: string, edit: Edit) {
  const parts = (await readFile(path, "utf8")).split(edit.old);
  assert.equal(parts.length, 2, `exactly once in ${path}: ${edit.old}`);
  await writeFile(path, parts.join(edit.new));
}

function testsPass(cwd: string): Promise<boolean> {
  // The runner's own variable would make this child report to it instead of judging by its exit code.
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  return new Promise((resolve) =>
    execFile(process.execPath, ["--test"], { cwd, env, timeout: 60_000 }, (error) => resolve(error === null)),
  );
}

function choicesOf(harness: PlayedHarness, script: PlayScript, mix: "mixed" | "right" | "wrong"): string[][] {
  return playsFor(harness, script, mix).map((sampling) => (sampling.structured_outputs as { choice: string[] }).choice);
}

/** Places on the way to `choice` where another answer goes on with another character. */
function branchings(choice: string, choices: string[]): number {
  const places = choices.map((other) => [...choice].findIndex((character, index) => other[index] !== character));
  return new Set(places.filter((place) => place >= 0)).size;
}

/** Python's json.dumps, which `tojson` of a chat template is, by another way than the plays make it. */
function spaced(value: unknown): string {
  const kept: string[] = [];
  const hidden = JSON.stringify(value).replace(/"(?:[^"\\]|\\.)*"/g, (string) => `\ue000${kept.push(string) - 1}\ue000`);
  return hidden.replace(/[,:]/g, "$& ").replace(/\ue000(\d+)\ue000/g, (_, index) => kept[Number(index)] ?? "");
}
