/** Probes an engine's abilities once, before its first call. */

import { AlidadeError, messageOf } from "../../base/errors.ts";
import type { Engine, EngineFacts } from "../../engines/index.ts";

/** A cold engine compiles its first request (22 s were seen on a CPU); beyond this it hangs. */
const probeTimeoutMs = 120_000;

/** Throws `engine_unreachable`; whatever answers there and is no inference server is named as such. */
export async function probeEngine(engine: Engine, signal: AbortSignal | undefined): Promise<EngineFacts> {
  const limit = AbortSignal.timeout(probeTimeoutMs);
  try {
    return await engine.probe(signal ? AbortSignal.any([signal, limit]) : limit);
  } catch (error) {
    if (signal?.aborted) throw new AlidadeError("cancelled", "stopped before the engine had answered", { cause: error });
    if (limit.aborted)
      throw new AlidadeError("engine_unreachable", `the engine at ${engine.baseUrl} gave no answer in ${probeTimeoutMs / 1000} s`);
    if (error instanceof AlidadeError) throw error;
    throw new AlidadeError(
      "engine_error",
      `what answers at ${engine.baseUrl} is no ${engine.name} server: is --engine its URL? (${messageOf(error).split("\n")[0]})`,
      { cause: error },
    );
  }
}
