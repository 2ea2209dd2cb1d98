/**
 * The name of an engine's weights, held against what the engine itself calls them: an unchecked label would be
 * trained on as if it were true.
 */

import type { AlidadeError } from "../../base/errors.ts";
import type { Policy } from "../../base/schema/policy.ts";
import type { PolicyCheck } from "../../base/schema/session-log.ts";
import type { Engine } from "../../engines/index.ts";
import { conflict } from "./conflict.ts";

/** How an engine's weights are named, and the engine's own name of them where that is another. */
export type NamedWeights = { policy: Policy | null; engineVersion?: string | undefined };

/** The version that vLLM and SGLang report before one was set. */
const unnamed = "default";
/** The engine's own word is one small GET. */
const wordWithinMs = 10_000;

/** null: the engine reports no name, or did not answer. */
export async function wordOf(engine: Engine, signal: AbortSignal): Promise<string | null> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(wordWithinMs)]);
  return (await engine.weightVersion?.(limit).catch(() => null)) ?? null;
}

export function checkPolicy({ policy, engineVersion }: NamedWeights, word: string | null): PolicyCheck {
  if (policy === null || word === null) return "unchecked";
  if (word === (engineVersion ?? policy.version)) return "agrees";
  return word === unnamed ? "unchecked" : "differs";
}

/** An engine's own word, and the engine's name here. */
export type EngineWord = { name: string; word: string | null };

/** Throws `request_invalid` (409) where an engine's own word is another one than it is to be named by. */
export function assertAgree(weights: NamedWeights, words: EngineWord[], todo: string = loadFirst): void {
  const wrong = words.filter(({ word }) => checkPolicy(weights, word) === "differs");
  if (wrong.length > 0) throw disagreement(weights, wrong, todo);
}

const loadFirst = 'load the weights first, or give "engine_version" where the engine has a name of its own for them';

function disagreement({ policy, engineVersion }: NamedWeights, wrong: EngineWord[], todo: string): AlidadeError {
  const differences = wrong.map(({ name, word }) => `engine "${name}" says that it serves "${word}"`).join(", ");
  return conflict(`the policy would be "${engineVersion ?? policy?.version}", but ${differences}: ${todo}`);
}
