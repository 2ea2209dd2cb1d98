import type { WireRequest } from "../engines/scripted-engine.ts";

/** A call of the harness's shell. Every harness has one, under a name of its own. */
export function shellCall(request: WireRequest, command: string): { name: string; arguments: string } {
  const offered = JSON.stringify(request.tools);
  const name = ["Bash", "bash", "run_shell_command", "exec_command"].find((one) => offered.includes(`"name":"${one}"`)) ?? "bash";
  const usual = { command, description: "look" };
  const args = { exec_command: { cmd: command }, run_shell_command: { ...usual, is_background: false } }[name] ?? usual;
  return { name, arguments: JSON.stringify(args) };
}
