/**
 * The requests of real harnesses by their sizes, as they were recorded: `[bytes, values of JSON]` of what stands around
 * the conversation, of the first prompt and of a turn with its result; and how many of the last messages are written anew
 * in the next request (Claude Code moves its marks for the prompt cache).
 */
export const harnessShapes = {
  "Claude Code 2.1.329": {
    path: "/v1/messages",
    field: "messages",
    around: [38_600, 600],
    first: [10_600, 100],
    turn: [11_100, 33],
    anew: 2,
  },
  "Codex 0.169.0": { path: "/v1/responses", field: "input", around: [1_700, 56], first: [53_700, 540], turn: [11_000, 19], anew: 0 },
} as const;

type Sizes = readonly [bytes: number, values: number];

/** The bodies that an agent of this shape sends, one a turn. `results`: the bytes of each turn's result where they are others. */
export function* bodiesOf(
  shape: (typeof harnessShapes)[keyof typeof harnessShapes],
  { agent, turns, results = {} }: { agent: string; turns: number; results?: Record<number, number> },
): Generator<object> {
  const isInput = shape.field === "input";
  const said = { role: "assistant", content: [{ type: isInput ? "output_text" : "text", text: "ok" }] };
  const user = (text: string, [bytes, values]: Sizes, mark: number | null) => ({
    role: "user",
    content: [
      { type: isInput ? "input_text" : "text", text: `${agent} ${text} `.padEnd(bytes, "lorem ipsum "), values: Array(values).fill(mark) },
    ],
  });
  const [bytes, values] = shape.around;
  const schema = { type: "object", enum: Array(values).fill(1) };
  const tool = {
    name: "t",
    description: "d".repeat(bytes),
    ...(isInput ? { type: "function", parameters: schema } : { input_schema: schema }),
  };
  for (let turn = 0; turn < turns; turn++) {
    const mark = (index: number): number | null => (index > turn - shape.anew ? turn : null);
    const later = Array.from({ length: turn }, (_, index) => [
      said,
      user(`turn ${index}`, [results[index] ?? shape.turn[0], shape.turn[1]], mark(index + 1)),
    ]);
    yield { model: "m", max_tokens: 9, [shape.field]: [user("first", shape.first, mark(0)), ...later.flat()], tools: [tool] };
  }
}
