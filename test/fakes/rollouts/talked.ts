/** A rollout of the small task with a user. Process sandbox and proxy are real; one scripted engine speaks for both sides. */
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { SimulatedUser } from "../../../base/schema/simulated-user.ts";
import type { Task } from "../../../base/schema/task.ts";
import type { Trajectory } from "../../../base/schema/trajectory.ts";
import type { Harness } from "../../../harnesses/index.ts";
import { reconstruct } from "../../../reconstruct/index.ts";
import { type ResumePlan, type RolloutOutcome, rolloutsOn, toResumePlan } from "../../../rollouts/index.ts";
import { pickBackend, type SandboxBackend } from "../../../sandboxes/index.ts";
import type { ScriptedReply, WireRequest } from "../engines/scripted-engine.ts";
import { runner } from "./small-run.ts";
import { writeTask } from "./small-task.ts";

/** Tells the two sides apart by the first message: only the user has this system prompt. */
const isUser = ({ messages }: WireRequest) => JSON.stringify(messages[0]).includes("customer");

export type Talk = {
  harness: Harness;
  /** Replaces the small task and its user. */
  task?: Task;
  /** Replaces the process sandbox. */
  backend?: SandboxBackend;
  user?: Partial<SimulatedUser>;
  /** The messages of the customer and of the agent, in order; or what the customer's engine answers to a request. */
  customer: readonly ScriptedReply[] | ((request: WireRequest) => ScriptedReply);
  agent: readonly (ScriptedReply | ((request: WireRequest) => ScriptedReply))[];
  limits?: Record<string, number>;
};

/** `ofUser`: the user's session. `resume`: how the rollout would continue after its process died. */
export type Talked = RolloutOutcome & {
  customer: WireRequest[];
  agent: WireRequest[];
  ofUser: Trajectory | null;
  resume: ResumePlan | null;
};

export async function talked(
  t: TestContext,
  { harness, task: given, backend: wanted, user = {}, customer, agent, limits = {} }: Talk,
): Promise<Talked> {
  const place = await mkdtemp(join(tmpdir(), "alidade-dialogue-"));
  t.after(() => rm(place, { recursive: true }));
  await writeTask(place, "small", "", limits);
  const seen: { customer: WireRequest[]; agent: WireRequest[] } = { customer: [], agent: [] };
  const backend = wanted ?? (await pickBackend("process", t.signal)).backend;
  const outcomes: Talked[] = [];
  const run = await runner(t, place, {
    path: join(place, "run"),
    retries: 0,
    reply: (request) => {
      // These are the proxy's own requests to the engine.
      if (request.probe) return { text: "yes" };
      const who = isUser(request) ? "customer" : "agent";
      seen[who].push(request);
      if (who === "customer" && typeof customer === "function") return customer(request);
      const reply = (who === "customer" ? [customer].flat() : agent)[seen[who].length - 1] ?? { text: "?" };
      return typeof reply === "function" ? reply(request) : reply;
    },
    does: async (setup, { tasks: [small] }, signal) => {
      assert.ok(small);
      const simulated_user = SimulatedUser.parse({ instructions: "You are a customer. You want a file.", ...user });
      const plan = { rollout_id: "alone", attempt: 1, group_id: "g", group_size: 1, sample_index: 0, retries: 0, task_hash: "hash" };
      const own = { ...plan, task: given ?? { ...small, simulated_user }, harness, session: { purpose: "train" } as const };
      const outcome = await rolloutsOn(setup).submit(own, signal);
      const id = outcome.record.user?.session_id;
      const ofUser = id === undefined ? null : reconstruct(await setup.proxy.sessions.store.read(id));
      const dead = { record: outcome.record, task: own.task, task_hash: plan.task_hash, harness, wanted: "replay" } as const;
      outcomes.push({ ...outcome, ...seen, ofUser, resume: await toResumePlan(setup.proxy.sessions.store, dead) });
      return [outcome.record];
    },
  });
  await run(backend);
  return outcomes[0] ?? assert.fail();
}
