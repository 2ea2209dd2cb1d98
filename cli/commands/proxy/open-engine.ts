/** The engines that a configuration names, as a scope: `practice` is started as a child process, a URL is only connected to. */

import { AlidadeError } from "../../../base/errors.ts";
import type { Policy } from "../../../base/schema/policy.ts";
import { engineRegistry, whyNoEngineUrl } from "../../../engines/index.ts";
import { startPracticeEngine } from "../../../practice/index.ts";
import type { EngineSpec } from "../../../proxy/index.ts";
import type { Config } from "../../config.ts";
import { terminal } from "../terminal.ts";

export type OpenEngines = AsyncDisposable & { engines: EngineSpec[] };

/** Opens `engines` if configured, else the single engine under its kind's name. `field`: the single engine's configuration field. */
export async function openEngines(
  config: Pick<Config, "engine" | "engines" | "policy">,
  signal: AbortSignal,
  field = "engine",
): Promise<OpenEngines> {
  const { engine } = config;
  const wanted: Wanted[] = config.engines?.map((each, index) => ({ ...each, field: `engines[${index}]` })) ?? [
    { ...engine, name: engine.url === "practice" ? "practice" : engine.kind, field },
  ];
  await using scope = new AsyncDisposableStack();
  const engines: EngineSpec[] = [];
  for (const each of wanted) {
    // A judge or a teacher has weights of its own.
    const shared = (each.purpose ?? "train") === "train" ? config.policy : null;
    engines.push(await open({ ...each, policy: each.policy ?? shared ?? undefined }, scope, signal));
  }
  const release = scope.move();
  return { engines, [Symbol.asyncDispose]: () => release.disposeAsync() };
}

/** `field`: where the configuration names it. */
type Wanted = Config["engine"] & Partial<Omit<NonNullable<Config["engines"]>[number], "url">> & { name: string; field: string };

async function open(wanted: Wanted, scope: AsyncDisposableStack, signal: AbortSignal): Promise<EngineSpec> {
  const kind = await engineRegistry.load(wanted.kind);
  const practice = wanted.url === "practice" ? scope.use(await startPracticeEngine({ signal, seed: practiceSeed, ...tellsKept })) : null;
  const engine = kind.create({ baseUrl: practice?.url ?? urlOf(wanted.url ?? kind.defaultUrl, wanted.field), apiKey: keyOf(wanted) });
  scope.defer(() => engine.close());
  // The only weights with a name known in advance: the practice engine's, named by their seed.
  const named = wanted.policy ?? (practice ? { version: `practice-seed-${practiceSeed}`, step: null } : null);
  const { engine_version: engineVersion, ...policy } = named ?? {};
  return {
    name: wanted.name,
    engine,
    models: wanted.models,
    engineVersion,
    callsAtOnce: wanted.calls_at_once,
    resampleLost: wanted.resample_lost,
    policy: named && (policy as Policy),
    ...(wanted.purpose && { purpose: wanted.purpose }),
  };
}

/** With these random weights the demo's right and wrong fixes come out about as often; any other number works as well. */
const practiceSeed = 10;

/** Works like vLLM with `--logprobs-mode processed_logprobs`. So kept tokens of calls with a cut are recorded. */
const tellsKept = { logprobsMode: "processed_logprobs", maxLogprobs: 1024 } as const;

function urlOf(text: string | undefined, field: string): string {
  // Random weights must never become a policy by accident, so there is no default.
  if (text === undefined)
    throw new AlidadeError(
      "config_invalid",
      `${field}.url is not set: give --engine http://127.0.0.1:8000, or --engine practice for the embedded engine with random weights`,
      { param: `${field}.url` },
    );
  const why = whyNoEngineUrl(text);
  if (why === null) return text;
  // Where a password can stand the text is not repeated.
  const given = /[@?#]/.test(text) ? `${field}.url` : `${field}.url is "${text}"`;
  throw new AlidadeError("config_invalid", `${given}: ${why} (or "practice")`, { param: `${field}.url` });
}

function keyOf({ api_key_env: variable, field }: Wanted): string | null {
  if (variable === undefined) return null;
  const key = terminal().env[variable];
  if (!key)
    throw new AlidadeError("config_invalid", `${field}.api_key_env names ${variable}, which is not set`, { param: `${field}.api_key_env` });
  return key;
}
