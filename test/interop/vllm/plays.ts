/**
 * What the taught model plays, and the task that it plays at: a program in the workdir takes a step and says whether
 * one is left. Each turn takes one step, among other things, in any order; the last result is followed by an answer.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { vllmScripts } from "./place.ts";

const Plays = z.strictObject({
  /** By the tool that runs a command. `kind` is the word by which the model knows whose turn it plays. */
  tools: z.record(z.string(), z.strictObject({ argument: z.string(), kind: z.string() })),
  instruction: z.string(),
  /** What `next` says, and what it says when no step is left. */
  step: z.string(),
  last: z.string(),
  turns: z.array(z.string()),
  answers: z.array(z.string()),
});

const plays = Plays.parse(JSON.parse(readFileSync(join(vllmScripts, "plays.json"), "utf8")));

/** The tool by which each harness's model runs a command. */
const tools = {
  pi: "bash",
  codex: "exec_command",
  "claude-code": "Bash",
  "gemini-cli": "run_shell_command",
  "mini-swe-agent": "bash",
} as const;

export type PlayingHarness = keyof typeof tools;

/** `files` belong into the workdir; `next` is a program. After `turns` turns with tools the model gives its last word. */
export function taughtTask(harness: PlayingHarness, turns: number): { instruction: string; files: Record<string, string> } {
  const tool = tools[harness];
  return {
    instruction: fill(plays.instruction, tool),
    files: { next: program(tool, turns, harness === "mini-swe-agent" ? submit : ""), "notes.txt": "naïve 日本\n" },
  };
}

/** Whole turns as the model writes them, thought and calls and all; it may say others, rarely. */
export function taughtPlays(harness: PlayingHarness): { turns: string[]; answers: string[] } {
  const tool = tools[harness];
  return { turns: plays.turns.map((text) => fill(text, tool)), answers: plays.answers.map((text) => fill(text, tool)) };
}

/** mini-swe-agent takes no answer for an end, but a command whose output begins with this. */
const submit = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\n";

function program(tool: string, turns: number, ending: string): string {
  return [
    "#!/bin/sh",
    "step=$(($(cat .step 2>/dev/null || echo 0) + 1))",
    "echo $step >.step",
    `if [ $step -lt ${turns} ]; then`,
    `  echo "${fill(plays.step, tool).replace("$N", "$step")}"`,
    "else",
    `  echo "${ending}${fill(plays.last, tool)}"`,
    "fi",
    "",
  ].join("\n");
}

/** The same as Plays.fill of teach.py. */
function fill(text: string, tool: string): string {
  const { argument, kind } = plays.tools[tool] ?? { argument: "", kind: "" };
  return text
    .replace(
      /\[\[(.*?)\]\]/g,
      (_, command) => `<tool_call>\n{"name": "$TOOL", "arguments": {"$ARGUMENT": ${JSON.stringify(command)}}}\n</tool_call>`,
    )
    .replaceAll("$TOOL", tool)
    .replaceAll("$ARGUMENT", argument)
    .replaceAll("$KIND", kind);
}
