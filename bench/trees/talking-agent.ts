/**
 * An agent that runs the same command whatever the model answers. After each answer it writes the turn's number to a file, and
 * sends the command's output to the model. So the engine samples each token freely, and the caller sets the number of turns.
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
