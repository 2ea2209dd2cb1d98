/** The engine that `audit` and `score` ask: it gives the logprobs of tokens that it did not sample. */
import { AlidadeError } from "../../../base/errors.ts";
import type { Media } from "../../../base/media/media.ts";
import { imagesIn, isStored, toLinkedPicture } from "../../../base/media/stored-picture.ts";
import type { Policy } from "../../../base/schema/policy.ts";
import type { Trajectory } from "../../../base/schema/trajectory.ts";
import type { Engine, EngineFacts } from "../../../engines/index.ts";
import { probeEngine } from "../../../proxy/pool/index.ts";
import type { AskTeacher, Score } from "../../../reconstruct/index.ts";
import type { Config } from "../../config.ts";
import { commandConfig } from "../flags/command-config.ts";
import { openEngines } from "../proxy/open-engine.ts";

export type ScoringFlags = { config?: string; engine?: string; kind?: string; apiKeyEnv?: string };

export type ScoringEngine = AsyncDisposable & {
  engine: Engine & Required<Pick<Engine, "score">>;
  facts: EngineFacts;
  /** The name of its weights, where our configuration has one. */
  policy: Policy | null;
};

/** Throws `config_invalid` where none is named, or the kind cannot score; `cure` says then what else to take. */
export async function openScoringEngine(flags: ScoringFlags, cure: string, signal: AbortSignal): Promise<ScoringEngine> {
  const config = await commandConfig(flags.config, {
    overrides: { engine: { url: flags.engine, kind: flags.kind, api_key_env: flags.apiKeyEnv } },
  });
  // Only one model scores, even if the server lists more.
  return openScorer(flags.engine === undefined ? config : { ...config, engines: undefined }, cure, signal);
}

/** Opens the first engine of the configuration. `field`: its field in the configuration. */
export async function openScorer(
  config: Pick<Config, "engine" | "engines" | "policy">,
  cure: string,
  signal: AbortSignal,
  field?: string,
): Promise<ScoringEngine> {
  await using scope = new AsyncDisposableStack();
  const [first] = scope.use(await openEngines(config, signal, field)).engines;
  if (!first) throw new AlidadeError("config_invalid", "no engine is configured: give --engine", { param: "engine" });
  const { engine, policy = null } = first;
  if (!canScore(engine)) throw new AlidadeError("config_invalid", `${engine.name} cannot score given tokens: ${cure}`, { param: "kind" });
  const facts = await probeEngine(engine, signal);
  const release = scope.move();
  return { engine, facts, policy, [Symbol.asyncDispose]: () => release.disposeAsync() };
}

function canScore(engine: Engine): engine is ScoringEngine["engine"] {
  return engine.score !== undefined;
}

/** Asks this model, with the pictures that stand among the tokens. */
export function scoreAt(
  engine: ScoringEngine["engine"],
  model: string,
  { trajectory, media, signal }: { trajectory: Trajectory; media: Media; signal: AbortSignal },
): Score {
  const urls = urlsOf(trajectory, media);
  return (tokenIds, spans) => engine.score(model, tokenIds, signal, { spans, urls: spans.map(({ sha256 }) => urls(sha256)) });
}

/** The same with the `top` likeliest tokens of each place, of an engine that tells them. */
export function scoreTopAt(
  engine: Engine,
  model: string,
  top: number,
  { trajectory, media, signal }: { trajectory: Trajectory; media: Media; signal: AbortSignal },
): AskTeacher["score"] {
  const urls = urlsOf(trajectory, media);
  return async (tokenIds, spans) => {
    const images = { spans, urls: spans.map(({ sha256 }) => urls(sha256)) };
    const scored = (await engine.scoreTop?.(model, tokenIds, top, signal, images)) ?? [];
    return { logprobs: scored.map(({ logprob }) => logprob), top: scored.map((one) => one.top) };
  };
}

/** A picture as its harness sent it, read when it is asked for. */
function urlsOf({ messages }: Trajectory, media: Media): (sha256: string) => string {
  const parts = new Map(imagesIn(Object.values(messages)).flatMap((part) => (isStored(part) ? [[part.sha256, part] as const] : [])));
  return (sha256) => {
    const part = parts.get(sha256);
    if (part === undefined) throw new AlidadeError("store_error", `no message of the trajectory shows the picture ${sha256}`);
    return toLinkedPicture(part, media.read(sha256)).url;
  };
}
