/**
 * A harness of twenty lines that keeps its conversation below HOME. Its argument is a message; `--continue` before it continues
 * the kept conversation. It runs the shell commands of its answers. With HARNESS_FORGETS, `--continue` ends without a call.
 */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";

type Answer = {
  choices?: { message: { content: string | null; tool_calls?: { id: string; function: { arguments: string } }[] } }[];
};
const goesOn = process.argv[2] === "--continue";
const said = process.argv.at(-1);
const kept = `${process.env.HOME}/conversation.json`;
const messages: unknown[] = goesOn && existsSync(kept) ? JSON.parse(readFileSync(kept, "utf8")) : [];
if (goesOn && process.env.HARNESS_FORGETS) process.exit(0);
messages.push({ role: "user", content: said });
for (let isOver = false; !isOver; ) {
  const response = await fetch(`${process.env.OPENAI_BASE_URL}/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${process.env.OPENAI_API_KEY}`, "content-type": "application/json" },
    body: JSON.stringify({ model: process.env.ALIDADE_MODEL ?? "any", messages }),
  });
  const answer = ((await response.json()) as Answer).choices?.[0]?.message;
  if (!answer) process.exit(1);
  messages.push({ role: "assistant", ...answer });
  for (const call of answer.tool_calls ?? []) {
    const { command } = JSON.parse(call.function.arguments) as { command: string };
    messages.push({
      role: "tool",
      tool_call_id: call.id,
      content: execFileSync("sh", ["-c", command], { encoding: "utf8" }) || "(nothing)",
    });
  }
  isOver = !answer.tool_calls?.length;
}
writeFileSync(kept, JSON.stringify(messages));
