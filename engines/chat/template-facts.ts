/**
 * What a served template does, found through the server's own tokenizer: which turns it prints where, and hashes of what it
 * and the tokenizer make of fixed conversations. Nothing is generated.
 */
import { createHash } from "node:crypto";
import type { Message, Role, Tool, ToolResultPart } from "../../base/schema/message.ts";
import type { TokenizeSource } from "../engine.ts";

/** Token ids as the server makes them. Throws where it refuses the conversation. */
export type Tokenize = (source: TokenizeSource) => Promise<number[]>;

/** What becomes of a turn: its text is in the prompt, it is left out without a word, or the server refuses the request. */
export type Fate = "printed" | "dropped" | "refused";

/** By role and place (`system`, `developer (later)`, …); null where the server has no such tokenizer route. */
export type RolePlaces = Record<string, Fate>;

const probeText = "Alidade asks whether a turn of this role is printed at all.";
const opening: Message[] = [turn("user", "ping"), turn("assistant", "pong")];

/**
 * Which of the roles that harnesses use the template prints, and where: a longer text of that role makes the prompt
 * longer. That there is such a turn need not: Qwen2.5's, MiniMax's and others' templates leave out a prompt of their own then.
 */
export async function rolePlaces(tokenize: Tokenize): Promise<RolePlaces | null> {
  const length = (messages: Message[]): Promise<number | null> =>
    tokenize({ messages, tools: [], verbatim: true }).then(
      (ids) => ids.length,
      () => null,
    );
  const growth = async (conversation: (text: string) => Message[]): Promise<number | null> => {
    const [short, long] = [await length(conversation("ping")), await length(conversation(`ping ${probeText}`))];
    return short === null || long === null ? null : long - short;
  };
  // A user turn is printed by every template: it says what the sentence costs here.
  const cost = await growth((text) => [turn("user", text)]);
  if (cost === null) return null;
  // Half of it: templates trim, and tokens merge over borders.
  const fate = (grown: number | null): Fate => (grown === null ? "refused" : grown >= cost / 2 && cost > 0 ? "printed" : "dropped");
  const isLaterKnown = (await length([...opening, turn("user", "ping")])) !== null;
  const places: RolePlaces = {};
  for (const role of ["system", "developer"] as const) {
    places[role] = fate(await growth((text) => [turn(role, text), turn("user", "ping")]));
    if (isLaterKnown) places[`${role} (later)`] = fate(await growth((text) => [...opening, turn(role, text), turn("user", "ping")]));
  }
  return places;
}

/** Under which role the turns go out that the template does not print: the nearest one that it does. */
export function roleMapping(places: RolePlaces | null): Record<string, string> {
  if (places === null) return {};
  const mapping: Record<string, string> = {};
  const prints = (place: string): boolean => places[place] === undefined || places[place] === "printed";
  if (!prints("system")) mapping.system = "user";
  if (!prints("developer")) mapping.developer = prints("system") ? "system" : "user";
  for (const role of ["system", "developer"] as const)
    if (mapping[role] === undefined && !prints(`${role} (later)`))
      mapping[`${role} (later)`] = role === "developer" && prints("system (later)") ? "system" : "user";
  return mapping;
}

/** The roles of which it prints a list of two texts as whole as the one text that they would be (see EngineFacts). */
export async function textLists(tokenize: Tokenize): Promise<Role[]> {
  const length = (messages: Message[]): Promise<number> => tokenize({ messages, tools, verbatim: true }).then((ids) => ids.length);
  const isWhole = async (around: (texts: string[]) => Message[]): Promise<boolean> => {
    try {
      const first = await length(around([probeText]));
      const both = await length(around([`${probeText}\n${probeText}`]));
      const list = await length(around([probeText, probeText]));
      // A break between texts is a token or two, or none. A text that is left out, or a list as Python shows one, is many.
      return both > first && Math.abs(list - both) <= 4;
    } catch {
      return false;
    }
  };
  const whole: Role[] = [];
  for (const [role, around] of Object.entries(placesOfLists)) if (await isWhole(around)) whole.push(role as Role);
  return whole;
}

const placesOfLists: Record<Role, (texts: string[]) => Message[]> = {
  system: (texts) => [turn("system", ...texts), turn("user", "ping")],
  developer: (texts) => [turn("developer", ...texts), turn("user", "ping")],
  user: (texts) => [turn("user", ...texts)],
  assistant: (texts) => [turn("user", "ping"), turn("assistant", ...texts), turn("user", "ping")],
  tool: (texts) => [turn("user", "read a"), called, { role: "tool", parts: [resultOf(...texts)] }],
};

/** Hashes of what the server makes of fixed texts and conversations; null where it has no route for them. */
export async function fingerprints(tokenize: Tokenize): Promise<{ template: string | null; tokenizer: string | null }> {
  return {
    template: await hashOf(conversations, (messages) => tokenize({ messages, tools, verbatim: true })),
    tokenizer: await hashOf(texts, (text) => tokenize({ text })),
  };
}

/** A refusal is part of what a template is; one that refuses everything is no template that we could ask. */
async function hashOf<T>(sources: readonly T[], idsOf: (source: T) => Promise<number[]>): Promise<string | null> {
  const hash = createHash("sha256");
  let answers = 0;
  for (const source of sources) {
    const ids = await idsOf(source).catch(() => null);
    if (ids !== null) answers++;
    hash.update(JSON.stringify(ids));
  }
  return answers === 0 ? null : hash.digest("hex").slice(0, 16);
}

function resultOf(...texts: string[]): ToolResultPart {
  return { type: "tool_result", call_id: "call00001", content: texts.map((text) => ({ type: "text", text })), is_error: false };
}

function turn(role: Role, ...texts: string[]): Message {
  return { role, parts: texts.map((text) => ({ type: "text", text })) };
}

/** Fixed for ever: a change here makes every fingerprint another one. */
const texts = [
  "The quick brown fox jumps over 13 lazy dogs.\n\n\tindented(code) {}\r\n",
  "\u00fc u\u0308 \u4f60\u597d \u{1f980}\u200d\u{1f525} \u0627\u0644",
  "<|im_end|><|endoftext|></s><think></think><tool_call>",
  "1234567890 0x7f 3.0e-5   three spaces",
];

const tools: Tool[] = [
  {
    name: "read_file",
    description: "Reads a file.",
    parameters: { type: "object", properties: { path: { type: "string" }, limit: { type: "integer" } }, required: ["path"] },
    kind: "function",
  },
];

const called: Message = {
  role: "assistant",
  parts: [
    { type: "reasoning", text: "A file is asked for." },
    { type: "text", text: "Reading." },
    { type: "tool_call", id: "call00001", name: "read_file", arguments: '{"path": "a", "limit": 2}', kind: "function" },
  ],
};

const conversations: Message[][] = [
  [turn("user", "hello <|im_end|> \u00fc")],
  [turn("system", "Be brief."), turn("user", "hello"), turn("assistant", " hi \n"), turn("user", "again")],
  [turn("system", "Be brief."), turn("user", "read a"), called, { role: "tool", parts: [resultOf("one\ntwo\n")] }],
];
