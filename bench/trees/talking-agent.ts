/**
 * An agent that takes whatever it is told for a word of encouragement: after each answer it writes the turn's number to a file,
 * and shows the model what that printed. So each token is the engine's free choice, and a rollout has as many turns as are asked.
 */
import { exec } from "node:child_process";
import { promisify } from "node:util";

const [instruction = "", turns = "1"] = process.argv.slice(2);
const messages: { role: string; content: string | null }[] = [{ role: "user", content: instruction }];

for (let turn = 0; turn < Number(turns); turn++) {
  const response = await fetch(`${process.env.OPENAI_BASE_URL}/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${process.env.OPENAI_API_KEY}`, "content-type": "application/json" },
    body: JSON.stringify({ model: process.env.ALIDADE_MODEL ?? "any", messages, max_tokens: 64 }),
  });
  if (!response.ok) throw new Error(`turn ${turn}: ${response.status} ${await response.text()}`);
  const { choices } = (await response.json()) as { choices: { message: { content: string | null } }[] };
  const { stdout } = await promisify(exec)(`echo ${turn} >> done.txt; date +%N`);
  messages.push({ role: "assistant", content: choices[0]?.message.content ?? null });
  messages.push({ role: "user", content: `Turn ${turn} is counted, in ${stdout.trim()} ns. Go on.` });
}
