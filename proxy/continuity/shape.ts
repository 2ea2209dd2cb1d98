/**
 * The form of a turn and of the messages appended to it, with place holders for the content. The template closes two turns
 * of one form alike, so a finding for one holds for the other.
 */
import { probePicture } from "../../base/media/probe-picture.ts";
import { type ContentPart, type Message, type Tool, toolCallsOf } from "../../base/schema/message.ts";

/** Words that stand for content. Letters only, so that no template quotes them; found again in what it prints. */
export const marks = {
  instructions: "Alidadeinstructions",
  tool: "Alidadetool",
  user: "Alidadeuser",
  text: "Alidadetext",
  turn: "Alidadeturn",
  reasoning: "Alidadereasoning",
} as const;

/** Letters and digits, nine of them: there are templates that refuse any other id. */
const idOf = (index: number): string => `call${String(index).padStart(5, "0")}`;

export type Shape = {
  /** Roles of the instructions that the conversation opens with, each role once. */
  leading: string[];
  hasTools: boolean;
  hasText: boolean;
  /** Names of the turn's calls: some templates print them with the results. */
  calls: string[];
  /**
   * The role of each appended message, and for a result the call that it answers (-1: none of this turn). Behind `~`, where it
   * shows a picture, the order of its texts (t) and pictures (i).
   */
  appended: string[];
};

export function shapeOf(before: readonly Message[], turn: Message, appended: readonly Message[], hasTools: boolean): Shape {
  const leading: string[] = [];
  for (const { role } of before) {
    if (role !== "system" && role !== "developer") break;
    if (!leading.includes(role)) leading.push(role);
  }
  const ids = toolCallsOf(turn).map(({ id }) => id);
  return {
    leading,
    hasTools,
    hasText: turn.parts.some((part) => part.type === "text" && part.text !== ""),
    calls: toolCallsOf(turn).map(({ name }) => name),
    appended: appended.map(({ role, parts }) => {
      const results = parts.map((part) => (part.type === "tool_result" ? ` ${ids.indexOf(part.call_id)}${pictured(part.content)}` : ""));
      return `${role}${pictured(parts)}${results.join("")}`;
    }),
  };
}

/** What a turn's conversation may have had before: nothing, talk, a tool loop that goes on, whole exchanges, or a picture. */
export type Past = "none" | "talk" | "loop" | "exchanges" | "pictures";

/** A conversation of this shape up to the end of the turn, its last call's argument (without calls its text) the mark. */
export function dummyConversation(
  shape: Shape,
  where: "arguments" | "text",
  { past = "none", ids = shape.calls.map((_, index) => idOf(index)) }: { past?: Past; ids?: string[] } = {},
): Message[] {
  const [text, value] = where === "text" ? [marks.turn, "a"] : [marks.text, marks.turn];
  const last = shape.calls.length - 1;
  return [
    ...shape.leading.map((role) => textMessage(role as Message["role"], marks.instructions)),
    ...(past === "pictures" ? [{ role: "user" as const, parts: dummyContent("it") }, textMessage("assistant", "e")] : []),
    ...(past === "talk" ? [textMessage("user", "d"), textMessage("assistant", "e")] : []),
    ...(past === "exchanges"
      ? [textMessage("user", "d"), ...loop(), textMessage("assistant", "e"), textMessage("user", "f"), textMessage("assistant", "g")]
      : []),
    textMessage("user", marks.user),
    ...(past === "loop" ? loop() : []),
    {
      role: "assistant",
      parts: [
        ...(shape.hasText || where === "text" ? [{ type: "text" as const, text }] : []),
        ...shape.calls.map((name, index) => ({
          type: "tool_call" as const,
          id: ids[index] as string,
          name,
          arguments: JSON.stringify({ key: index === last ? value : "a" }),
          kind: "function" as const,
        })),
      ],
    },
  ];
}

/** The appended messages with words of ours: what a shape alone says of them. */
export function dummyAppended(shape: Shape): Message[] {
  return shape.appended.map((each): Message => {
    const [first = "", ...results] = each.split(" ");
    const [role, form = "t"] = first.split("~");
    if (role !== "tool") return { role: role as Message["role"], parts: dummyContent(form) };
    return {
      role,
      parts: results.map((result) => {
        const [index, content = "t"] = result.split("~");
        return resultOf(Number(index) < 0 ? idOf(99) : idOf(Number(index)), dummyContent(content));
      }),
    };
  });
}

/** Where there are pictures: in which order they stand among texts. */
function pictured(parts: readonly { type: string }[]): string {
  const shown = parts.filter(({ type }) => type === "image" || type === "text");
  return shown.some(({ type }) => type === "image") ? `~${shown.map(({ type }) => (type === "image" ? "i" : "t")).join("")}` : "";
}

function dummyContent(form: string): ContentPart[] {
  return [...form].map((letter) => (letter === "i" ? { type: "image", url: probePicture } : { type: "text", text: "b" }));
}

/** The real appended messages, their results under the ids that `dummyConversation` gives its calls. */
export function withDummyIds(turn: Message, appended: readonly Message[]): Message[] {
  const dummyOf = new Map(toolCallsOf(turn).map(({ id }, index) => [id, idOf(index)]));
  return appended.map((message) => ({
    ...message,
    parts: message.parts.map((part) =>
      part.type === "tool_result" ? { ...part, call_id: dummyOf.get(part.call_id) ?? part.call_id } : part,
    ),
  }));
}

/** Do the ids of calls stand in what was printed? */
export function printsIds(shape: Shape, text: string): boolean {
  return shape.calls.some((_, index) => text.includes(idOf(index)));
}

/** Tools of the same names, small: how results are printed has to do with nothing else of them. */
export function dummyTools(shape: Pick<Shape, "hasTools" | "calls">): Tool[] {
  if (!shape.hasTools) return [];
  const names = shape.calls.length > 0 ? [...new Set(shape.calls)] : ["probe"];
  return names.map((name) => ({
    name,
    description: marks.tool,
    parameters: { type: "object", properties: { key: { type: "string" } } },
    kind: "function",
  }));
}

function loop(): Message[] {
  const call: Message["parts"][number] = { type: "tool_call", id: idOf(90), name: "probe", arguments: '{"key": "c"}', kind: "function" };
  return [
    { role: "assistant", parts: [call] },
    { role: "tool", parts: [resultOf(idOf(90))] },
  ];
}

function textMessage(role: Message["role"], text: string): Message {
  return { role, parts: [{ type: "text", text }] };
}

function resultOf(call_id: string, content: ContentPart[] = dummyContent("t")): Message["parts"][number] {
  return { type: "tool_result", call_id, content, is_error: false };
}
