/** The message of an answer that came whole, in the shape of chat completions. */
import { z } from "zod";
import type { SampleEvent } from "../engine.ts";

export const ReplyMessage = z.looseObject({
  content: z.string().nullish(),
  reasoning_content: z.string().nullish(),
  tool_calls: z
    .array(
      z.looseObject({
        id: z.string().nullish(),
        function: z.looseObject({ name: z.string().nullish(), arguments: z.string().nullish() }),
      }),
    )
    .nullish(),
});

/** What it says: the reasoning, the text, then the calls. */
export function* messageEvents(
  { content, tool_calls }: z.infer<typeof ReplyMessage>,
  reasoning: string | null | undefined,
): Generator<SampleEvent> {
  if (reasoning) yield { type: "reasoning-delta", text: reasoning };
  if (content) yield { type: "text-delta", text: content };
  for (const call of tool_calls ?? [])
    yield { type: "tool-call", id: call.id ?? "", name: call.function.name ?? "", arguments: call.function.arguments ?? "" };
}
