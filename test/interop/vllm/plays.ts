/**
 * What the taught model plays, and the task that it plays at: a program in the workdir takes a step and says whether
 * one is left. Each turn takes one step, among other things, in any order; the last result is followed by an answer.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { vllmScripts } from "./place.ts";

/** What stands beside these is how the model says it. */
const Plays = z.looseObject({
  /** By the tool that runs a command. `kind` is the word by which the model knows whose turn it plays. */
  tools: z.record(z.string(), z.strictObject({ argument: z.string(), kind: z.string() })),
  instruction: z.string(),
  /** What the program says, and what it says when no step is left. */
  step: z.string(),
  last: z.string(),
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

/** `files` belong into the workdir, two of them are programs. After `turns` turns with tools the model gives its last word. */
export function taughtTask(
  harness: PlayingHarness,
  turns: number,
): { instruction: string; files: Record<string, string>; programs: string[] } {
  const { kind } = plays.tools[tools[harness]] ?? { kind: "" };
  const says = (text: string) => text.replaceAll("$KIND", kind).replace("$N", "$step");
  const program = [
    "#!/bin/sh",
    "step=$(($(cat .step 2>/dev/null || echo 0) + 1))",
    "echo $step >.step",
    `if [ $step -lt ${turns} ]; then`,
    `  echo "${says(plays.step)}"`,
    "else",
    `  echo "${harness === "mini-swe-agent" ? submit : ""}${says(plays.last)}"`,
    "fi",
    "",
  ].join("\n");
  return {
    instruction: says(plays.instruction),
    files: { next: program, walk: program, "notes.txt": "naïve 日本\n" },
    programs: ["next", "walk"],
  };
}

/** mini-swe-agent takes no answer for an end, but a command whose output begins with this. */
const submit = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT\n";
