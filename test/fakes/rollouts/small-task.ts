/** A task that takes a second: make `done.txt`. Its grader is a shell command. */
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { ScriptedReply, WireRequest } from "../engines/scripted-engine.ts";

export const chatHarness = join(import.meta.dirname, "chat-harness.ts");

const ownLimits = { agent_seconds: 120, grade_seconds: 60, memory_mb: 256, disk_mb: 64 };

function limitsOf(limits: Record<string, number>): string {
  const all = Object.entries({ ...ownLimits, ...limits }).map(([name, value]) => `${name}: ${value}`);
  return `{ ${all.join(", ")} }`;
}

export async function writeTask(folder: string, id: string, more = "", limits: Record<string, number> = {}): Promise<string> {
  const place = join(folder, id);
  await mkdir(join(place, "files"), { recursive: true });
  await writeFile(join(place, "files", "README.txt"), "Make done.txt.\n");
  const grader = `test -f done.txt && echo '{"reward":1}' || echo '{"reward":0}'`;
  await writeFile(
    join(place, "task.yaml"),
    `task_id: ${id}\ninstruction: "Make done.txt for ${id}."\nenvironment: { files: files }\nlimits: ${limitsOf(limits)}\ngrader:\n  kind: script\n  command: [sh, -c, ${JSON.stringify(grader)}]\n${more}`,
  );
  return place;
}

/** Marks a task's folder: its commands may give other results the next time. */
export async function setUnrepeatable(place: string): Promise<void> {
  const file = join(place, "task.yaml");
  const text = await readFile(file, "utf8");
  await writeFile(file, text.replace("{ files: files }", "{ files: files, repeatable: false }"));
}

/** A run file's text: one's own command as the harness, in the process sandbox. */
export function runFile(options: {
  engine: string;
  callsAtOnce?: number | undefined;
  command?: string[];
  tasks?: string[];
  more?: string;
}): string {
  const command = options.command ?? ["node", chatHarness, "{instruction}"];
  const places = options.callsAtOnce === undefined ? "" : `, calls_at_once: ${options.callsAtOnce}`;
  return `engine: { url: "${options.engine}"${places} }\nharness: { command: ${JSON.stringify(command)} }\nsandbox: process\nunsafe_host: true\nsamples: 2\n${
    options.tasks ? `tasks: ${JSON.stringify(options.tasks)}\n` : ""
  }${options.more ?? ""}`;
}

/** The right play, turn by turn. */
export function solve(request: WireRequest): ScriptedReply {
  const turns = request.messages.filter((message) => message.role === "assistant").length;
  return turns === 0 ? { tool_calls: [{ name: "bash", arguments: '{"command":"echo yes > done.txt"}' }] } : { text: "done" };
}
