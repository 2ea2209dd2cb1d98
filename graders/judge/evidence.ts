/** What a judge is shown of a work: the answer, the files that it left, and the tools that it called; bounded. */
import { text } from "node:stream/consumers";
import { readLayer } from "../../base/files/layer.ts";
import { answerOf } from "../answer-of.ts";
import type { GradeContext } from "../grader.ts";
import { workEvidence } from "../work/work.ts";

export const sights = ["answer", "files", "calls"] as const;
export type Sight = (typeof sights)[number];

/** Characters: together well below the context of a small model. */
const longest = { answer: 20_000, file: 8_000, files: 40_000, call: 1_000, calls: 20_000 } as const;
/** A larger file is named and not shown. */
const largestFile = 1024 * 1024;

/** Returns one text for the judge. It quotes what the agent wrote. */
export async function evidenceFor(sees: readonly Sight[], context: GradeContext): Promise<string> {
  const parts: string[] = [];
  if (sees.includes("answer")) parts.push(`The last answer:\n${cut(answerText(context), longest.answer)}`);
  if (sees.includes("files")) parts.push(`The files that were changed:\n${cut(await filesText(context), longest.files)}`);
  if (sees.includes("calls")) parts.push(`The tools that were called:\n${cut(callsText(context), longest.calls)}`);
  return parts.join("\n\n");
}

/** Beginning and end: what stands at the end of a long text is not lost. */
function cut(whole: string, most: number): string {
  if (whole.length <= most) return whole;
  const half = Math.floor(most / 2);
  return `${whole.slice(0, half)}\n(${whole.length - 2 * half} characters are left out here)\n${whole.slice(-half)}`;
}

function answerText({ trajectory }: GradeContext): string {
  return (trajectory && answerOf(trajectory)) || "(none)";
}

async function filesText({ work, task }: GradeContext): Promise<string> {
  const { added, modified, deleted } = workEvidence(work, task);
  const shown = new Map([...added, ...modified].map((path) => [path.startsWith("/") ? path : `${task.environment.workdir}/${path}`, path]));
  const parts: string[] = [];
  let characters = 0;
  // Asked only where there is something to read: an empty work may have no tarball.
  for await (const { path, content, size } of shown.size === 0 ? [] : readLayer(work)) {
    const name = shown.get(path);
    if (name === undefined || content === null || characters > longest.files) continue;
    const whole = size > largestFile ? null : await text(content);
    const body = whole === null || whole.includes("\0") ? `(${size} bytes that are no short text)` : cut(whole, longest.file);
    parts.push(`File ${JSON.stringify(name)}:\n${body}`);
    characters += body.length;
  }
  const gone = deleted.slice(0, 100).map((path) => `Deleted: ${JSON.stringify(path)}`);
  return [...parts, ...gone].join("\n\n") || "(none)";
}

function callsText({ trajectory }: GradeContext): string {
  const parts = (trajectory?.calls ?? [])
    .toSorted((a, b) => a.ordinal - b.ordinal)
    .flatMap(({ output }) => trajectory?.messages[output ?? ""]?.parts ?? [])
    .filter((part) => part.type === "tool_call");
  return parts.map((part) => cut(`${part.name} ${part.arguments}`, longest.call)).join("\n") || "(none)";
}
