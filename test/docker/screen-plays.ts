/** Runs example tasks that have a screen, in Docker, with a real harness. A scripted engine asks for the steps of the test. */
import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { join } from "node:path";
import type { TestContext } from "node:test";
import type { RolloutRecord } from "../../base/schema/rollout.ts";
import { ScriptedEngine, type ScriptedReply, type WireRequest } from "../fakes/engines/scripted-engine.ts";
import { cli, jsonOf } from "../fakes/processes/cli.ts";
import { shellCall } from "../fakes/tools/shell-call.ts";
import { toolNameIn } from "../fakes/tools/tool-name.ts";
import { type Need, need } from "../needs.ts";

export type Step = { tool: string; args: Record<string, unknown> } | { shell: string };

export type Play = { steps: Step[]; reward: number };

export const act = (action: string, args: Record<string, unknown> = {}): Step => ({ tool: "computer", args: { action, ...args } });

/**
 * `task`: path of the task file. `says`: a part of its instruction, which the proxy's probes do not hold. `scratch`: a folder for
 * the run. `look` is called at each request of the agent, with the folder of the run.
 */
export type PlayOrder = {
  task: string;
  says: string;
  harness: string;
  server: string;
  steps: Step[];
  scratch: string;
  look?: (out: string) => Promise<unknown>;
};

/** null: the machine lacks something, and the test is left out. */
export async function playOnScreen(t: TestContext, { task, says, harness, server, steps, scratch, look }: PlayOrder) {
  if (!(await need(t, "docker")) || !(await need(t, `harness:${harness}` as Need))) return null;
  const requests: WireRequest[] = [];
  const out = join(scratch, `${harness}-${server}-${steps.length}-${Math.random().toString(36).slice(2)}`);
  const isAgents = ({ messages }: WireRequest) => JSON.stringify(messages).includes(says);
  await using engine = await ScriptedEngine.start((request) => {
    if (!isAgents(request)) return { text: "yes" };
    requests.push(request);
    return replyTo(request, server, steps[requests.length - 1]);
  });
  engine.before = async (request) => {
    if (isAgents(request)) await look?.(out);
  };
  const where = ["--harness", harness, "--sandbox", "docker", "-n", "1", "-o", out, "--json", "--control-port", "0"];
  const result = await cli(["run", task, "--engine", engine.url, ...where]);
  const { run, rollouts } = jsonOf<{ run: string; rollouts: RolloutRecord[] }>(result);
  return { record: rollouts[0] ?? assert.fail(result.stderr), folder: run, requests };
}

function replyTo(request: WireRequest, server: string, step: Step | undefined): ScriptedReply {
  if (step === undefined) return { text: "It is done." };
  if ("shell" in step) return { tool_calls: [shellCall(request, step.shell)] };
  return { tool_calls: [{ name: toolNameIn(request, server, step.tool) ?? step.tool, arguments: JSON.stringify(step.args) }] };
}

/** Hashes of the pictures that a request holds. */
export function picturesIn(request: WireRequest | undefined): string[] {
  const found = JSON.stringify(request?.messages ?? []).matchAll(/data:image\/\w+;base64,([A-Za-z0-9+/=]+)/g);
  return [...found].map(([, data = ""]) => hash("sha256", Buffer.from(data, "base64")));
}

/** A command that finds which ports and abstract sockets the agent reaches, and makes `calls` of `computer` past the model. */
export function tamperingBy(calls: Record<string, unknown>[]): Step {
  return {
    shell: `python3 - <<'END'
import json, socket, urllib.request
found = []
for port in range(1, 10000):
    one = socket.socket(); one.settimeout(1)
    if one.connect_ex(("127.0.0.1", port)) == 0: found.append(port)
    one.close()
print("open", found, [line.split()[-1] for line in open("/proc/net/unix") if "@" in line])
for args in json.loads(${JSON.stringify(JSON.stringify(calls))}):
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "computer", "arguments": args}}
    asked = urllib.request.Request("http://127.0.0.1:4000/mcp/computer", json.dumps(body).encode(), {"content-type": "application/json"})
    urllib.request.urlopen(asked).read()
END`,
  };
}
