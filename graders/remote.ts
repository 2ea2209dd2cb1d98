/**
 * Grades by the word of a server: one of ours, or `/verify` of NeMo Gym. It asks those servers alone that the operator names
 * (`grader_servers`), because a task file is a stranger's and the question holds the work.
 */

import { z } from "zod";
import { AlidadeError, messageOf } from "../base/errors.ts";
import { isIsolated } from "../base/schema/rollout.ts";
import type { GradeContext, Grader } from "./grader.ts";
import { alidadeForm } from "./remote/alidade-form.ts";
import { askServer, shown } from "./remote/ask-server.ts";
import type { GraderServer } from "./remote/grader-servers.ts";
import { nemoGymForm } from "./remote/nemo-gym-form.ts";
import { type RemoteAnswer, sendable } from "./remote/remote-form.ts";
import { whyOutside } from "./rules/reward-range.ts";
import { withWeights } from "./rules/told-reward.ts";
import { workEvidence } from "./work/work.ts";

const forms = [alidadeForm, nemoGymForm];

/** Longer than a try may take is longer than `fetch` waits for an answer's head. */
const mostSeconds = 300;

const RemoteSpec = z
  .strictObject({
    kind: z.literal("remote"),
    url: z.url({ protocol: /^https?$/, error: "give the http(s) address that takes the question, such as http://127.0.0.1:8100/verify" }),
    form: z.enum(forms.map(({ name }) => name)).default("alidade"),
    sends: z
      .array(z.enum(sendable))
      .default([])
      .describe("of form alidade: what the server gets beside the answer and the names of changed files"),
    data: z
      .record(z.string(), z.unknown())
      .default({})
      .describe("the task's own words to the server; of form nemo-gym the fields of its row"),
    timeout_seconds: z.number().positive().max(mostSeconds).default(60).describe("of one try"),
    tries: z.number().int().min(1).max(10).default(3),
  })
  .refine(({ form, sends }) => form === "alidade" || sends.length === 0, {
    path: ["sends"],
    error: "is of form alidade: NeMo Gym's servers get the conversation, and no files",
  });
type RemoteSpec = z.infer<typeof RemoteSpec>;

/** The grader that may ask these servers. Its specs name no other one. */
export function remoteTo(servers: readonly GraderServer[]): Grader<RemoteSpec> {
  const isKnown = (url: string): boolean => servers.some(({ origin }) => origin === new URL(url).origin);
  const spec = RemoteSpec.refine(({ url }) => isKnown(url), {
    path: ["url"],
    error: "is at a server that is not in grader_servers: name its origin there, or by --grader-server, where tasks may send works to it",
  });
  return { ...remote, spec, grade: (spec, context) => gradeBy(servers, spec, context) };
}

/** Without servers it reads specs, and asks none. */
export const remote: Grader<RemoteSpec> = {
  name: "remote",
  title: "The word of a server: one's own, or NeMo Gym's /verify",
  version: "2",
  spec: RemoteSpec,
  // Nothing of the work is run here, and what the server does with it is not seen.
  startsFresh: () => false,
  tier: () => "T1",
  grade: (spec, context) => gradeBy([], spec, context),
};

async function gradeBy(servers: readonly GraderServer[], spec: RemoteSpec, context: GradeContext) {
  const started = performance.now();
  const { task, work, isolation = "none", signal } = context;
  const { origin, pathname } = new URL(spec.url);
  const server = servers.find((one) => one.origin === origin);
  if (server === undefined) throw new AlidadeError("config_invalid", `${origin} is not in grader_servers, so no work is sent to it`);
  const form = forms.find(({ name }) => name === spec.form) ?? alidadeForm;
  const body = bounded(JSON.stringify(await form.ask({ ...spec, ...context })));
  const asked = performance.now();
  const { value, tries, question_sha256 } = await askServer({ ...spec, key: server.key, body }, signal);
  // A server that was asked again has needed more than one try's time.
  const clock = { took_ms: performance.now() - asked, limit_ms: spec.timeout_seconds * 1_000 };
  const { reward, components, says } = readAnswer(form.read, value);
  if (reward === null)
    throw new AlidadeError("grader_error", `${origin}${pathname} gave no reward: ${shown(says ?? "it does not say why")}`);
  const outside = whyOutside(task, reward);
  // Its task or server must be mended: no work can bring that about.
  if (outside !== null) throw new AlidadeError("task_invalid", `${origin}${pathname}: ${outside}`, { param: "reward_range" });
  const { work_sha256, no_change } = workEvidence(work, task);
  return {
    reward,
    components: Object.fromEntries(Object.entries(withWeights(components)).map(([name, one]) => [shown(name), one])),
    status: "graded",
    tier: isIsolated(isolation) ? "T1" : "T0",
    isolation,
    grader: `remote/${form.name}`,
    evidence: {
      server: `${origin}${pathname}`,
      says: says && shown(says),
      tries,
      clock,
      question_sha256,
      work_sha256,
      no_change,
      remains_possible: [remains],
    },
    error: null,
    duration_ms: performance.now() - started,
  } as const;
}

const remains = "The reward is the server's word: what it does with the work, and what the work can do to it, is not seen here.";

/** With a work of 32 MiB there is room for a conversation of some millions of tokens. */
const mostBodyBytes = 128 * 1024 * 1024;

/** Throws `output_too_large`: how much an agent says and leaves is the policy's choice. */
function bounded(body: string): string {
  const bytes = Buffer.byteLength(body);
  if (bytes <= mostBodyBytes) return body;
  throw new AlidadeError(
    "output_too_large",
    `answer, trajectory and work are ${bytes} bytes, and a grader's server is sent ${mostBodyBytes} at most`,
  );
}

function readAnswer(read: (answer: unknown) => RemoteAnswer, value: unknown): RemoteAnswer {
  try {
    return read(value);
  } catch (error) {
    throw new AlidadeError("grader_error", `the server's answer has not its form {"reward": number, …}: ${shown(messageOf(error))}`);
  }
}
