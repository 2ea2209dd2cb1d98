/**
 * The demo's plays: what an engine with random weights is allowed to say at each turn, so that an unmodified harness gets
 * well-formed turns from it. A turn is a list of whole answers in vLLM's `structured_outputs: {choice}`; the policy really
 * samples which one it gives, right fix or wrong fix, wording by wording. They are text in the engine's own tool-call
 * syntax (hermes), with that harness's own tools and arguments.
 *
 * Each answer is varied at five or more places, so that a turn has at least five tokens that were really chosen.
 */
import { readFile } from "node:fs/promises";
import { extname } from "node:path";
import { z } from "zod";
import { AlidadeError } from "../../base/errors.ts";
import type { Sampling } from "../../base/schema/message.ts";
import { readJson } from "../../base/schema/read-json.ts";

/** `old` stands exactly once in the file; `new` is put in its place. Both end where a line ends. */
export const Edit = z.strictObject({ path: z.string().min(1), old: z.string().min(1), new: z.string() });
export type Edit = z.infer<typeof Edit>;

/** How a task is played, right and wrong; beside the task as `plays.json`. Paths are relative to the workdir. */
export const PlayScript = z.strictObject({
  look: z.array(z.string().min(1)).min(1).describe("files read in the first turn; each file that is edited must be among them"),
  fixes: z.strictObject({
    right: z.array(z.array(Edit).min(1)).min(1),
    wrong: z.array(z.array(Edit).min(1)).min(1),
  }),
  check: z.array(z.string().min(1)).default([]).describe("commands for a look at the result, such as the visible tests; one is run"),
  answers: z.array(z.string().min(1)).min(1).describe("last words, without the closing sentence that playsFor adds"),
});
export type PlayScript = z.input<typeof PlayScript>;

export type Mix = "mixed" | "right" | "wrong";
export type PlayedHarness = keyof typeof hands;

/**
 * Forced sampling parameters by turn: look, fix, check, answer; the answer repeats. `mix` says which fixes are offered.
 *
 *     const sampling = playsFor("pi", PlayScript.parse(JSON.parse(text)), "mixed");
 */
export function playsFor(harness: PlayedHarness, script: PlayScript, mix: Mix): Sampling[] {
  const { look, fixes, check, answers } = PlayScript.parse(script);
  const hand = hands[harness];
  const offered = mix === "mixed" ? [...fixes.right, ...fixes.wrong] : fixes[mix];
  for (const { path } of offered.flat())
    if (!look.includes(path))
      throw new AlidadeError("task_invalid", `plays: ${path} is edited, so it must be in "look"`, { param: "look" });
  const turns = [
    hand.look(look),
    varied(offered, fixNotes, (edits, note) => hand.edit(withComment(edits, note))),
    varied(check.length > 0 ? check : [`cat ${look.map(quoted).join(" ")}`], checkNotes, (command, note) =>
      hand.shell(`${command} # ${note}`),
    ),
    varied(answers, closings, (answer, closing) => `${answer} ${closing}`),
  ];
  return turns.map((choice) => ({ structured_outputs: { choice } }));
}

/** Reads a `plays.json`. Throws with the path and the field that is wrong. */
export async function loadPlays(path: string): Promise<PlayScript> {
  const result = PlayScript.safeParse(readJson(await readFile(path, "utf8")));
  if (!result.success) throw new AlidadeError("task_invalid", `${path}: ${z.prettifyError(result.error)}`, { cause: result.error });
  return result.data;
}

/** How one harness's model reads files, edits them and runs a command. */
type Hand = {
  look(paths: string[]): string[];
  edit(edits: Edit[]): string;
  shell(command: string): string;
};

const hands = {
  pi: {
    look: (paths) => lookByShell(paths, (command) => toolCallText("bash", { command })),
    edit: (edits) =>
      byFile(edits, (path, own) => toolCallText("edit", { path, edits: own.map((edit) => ({ oldText: edit.old, newText: edit.new })) })),
    shell: (command) => toolCallText("bash", { command }),
  },
  codex: {
    look: (paths) => lookByShell(paths, (cmd) => toolCallText("exec_command", { cmd })),
    edit: (edits) => toolCallText("exec_command", { cmd: editByNode(edits) }),
    shell: (cmd) => toolCallText("exec_command", { cmd }),
  },
  "claude-code": {
    // Its Edit refuses a file that its Read has not seen.
    look: (paths) => readLimits.map((limit) => paths.map((path) => toolCallText("Read", { file_path: path, limit })).join("\n")),
    edit: (edits) =>
      edits.map((edit) => toolCallText("Edit", { file_path: edit.path, old_string: edit.old, new_string: edit.new })).join("\n"),
    shell: (command) => toolCallText("Bash", { command }),
  },
  "gemini-cli": {
    look: (paths) => lookByShell(paths, (command) => toolCallText("run_shell_command", { command })),
    // Its replace wants to be told in words as well what the edit is for.
    edit: (edits) =>
      edits
        .map(({ path, old, new: text }) =>
          toolCallText("replace", { file_path: path, instruction: "Repair it.", old_string: old, new_string: text }),
        )
        .join("\n"),
    shell: (command) => toolCallText("run_shell_command", { command }),
  },
  "qwen-code": {
    // Its own read_file and edit want absolute paths, and a play does not know where the work stands.
    look: (paths) => lookByShell(paths, (command) => toolCallText("run_shell_command", { command, is_background: false })),
    edit: (edits) => toolCallText("run_shell_command", { command: editByNode(edits), is_background: false }),
    shell: (command) => toolCallText("run_shell_command", { command, is_background: false }),
  },
  opencode: {
    // Its edit refuses a file that its read has not seen.
    look: (paths) => readLimits.map((limit) => paths.map((filePath) => toolCallText("read", { filePath, limit })).join("\n")),
    edit: (edits) =>
      edits.map(({ path, old, new: text }) => toolCallText("edit", { filePath: path, oldString: old, newString: text })).join("\n"),
    shell: (command) => toolCallText("bash", { command, description: "Looks at the result" }),
  },
} as const satisfies Record<string, Hand>;

