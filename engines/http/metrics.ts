/** A number of a server's Prometheus page, summed over its labels. */
import type { EngineClient } from "./engine-client.ts";

/** null where the server has no such page or no such number. */
export async function gauge(client: EngineClient, name: string, signal: AbortSignal): Promise<number | null> {
  const { status, response } = await client.send("GET", "/metrics", undefined, signal);
  const text = await response.text();
  if (status !== 200) return null;
  const values = text.split("\n").flatMap((line) => {
    const [, found, value] = /^([\w:]+)(?:\{.*\})?\s+(\S+)/.exec(line) ?? [];
    return found === name && value !== undefined ? [Number(value)] : [];
  });
  return values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0);
}
