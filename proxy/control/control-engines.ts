/** The control listener's routes for engines and for the fence around a weight update. */
import { z } from "zod";
import { AlidadeError } from "../../base/errors.ts";
import { Policy } from "../../base/schema/policy.ts";
import { engineNamed, whyNoEngineUrl } from "../../engines/index.ts";
import { callsAtOnce, resampleLost } from "../pool/engine-options.ts";
import type { EnginePool } from "../pool/engine-pool.ts";
import type { Controlled } from "./controlled.ts";
import { engineVersion, PauseBody, PolicyBody, Seconds, weightsVersion } from "./fence-bodies.ts";
import { defineRoute, type ListenerRoute, nothing } from "./route.ts";

const AddEngine = z.strictObject({
  name: z
    .string()
    .min(1)
    .max(100)
    .regex(/^[\w.:-]+$/, "a name has letters, digits, dots, colons, dashes and underscores"),
  url: z.string().superRefine((text, context) => {
    const why = whyNoEngineUrl(text);
    if (why !== null) context.addIssue({ code: "custom", message: why });
  }),
  kind: z.string().default("vllm"),
  api_key_env: z.string().optional().describe("name of the proxy's variable that holds the server's key"),
  models: z.array(z.string()).min(1).optional().describe("globs of the model names that it is for"),
  policy: Policy.extend({ version: weightsVersion }).nullable().default(null),
  engine_version: engineVersion,
  purpose: z
    .enum(["train", "eval", "live", "judge"])
    .default("train")
    .describe(
      "train: it serves the policy, and is refused where nothing can be trained on what it returns; eval, live: a model beside it, of which nothing is ever trained",
    ),
  calls_at_once: callsAtOnce,
  resample_lost: resampleLost,
  replace: z.boolean().default(false).describe("takes the place of the engine of this name, which ends what it has begun"),
});

const Drain = z.strictObject({ timeout_seconds: Seconds.default(0) });
/** Like any other query, words beside it are no fault. */
const Removal = z.object({ force: z.string().optional().describe("`true`: also while it has calls") });
const Resume = z.strictObject({ fence: z.string() });

export function engineRoutes({ pool, fences }: Controlled): ListenerRoute[] {
  return [
    defineRoute({
      method: "get",
      path: "/engines",
      title: "The engines: policy, facts, calls in flight, gate",
      handle: async () => ({ engines: pool.slots.map((slot) => slot.describe()) }),
    }),
    defineRoute({
      method: "post",
      path: "/engines",
      title: "Adds an engine. It is probed before; one for `train` on whose answers nothing can be trained is refused with the reason",
      body: AddEngine,
      status: 201,
      handle: ({ body, signal }) => addEngine(pool, body, signal),
    }),
    defineRoute({
      method: "post",
      path: "/engines/:name/drain",
      title: "Gives the engine no new calls, and answers when it is idle or the time is over",
      body: Drain,
      handle: async ({ param, body, signal }) => {
        const slot = await pool.drain(param("name"), body.timeout_seconds, signal);
        return { ...slot.describe(), drained: slot.inFlight.size === 0 };
      },
    }),
    defineRoute({
      method: "post",
      path: "/engines/:name/undrain",
      title: "Gives the engine calls again",
      body: nothing,
      handle: async ({ param }) => pool.undrain(param("name")).describe(),
    }),
    defineRoute({
      method: "delete",
      path: "/engines/:name",
      title: "Removes an engine that is idle. `force=true`: what runs is answered with a retryable error",
      query: Removal,
      handle: async ({ param, query }) => {
        await pool.remove(param("name"), query.force === "true");
        return { name: param("name"), removed: true };
      },
    }),
    defineRoute({
      method: "post",
      path: "/pause",
      title:
        "Shuts the gate of the engines, and answers `{fence, drained, running, held}`; for `continue` also `interrupted`: how many calls go on, and why others do not",
      body: PauseBody,
      handle: ({ body: { engines, mode, otherwise, timeout_seconds }, signal }) =>
        fences.pause({ engines, mode, otherwise, timeoutSeconds: timeout_seconds, signal }),
    }),
    defineRoute({
      method: "put",
      path: "/policy",
      title: "Names the weights; a 409 where an engine says that it serves others",
      body: PolicyBody,
      handle: ({ body: { fence, engines, engine_version, ...policy }, signal }) =>
        fences.setPolicy({ fence, engines, policy, engineVersion: engine_version, signal }),
    }),
    defineRoute({
      method: "post",
      path: "/resume",
      title: "Opens the gate; a 409 where an engine says another name than its policy's",
      body: Resume,
      // A trainer that has left wants the gate open all the same.
      handle: ({ body }) => fences.resume(body.fence, new AbortController().signal),
    }),
  ];
}

async function addEngine(pool: EnginePool, asked: z.infer<typeof AddEngine>, signal: AbortSignal): Promise<object> {
  const { url, kind, api_key_env, engine_version: engineVersion, calls_at_once, resample_lost, replace, ...spec } = asked;
  const engine = engineNamed(kind).create({ baseUrl: url, apiKey: keyOf(api_key_env) });
  try {
    const options = { owned: true, forTraining: spec.purpose === "train", replace, signal };
    const slot = await pool.add({ ...spec, engine, engineVersion, callsAtOnce: calls_at_once, resampleLost: resample_lost }, options);
    return slot.describe();
  } catch (error) {
    await engine.close();
    throw error;
  }
}

/** Keys travel by the name of a variable, so that none is ever sent or stored. */
function keyOf(variable: string | undefined): string | null {
  if (variable === undefined) return null;
  const key = process.env[variable];
  if (!key)
    throw new AlidadeError("request_invalid", `api_key_env names ${variable}, which is not set for the proxy`, { param: "api_key_env" });
  return key;
}
