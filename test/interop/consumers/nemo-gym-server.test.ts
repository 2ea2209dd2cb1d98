/** NeMo Gym's own code grades: its server of multiple-choice questions, asked by the grader `remote`. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { Task } from "../../../base/schema/task.ts";
import { grade } from "../../../graders/grade.ts";
import type { Grader } from "../../../graders/grader.ts";
import { remoteTo } from "../../../graders/remote.ts";
import { keptWork } from "../../fakes/kept-work.ts";
import { spokenTrajectory } from "../../fakes/records/spoken-trajectory.ts";
import { need } from "../../needs.ts";
import { consumerScripts, consumersPlace } from "./place.ts";

test("a resource server of NeMo Gym's takes our /verify, and its reward is the verdict's", { timeout: 900_000 }, async (t) => {
  if (!(await need(t, "consumers"))) return;
  const python = join(consumersPlace(), "venv/bin/python");
  const server = spawn(python, ["-W", "ignore", join(consumerScripts, "nemo_gym_server.py")], {
    env: { ...process.env, PYTHONDONTWRITEBYTECODE: "1" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  t.after(() => server.kill("SIGKILL"));
  const [port] = await once(createInterface(server.stdout), "line", { signal: t.signal });
  const origin = `http://127.0.0.1:${port}`;
  const task = Task.parse({
    task_id: "capital",
    instruction: "What is the capital of France? A: Rome, B: Paris",
    grader: {
      kind: "remote",
      url: `${origin}/verify`,
      form: "nemo-gym",
      data: { options: [{ A: "Rome" }, { B: "Paris" }], expected_answer: "B" },
    },
  });
  const work = await keptWork([], []);
  const graders = [remoteTo([{ origin, key: null }]) as unknown as Grader];
  const rewardOf = async (text: string) => {
    const trajectory = spokenTrajectory([{ text: "I look it up", tools: [["search", '{"query":"France"}']] }, { text }]);
    const fresh = () => Promise.reject(new Error("a server needs no sandbox"));
    const { reward, error } = await grade({ task, work, trajectory, fresh, isolation: "container", graders, signal: t.signal });
    return reward ?? error?.message;
  };
  assert.deepEqual([await rewardOf("It is \\boxed{B}"), await rewardOf("It is \\boxed{A}"), await rewardOf("")], [1, 0, 0]);
});
