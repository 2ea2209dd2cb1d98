/** Turns the steps of a session into calls of each harness's own tools, as text that the engine's tool parser reads. */
import { toolCallText } from "../../examples/demo/plays.ts";
import type { Step } from "./session-script.ts";

type ToolCall = readonly [name: string, args: Record<string, unknown>];

/** `results`: outputs of tools so far, the newest last. `at`: returns the absolute path of a file of the task. */
type Seen = { results: readonly string[]; at: (path: string) => string };

type Hand = {
  /** True if its model can start sub-agents. */
  agents: boolean;
  call(step: Step, seen: Seen): ToolCall;
};

export const hands = {
  pi: {
    agents: false,
    call: (step) => {
      if (step.do === "read") return ["read", { path: step.path }];
      if (step.do === "write") return ["write", { path: step.path, content: step.content }];
      if (step.do === "edit") return ["edit", { path: step.path, edits: [{ oldText: step.old, newText: step.new }] }];
      return ["bash", { command: asCommand(step) }];
    },
  },
  codex: {
    agents: false,
    call: (step, { results }) => {
      const session = lastNumber(results, /session ID (\d+)/i);
      if (step.do === "look" && session !== null) return ["write_stdin", { session_id: session, chars: "", yield_time_ms: 300 }];
      // The command stays in the foreground. Codex stops waiting after `yield_time_ms`, and leaves it running.
      if (step.do === "start") return ["exec_command", { cmd: `echo $$ > job.pid; exec ${step.command}`, yield_time_ms: 300 }];
      if (step.do === "edit") return ["exec_command", { cmd: applied(step.path, step.old, step.new) }];
      return ["exec_command", { cmd: asCommand(step) }];
    },
  },
  "claude-code": {
    agents: false,
    call: (step) => {
      if (step.do === "read") return ["Read", { file_path: step.path }];
      if (step.do === "write") return ["Write", { file_path: step.path, content: step.content }];
      if (step.do === "edit") return ["Edit", { file_path: step.path, old_string: step.old, new_string: step.new }];
      return ["Bash", { command: asCommand(step), description: "A step of the work" }];
    },
  },
  "gemini-cli": {
    agents: true,
    call: (step, { results }) => {
      const pid = lastNumber(results, /PID: (\d+)/);
      if (step.do === "read") return ["read_file", { file_path: step.path }];
      if (step.do === "write") return ["write_file", { file_path: step.path, content: step.content }];
      if (step.do === "edit")
        return ["replace", { file_path: step.path, instruction: "Repair it.", old_string: step.old, new_string: step.new }];
      if (step.do === "start") return ["run_shell_command", { command: started(step.command), is_background: true }];
      if (step.do === "look" && pid !== null) return ["read_background_output", { pid }];
      if (step.do === "agent") return ["invoke_agent", { agent_name: "generalist", prompt: step.prompt }];
      if (step.do === "report") return ["complete_task", { result: { response: step.text } }];
      return ["run_shell_command", { command: asCommand(step) }];
    },
  },
  "qwen-code": {
    agents: true,
    call: (step, { results, at }) => {
      const output = lastMatch(results, /(\/\S*\.output)\b/);
      if (step.do === "read") return ["read_file", { file_path: at(step.path) }];
      if (step.do === "write") return ["write_file", { file_path: at(step.path), content: step.content }];
      if (step.do === "edit") return ["edit", { file_path: at(step.path), old_string: step.old, new_string: step.new }];
      if (step.do === "start") return ["run_shell_command", { command: started(step.command), is_background: true }];
      if (step.do === "look" && output !== null) return ["read_file", { file_path: output }];
      if (step.do === "agent")
        return [
          "agent",
          { description: "A part", prompt: step.prompt, subagent_type: "general-purpose", run_in_background: step.background },
        ];
      return ["run_shell_command", { command: asCommand(step), is_background: false }];
    },
  },
  opencode: {
    agents: true,
    call: (step) => {
      if (step.do === "read") return ["read", { filePath: step.path }];
      if (step.do === "write") return ["write", { filePath: step.path, content: step.content }];
      if (step.do === "edit") return ["edit", { filePath: step.path, oldString: step.old, newString: step.new }];
      if (step.do === "agent") return ["task", { description: "A part", prompt: step.prompt, subagent_type: "general" }];
      return ["bash", { command: asCommand(step) }];
    },
  },
} as const satisfies Record<string, Hand>;

export type HandedHarness = keyof typeof hands;

/** Writes a turn's tool calls as the engine's model would. */
export function turnText(harness: HandedHarness, steps: readonly Step[], seen: Seen): string {
  const hand: Hand = hands[harness];
  return steps
    .map((step) => {
      const [name, args] = hand.call(step, seen);
      return toolCallText(name, args);
    })
    .join("\n");
}

/** Writes the step as a shell command. */
function asCommand(step: Step): string {
  switch (step.do) {
    case "shell":
      return step.command;
    case "read":
      return `cat ${step.path}`;
    case "write":
      return `cat > ${step.path} <<'TEXT'\n${step.content}TEXT`;
    case "edit":
      return applied(step.path, step.old, step.new);
    case "start":
      return `(${started(step.command)}) > job.out 2>&1 & echo "started $!"`;
    case "look":
      return "tail -n 3 job.out job.log";
    case "agent":
    case "report":
      throw new Error(`replay: a shell cannot do ${step.do}`);
  }
}

/** Writes the process id to `job.pid`, so that a later turn ends exactly this process. */
function started(command: string): string {
  return `echo $$ > job.pid; exec ${command}`;
}

function applied(path: string, old: string, text: string): string {
  const marked = (sign: string, lines: string): string => lines.replaceAll(/^/gm, sign);
  return `apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: ${path}\n@@\n${marked("-", old)}\n${marked("+", text)}\n*** End Patch\nEOF`;
}

function lastMatch(texts: readonly string[], what: RegExp): string | null {
  for (const text of texts.toReversed()) {
    const found = what.exec(text)?.[1];
    if (found !== undefined) return found;
  }
  return null;
}

function lastNumber(texts: readonly string[], what: RegExp): number | null {
  const found = lastMatch(texts, what);
  return found === null ? null : Number(found);
}
