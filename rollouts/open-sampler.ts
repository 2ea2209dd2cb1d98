import { messageOf } from "../errors.ts";
import type { OpenSampler } from "../graders/grader.ts";
import type { HarnessProxy } from "../proxy/index.ts";

/** Sessions for graders that ask models: recorded, and never trained. One that cannot be sealed costs no verdict. */
export function samplersOf(proxy: HarnessProxy, note: (text: string) => void): OpenSampler {
  return async (task_id, grades) => {
    const { session, key } = await proxy.openSession({ purpose: "judge", task_id, labels: { grades } });
    return {
      url: proxy.url,
      key,
      session_id: session.id,
      model: proxy.facts.models[0] ?? "model",
      [Symbol.asyncDispose]: () =>
        proxy.sessions.close(session, `${grades} is graded`).catch((error: unknown) => {
          note(`${grades}: the grader's session ${session.id} could not be sealed: ${messageOf(error)}`);
        }),
    };
  };
}
