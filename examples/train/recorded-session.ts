/** Records what a harness sends in a session of two turns. `teach.ts` makes its lessons of this text. */
import { spawnSync } from "node:child_process";
import { mkdtemp, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { readJson } from "../../base/schema/read-json.ts";
import { decodeBytes } from "../../practice/tokenizer/vocabulary.ts";
import { type TaughtHarness, taughtCall } from "./taught.ts";

const here = fileURLToPath(new URL("./", import.meta.url));
const root = fileURLToPath(new URL("../../", import.meta.url));

/** The task of this folder is recorded. */
const task = { folder: "initials", instruction: "Print the names as initials.", way: "short" } as const;
const answer = "Done.";

/** What the harness sends, in order. The instruction and the policy's call are left out between the parts. */
export type RecordedSession = {
  /** From the system turn to the instruction. */
  head: string;
  /** From the instruction to the policy's first turn. */
  afterInstruction: string;
  /** From the policy's call to its second turn: the result of the tool. */
  afterCall: string;
};

const Trajectory = z.looseObject({
  nodes: z.array(z.looseObject({ node_id: z.string(), parent_id: z.string().nullable(), token_ids: z.array(z.number()) })),
  calls: z.array(z.looseObject({ prompt_node_id: z.string(), prompt_length: z.number() })).min(2),
});

/** Runs the harness once at the embedded engine, whose answers are forced. `scratch`: a folder for the run. */
export async function recordSession(harness: TaughtHarness, scratch: string): Promise<RecordedSession> {
  const out = await mkdtemp(join(scratch, `${harness}-`));
  const call = taughtCall(harness, task.way);
  const config = {
    engine: { url: "practice" },
    ...{ harness, sandbox: "process", unsafe_host: true, out, tasks: [join(here, "tasks", task.folder)] },
    sampling: [call, answer].map((choice) => ({ structured_outputs: { choice: [choice] } })),
  };
  const file = join(out, "run.yaml");
  await writeFile(file, JSON.stringify(config));
  const argv = [join(root, "bin/alidade.js"), "run", "-c", file, "-n", "1"];
  const done = spawnSync(process.execPath, argv, { encoding: "utf8" });
  const [run] = (await readdir(out)).filter((name) => name.startsWith("run") && !name.includes("."));
  if (run === undefined) throw new Error(`alidade run with ${harness} recorded nothing: ${done.stderr.slice(-2_000)}`);
  const text = lastPrompt(await readFile(join(out, run, "trajectories.jsonl"), "utf8"));
  const [head = "", ...rest] = text.split(task.instruction);
  const [afterInstruction = "", afterCall = ""] = rest.join(task.instruction).split(call);
  if (!afterInstruction.endsWith("<|im_start|>assistant\n") || !afterCall.endsWith("<|im_start|>assistant\n"))
    throw new Error(`the session of ${harness} has another form than the lessons: ${text.slice(-2_000)}`);
  return { head, afterInstruction, afterCall };
}

/** The prompt of the session's last call, as text. */
function lastPrompt(trajectories: string): string {
  const { nodes, calls } = Trajectory.parse(readJson(trajectories.slice(0, trajectories.indexOf("\n"))));
  const byId = new Map(nodes.map((node) => [node.node_id, node]));
  const last = calls.at(-1);
  const ids: number[] = [];
  for (let node = byId.get(last?.prompt_node_id ?? ""); node; node = byId.get(node.parent_id ?? "")) ids.unshift(...node.token_ids);
  return new TextDecoder().decode(decodeBytes(ids.slice(0, last?.prompt_length)));
}
