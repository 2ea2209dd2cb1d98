/** The control listener's routes for engines and for the fence around a weight update. */
import type { IncomingMessage } from "node:http";
import type { Context, Hono } from "hono";
import { z } from "zod";
import { engineNamed, whyNoEngineUrl } from "../../engines/index.ts";
import { AlidadeError } from "../../errors.ts";
import { Policy } from "../../schema/session-log.ts";
import { body, type ControlEnv } from "./control-body.ts";
import type { Controlled } from "./controlled.ts";

/** A day: nothing that a trainer waits for takes longer, and a timer that is too long for Node fires at once. */
const maxSeconds = 86_400;

const engineVersion = z.string().optional().describe("the engine's own name of these weights, where it is another");

const version = z.string().min(1, "give the trainer's name for the weights");

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
  policy: Policy.extend({ version }).nullable().default(null),
  engine_version: engineVersion,
  purpose: z
    .enum(["train", "eval", "live", "judge"])
    .default("train")
    .describe(
      "train: it serves the policy, and is refused where nothing can be trained on what it returns; eval, live: a model beside it, of which nothing is ever trained",
    ),
  replace: z.boolean().default(false).describe("takes the place of the engine of this name, which ends what it has begun"),
});

const Seconds = z.number().min(0).max(maxSeconds);
const Names = z.array(z.string()).min(1);
const Drain = z.strictObject({ timeout_seconds: Seconds.default(0) });
const Nothing = z.strictObject({});
const Pause = z.strictObject({
  engines: Names.optional(),
  mode: z.enum(["drain", "hold", "abort"]).default("drain"),
  timeout_seconds: Seconds.default(60),
});
const SetPolicy = Policy.extend({
  version,
  step: Policy.shape.step.default(null),
  fence: z.string().optional(),
  engines: Names.optional(),
  engine_version: engineVersion,
});
const Resume = z.strictObject({ fence: z.string() });

export function engineRoutes(app: Hono<ControlEnv>, proxy: Controlled): void {
  const { pool, fences } = proxy;
  app.get("/engines", (context) => context.json({ engines: pool.slots.map((slot) => slot.describe()) }));
  app.post("/engines", async (context) => {
    const {
      name,
      url,
      kind,
      api_key_env,
      models,
      policy,
      engine_version: engineVersion,
      purpose,
      replace,
    } = await body(context, AddEngine);
    const engine = engineNamed(kind).create({ baseUrl: url, apiKey: keyOf(api_key_env) });
    try {
      const options = { owned: true, forTraining: purpose === "train", replace, signal: clientOf(context) };
      const slot = await pool.add({ name, engine, models, policy, engineVersion, purpose }, options);
      return context.json(slot.describe(), 201);
    } catch (error) {
      await engine.close();
      throw error;
    }
  });
  app.post("/engines/:name/drain", async (context) => {
    const { timeout_seconds } = await body(context, Drain);
    const slot = await pool.drain(context.req.param("name"), timeout_seconds, clientOf(context));
    return context.json({ ...slot.describe(), drained: slot.inFlight.size === 0 });
  });
  app.post("/engines/:name/undrain", async (context) => {
    await body(context, Nothing);
    return context.json(pool.undrain(context.req.param("name")).describe());
  });
  app.delete("/engines/:name", async (context) => {
    const name = context.req.param("name");
    const force = context.req.query("force") === "true";
    await pool.remove(name, force);
    return context.json({ name, removed: true });
  });
  app.post("/pause", async (context) => {
    const { engines, mode, timeout_seconds } = await body(context, Pause);
    return context.json(await fences.pause({ engines, mode, timeoutSeconds: timeout_seconds, signal: clientOf(context) }));
  });
  app.put("/policy", async (context) => {
    const { fence, engines, engine_version, ...policy } = await body(context, SetPolicy);
    return context.json(await fences.setPolicy({ fence, engines, policy, engineVersion: engine_version, signal: clientOf(context) }));
  });
  app.post("/resume", async (context) => {
    const { fence } = await body(context, Resume);
    // A trainer that has left wants the gate open all the same.
    return context.json(await fences.resume(fence, new AbortController().signal));
  });
}

/** Aborted when the caller leaves before the answer. */
function clientOf(context: Context<ControlEnv>): AbortSignal {
  const { outgoing } = context.env as { incoming: IncomingMessage; outgoing: NodeJS.WritableStream & { writableFinished: boolean } };
  const left = new AbortController();
  outgoing.once("close", () => {
    if (!outgoing.writableFinished) left.abort(new AlidadeError("cancelled", "the caller left before the answer"));
  });
  return left.signal;
}

/** Keys travel by the name of a variable, so that none is ever sent or stored. */
function keyOf(variable: string | undefined): string | null {
  if (variable === undefined) return null;
  const key = process.env[variable];
  if (!key)
    throw new AlidadeError("request_invalid", `api_key_env names ${variable}, which is not set for the proxy`, { param: "api_key_env" });
  return key;
}
