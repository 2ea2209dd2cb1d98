/**
 * A harness for trainers' loops: two short talks that begin anew, so that a rollout has several rows. What the model said last
 * lies in the file `answer`.
 */
import { writeFile } from "node:fs/promises";

const instruction = process.argv[2] ?? "";
const talks = [[instruction, "Go on."], [`Tell me more. ${instruction}`]];
let said = "";
for (const questions of talks) {
  const messages: unknown[] = [];
  for (const content of questions) {
    messages.push({ role: "user", content });
    const response = await fetch(`${process.env.OPENAI_BASE_URL}/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${process.env.OPENAI_API_KEY}`, "content-type": "application/json" },
      body: JSON.stringify({ model: process.env.ALIDADE_MODEL, messages, max_tokens: 12 }),
    });
    const { choices } = (await response.json()) as { choices: { message: { content: string | null } }[] };
    const message = choices[0]?.message ?? { content: null };
    messages.push({ role: "assistant", content: message.content ?? "" });
    said += message.content ?? "";
  }
}
await writeFile("answer", said);
