export type HermesCall = { name: string; arguments: Record<string, unknown>; raw: string };

/** What vLLM's hermes parser makes of a whole answer: the text before the calls, and each call. Throws on anything else. */
export function hermesTurn(answer: string): { text: string; calls: HermesCall[] } {
  const start = answer.indexOf("<tool_call>");
  if (start < 0) return { text: answer, calls: [] };
  const blocks = answer.slice(start).split("</tool_call>");
  if (blocks.pop() !== "") throw new Error(`text behind a call: ${answer}`);
  const calls = blocks.map((block) => {
    const [, json = ""] = /^\n?<tool_call>\n([\s\S]*)\n$/.exec(block) ?? [];
    const { name, arguments: args, ...rest } = JSON.parse(json) as HermesCall;
    if (typeof name !== "string" || typeof args !== "object" || Object.keys(rest).length > 0) throw new Error(`no hermes call: ${block}`);
    const raw = json.slice(json.indexOf('"arguments": ') + '"arguments": '.length, -1);
    return { name, arguments: args, raw };
  });
  return { text: answer.slice(0, start), calls };
}
