/**
 * A harness of thirty lines: chats, runs the shell commands that it is told to, and ends when there are none. With
 * HARNESS_RETRIES it asks again after a 5xx, as SDKs do; with HARNESS_TITLES it asks for a title after each question and
 * does not care whether it gets one; HARNESS_EXIT is its exit code, however it ended. With HARNESS_LAST a script of the
 * agent's own, left running, asks for something once more after the harness has its last answer.
 */
import { execFile } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";

type Answer = {
  choices?: { message: { content: string | null; tool_calls?: { id: string; function: { arguments: string } }[] } }[];
  error?: unknown;
};
const tools = [
  { type: "function", function: { name: "bash", parameters: { type: "object", properties: { command: { type: "string" } } } } },
];
const messages: unknown[] = [{ role: "user", content: process.argv[2] ?? "hi" }];

let retries = Number(process.env.HARNESS_RETRIES ?? 0);
const ask = (body: Record<string, unknown>): Promise<Response> =>
  fetch(`${process.env.OPENAI_BASE_URL}/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${process.env.OPENAI_API_KEY}`, "content-type": "application/json" },
    body: JSON.stringify({ model: process.env.ALIDADE_MODEL ?? "scripted", ...body }),
  });
const titler = { role: "system", content: "You are a title generator." };

for (;;) {
  const response = await ask({ messages, tools });
  if (process.env.HARNESS_TITLES) await (await ask({ messages: [titler, ...messages] })).text();
  if (response.status >= 500 && retries-- > 0) {
    await response.text();
    await sleep(200);
    continue;
  }
  const { choices, error } = (await response.json()) as Answer;
  const said = choices?.[0]?.message;
  if (!said) {
    console.error(`the model failed: ${JSON.stringify(error)}`);
    process.exit(Number(process.env.HARNESS_EXIT ?? 1));
  }
  messages.push({ role: "assistant", ...said });
  if (!said.tool_calls?.length) {
    console.log(said.content);
    if (process.env.HARNESS_LAST) await (await ask({ messages: [{ role: "user", content: "for a script of mine" }] })).text();
    process.exit(Number(process.env.HARNESS_EXIT ?? 0));
  }
  for (const call of said.tool_calls) {
    const { command } = JSON.parse(call.function.arguments) as { command: string };
    const output = await new Promise<string>((resolve) => execFile("sh", ["-c", command], (_error, out, err) => resolve(out + err)));
    messages.push({ role: "tool", tool_call_id: call.id, content: output || "(no output)" });
  }
}
