/** Judges works by the model of an engine that speaks vLLM's wire, through a real proxy. */
import type { TestContext } from "node:test";
import type { Sampling } from "../../../base/schema/message.ts";
import { Task } from "../../../base/schema/task.ts";
import { engineNamed } from "../../../engines/registry.ts";
import { grade } from "../../../graders/grade.ts";
import type { GraderSampler } from "../../../graders/grader.ts";
import { HarnessProxy } from "../../../proxy/index.ts";
import { MemoryStore } from "../../../proxy/store/index.ts";
import { tokenizersAt } from "../../../rollouts/open-sampler.ts";
import { keptWork } from "../../fakes/kept-work.ts";
import { type SpokenTurn, spokenTrajectory } from "../../fakes/records/spoken-trajectory.ts";

/** `sampling` is forced on the judge's calls, which `session` has. `kind`: of the engine. */
export async function judgedAt(t: TestContext, baseUrl: string, sampling: Sampling = {}, kind = "vllm") {
  const engine = engineNamed(kind).create({ baseUrl, apiKey: null });
  t.after(() => engine.close());
  const proxy = await HarnessProxy.start({ engine, store: new MemoryStore(), version: "test" });
  t.after(() => proxy[Symbol.asyncDispose]());
  const { session, key } = await proxy.openSession({ purpose: "judge", sampling });
  const tokenizers = (model: string) => tokenizersAt(proxy, model);
  const sampler: GraderSampler = { url: proxy.url, key, session_id: session.id, model: proxy.facts.models[0] ?? "m", tokenizers };
  const verdictOn = async (turns: SpokenTurn[], files: { path: string; text: string }[], spec: object = {}) => {
    const rubric = [{ name: "word", says: "The work contains the word finished-4711." }];
    const task = Task.parse({
      task_id: "j",
      instruction: "Finish.",
      grader: { kind: "judge", rubric, sees: ["answer", "files", "calls"], ...spec },
    });
    const work = await keptWork(
      [],
      files.map(({ path, text }) => ({ path, content: Buffer.from(text), mode: 0o644 })),
    );
    const fresh = () => Promise.reject(new Error("a judge needs no sandbox"));
    return grade({ task, work, trajectory: spokenTrajectory(turns), sampler, fresh, isolation: "container", signal: t.signal });
  };
  return { session, verdictOn };
}
