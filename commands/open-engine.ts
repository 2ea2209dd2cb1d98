/** The engine that a configuration names, as a scope: `practice` is started as a child process, a URL is only connected to. */
import type { Config } from "../config.ts";
import { type Engine, engineNamed } from "../engines/index.ts";
import { startPracticeEngine } from "../engines/practice/start.ts";
import { AlidadeError } from "../errors.ts";
import type { Policy } from "../schema/session-log.ts";

export type OpenEngine = AsyncDisposable & {
  engine: Engine;
  /** We started it ourselves: what runs against it may run unsandboxed in the demo. */
  embedded: boolean;
  /** What we know of its weights: the practice engine's are their seed. */
  policy: Policy | null;
};

export async function openEngine(config: Config["engine"], signal: AbortSignal): Promise<OpenEngine> {
  const kind = engineNamed(config.kind);
  await using scope = new AsyncDisposableStack();
  const embedded = config.url === "practice";
  const practice = embedded ? scope.use(await startPracticeEngine({ signal, seed: practiceSeed })) : null;
  const engine = kind.create({ baseUrl: practice?.url ?? urlOf(config.url ?? kind.defaultUrl), apiKey: keyOf(config.api_key_env) });
  scope.defer(() => engine.close());
  const release = scope.move();
  return {
    engine,
    embedded,
    policy: embedded ? { version: `practice-seed-${practiceSeed}`, step: null } : null,
    [Symbol.asyncDispose]: () => release.disposeAsync(),
  };
}

/** With these random weights the demo's right and wrong fixes come out about as often; any other number works as well. */
const practiceSeed = 10;

function urlOf(text: string | undefined): string {
  // Random weights must never be anybody's policy by oversight, so there is no default.
  if (text === undefined)
    throw new AlidadeError(
      "config_invalid",
      "engine.url is not set: give --engine http://127.0.0.1:8000, or --engine practice for the embedded engine with random weights",
      { param: "engine.url" },
    );
  if (URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)) return text;
  throw new AlidadeError("config_invalid", `engine.url is "${text}": give an http(s) URL such as http://127.0.0.1:8000, or "practice"`, {
    param: "engine.url",
  });
}

function keyOf(variable: string | undefined): string | null {
  if (variable === undefined) return null;
  const key = process.env[variable];
  if (!key)
    throw new AlidadeError("config_invalid", `engine.api_key_env names ${variable}, which is not set`, { param: "engine.api_key_env" });
  return key;
}
