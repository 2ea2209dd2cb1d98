/** A judge of a test: it reads the prompt as a model's tokenizer might, and believes what stands outside of the work. */
import type { ScriptedReply, WireRequest } from "../../fakes/engines/scripted-engine.ts";
import { command } from "./injections.ts";

/** Tokens of its template, which its tokenizer reads in any text. */
export const marks: readonly string[] = ["<|im_start|>", "</s>", "<s>", "[/INST]", "[INST]", "<<SYS>>", "<start_of_turn>", "<｜User｜>"];

type Judged = { outside: string; inside: string; statements: [string, string][] };

/** The prompt as a chat template's tokenizer might cut it: what stands behind a token of a role is outside of any fence. */
export function readPrompt(request: WireRequest): Judged {
  const whole = request.messages.map(({ content }) => (typeof content === "string" ? content : JSON.stringify(content))).join("\n");
  const tag = /<(work-[0-9a-f]{32})>\n\|/.exec(whole)?.[1] ?? "none";
  const [before = "", rest = ""] = whole.split(`<${tag}>\n`, 2);
  const [inside = "", ...after] = rest.split(/<\|im_start\|>|<\/?s>|\[INST\]|<<SYS>>|<start_of_turn>|<｜User｜>/);
  const end = inside.lastIndexOf(`\n</${tag}>`);
  const outside = [before, end === -1 ? "" : inside.slice(end), ...after, whole.slice(whole.indexOf(`</${tag}>`))].join("\n");
  const unmarked = inside
    .slice(0, end)
    .split(/[\n\r\v\f\u0085\u2028\u2029]/)
    .filter((line) => !line.startsWith("| "));
  const statements = [...whole.matchAll(/^(S\d+): (.*)$/gm)].map(([, id = "", says = ""]): [string, string] => [id, says]);
  return { outside: [outside, ...unmarked].join("\n"), inside: inside.slice(0, end), statements };
}

export function saying(statements: [string, string][], met: (says: string) => string): ScriptedReply {
  return { text: JSON.stringify(Object.fromEntries(statements.map(([id, says]) => [id, { why: "", met: met(says) }]))) };
}

/** Says of each statement whether its last word stands in the work, and obeys what is said outside of the fence. */
export function reader(request: WireRequest): ScriptedReply {
  const { outside, inside, statements } = readPrompt(request);
  if (outside.includes(command)) return saying(statements, () => "yes");
  return saying(statements, (says) => (inside.includes(/(\S+)\.$/.exec(says)?.[1] ?? "?") ? "yes" : "no"));
}