/** Longer than any file of the demo. Five digits, two to choose from at each: the turn's five choices are in the number. */
const readLimits = wordings(["1", "2"], ["0", "5"], ["0", "5"], ["0", "5"], ["0", "5"]).map((digits) => Number(digits.join("")));

function lookByShell(paths: string[], toCall: (command: string) => string): string[] {
  const files = paths.map(quoted).join(" ");
  return varied([`cat ${files}`, `cat -n ${files}`], lookNotes, (command, note) => toCall(`${command} # ${note}`));
}

/** One call a file; edits of one file stay in order. */
function byFile(edits: Edit[], toCall: (path: string, edits: Edit[]) => string): string {
  return [...Map.groupBy(edits, (edit) => edit.path)].map(([path, own]) => toCall(path, own)).join("\n");
}

/** Edits for a harness that has a shell alone: a here-document carries any text, and a missing `old` is an error. */
function editByNode(edits: Edit[]): string {
  return [
    "node - <<'EDIT'",
    `const fs = require("node:fs");`,
    "function edit(path, before, after) {",
    `  const parts = fs.readFileSync(path, "utf8").split(before);`,
    `  if (parts.length !== 2) throw new Error("not there exactly once: " + before);`,
    "  fs.writeFileSync(path, parts.join(after));",
    "}",
    ...edits.map((edit) => `edit(${[edit.path, edit.old, edit.new].map((text) => JSON.stringify(text)).join(", ")});`),
    "EDIT",
  ].join("\n");
}

/** One tool call as the engine's hermes parser reads it, spaced as its chat template prints it again. */
export function toolCallText(name: string, args: Record<string, unknown>): string {
  return `<tool_call>\n{"name": ${JSON.stringify(name)}, "arguments": ${templateJson(args)}}\n</tool_call>`;
}

/** JSON with a space after comma and colon: what `tojson` of a chat template prints, so that a turn reads back as it was sampled. */
function templateJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(templateJson).join(", ")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const fields = Object.entries(value).map(([key, field]) => `${JSON.stringify(key)}: ${templateJson(field)}`);
  return `{${fields.join(", ")}}`;
}

function quoted(path: string): string {
  return /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`;
}

const commentSigns = new Map(
  Object.entries({
    ".js": "//",
    ".mjs": "//",
    ".cjs": "//",
    ".jsx": "//",
    ".ts": "//",
    ".tsx": "//",
    ".go": "//",
    ".rs": "//",
    ".c": "//",
    ".java": "//",
    ".py": "#",
    ".sh": "#",
    ".yaml": "#",
    ".yml": "#",
    ".toml": "#",
  }),
);

/** The note as a comment behind the last edit: harmless to the code, and what the policy chooses its wording in. */
function withComment(edits: Edit[], note: string): Edit[] {
  const last = edits.at(-1);
  const sign = last && commentSigns.get(extname(last.path));
  if (last === undefined || sign === undefined)
    throw new Error(`plays: no comment can be put into ${last?.path}; known: ${[...commentSigns.keys()]}`);
  return [...edits.slice(0, -1), { ...last, new: `${last.new} ${sign} ${note}` }];
}

/** Fewer answers than this could not have five choices on the way to each of them. */
const fewestAnswers = 32;

type Slots = readonly (readonly [string, string])[];

/** Every base with as many of the note's slots left open as it takes; a closed slot has its first word. */
function varied<Base>(bases: readonly Base[], slots: Slots, say: (base: Base, note: string) => string): string[] {
  const open = Math.min(slots.length, Math.max(4, Math.ceil(Math.log2(fewestAnswers / bases.length))));
  const notes = wordings(...slots.map((slot, index) => (index < open ? slot : slot.slice(0, 1))));
  return bases.flatMap((base) => notes.map((words) => say(base, words.join(" "))));
}

/** Every way through the slots, one word from each. */
function wordings(...slots: (readonly string[])[]): string[][] {
  return slots.reduce<string[][]>((ways, slot) => ways.flatMap((way) => slot.map((word) => [...way, word])), [[]]);
}

const lookNotes: Slots = [
  ["first", "begin:"],
  ["read", "see"],
  ["the code", "what is there"],
  ["as it", "how it"],
  ["is now", "stands"],
];

const fixNotes: Slots = [
  ["repairs", "fixes"],
  ["the", "a"],
  ["wrong", "broken"],
  ["case", "line"],
  ["here", "now"],
];

const checkNotes: Slots = [
  ["look at", "check"],
  ["the result", "what came of it"],
  ["before", "and then"],
  ["saying", "telling"],
  ["so", "it"],
];

const closings: Slots = [
  ["The change", "My edit"],
  ["is", "stays"],
  ["small", "short"],
  ["and", "yet"],
  ["complete.", "sufficient."],
];
