/** A begun call's generation: from its durable beginning until what was sampled is there. */

import { recordedPrompt } from "../replay/recorded-prompt.ts";
import type { RecordedCall } from "../replay/recording.ts";
import type { Replay } from "../replay/replay.ts";
import type { Call } from "../session/call.ts";
import type { CallRun } from "../session/call-run.ts";
import type { Session } from "../session/session.ts";
import type { AdmittedCall } from "./admit.ts";
import { sampledBudget, wallClock } from "./budget-watch.ts";
import { Generation, type GenerationResult } from "./generation.ts";
import type { IdentifiedRequest } from "./identify.ts";
import type { CallSurroundings } from "./surroundings.ts";

export type CallWork = {
  run: CallRun;
  bases: Call[];
  identified: IdentifiedRequest;
  admitted: AdmittedCall;
  /** It is sampled beside a recorded call. */
  beside?: { replay: Replay; recorded: RecordedCall } | null;
};

/** Throws the store's errors where it could not be written down that it was begun. */
export async function sampleCall(session: Session, work: CallWork, around: CallSurroundings): Promise<GenerationResult> {
  const { run } = work;
  await run.recorded;
  const generation = generate(session, work, around);
  run.sampling(generation);
  session.stopWhereEnding(run);
  using _ = wallClock(session, run);
  return await generation.result;
}

function generate(session: Session, work: CallWork, { pool, continuity, vocabulary }: CallSurroundings): Generation {
  const { run, bases, identified, admitted, beside } = work;
  const { call } = run;
  const { request } = identified;
  const { begun, messages } = call;
  return new Generation(
    {
      pool,
      wish: admitted.wish,
      bases,
      media: session.media,
      ...(vocabulary && { texts: (tokenizer) => vocabulary.of(tokenizer) }),
      ...((session.spec.continuity === "auto" || beside) && {
        continued: async (lease, signal) =>
          (beside && recordedPrompt(beside.replay, beside.recorded, lease.facts)) ??
          (await continuity.promptOf(session, call, request.tools, lease, signal)),
      }),
    },
    {
      messages,
      ...(request.prompt && { prompt: request.prompt }),
      tools: request.tools,
      tool_choice: begun.tool_choice,
      sampling: begun.effective_sampling,
      ...(request.token_logprobs && { token_logprobs: request.token_logprobs }),
      call_id: call.id,
      live: session.spec.relay === "live",
    },
    sampledBudget(session, run),
  );
}
