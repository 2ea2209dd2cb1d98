/** Does an engine that failed answer again? No key and no generation: any answer that is not a 5xx is a sign of life. */

/** A server that is up answers this in milliseconds; a loaded one may take a second. */
const answerWithinMs = 2_000;

/** Never throws. `baseUrl` is without a trailing slash and without `/v1`. */
export async function isAlive(baseUrl: string, signal: AbortSignal): Promise<boolean> {
  for (const path of ["/health", "/v1/models"]) {
    const status = await statusOf(baseUrl + path, AbortSignal.any([signal, AbortSignal.timeout(answerWithinMs)]));
    // A server without such a route answers so; then its list of models is requested.
    if (status !== 404) return status !== null && status < 500;
  }
  return true;
}

async function statusOf(url: string, signal: AbortSignal): Promise<number | null> {
  try {
    const response = await fetch(url, { signal });
    await response.body?.cancel();
    return response.status;
  } catch {
    return null;
  }
}
