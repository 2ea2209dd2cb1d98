/** When a server says to come back: a number of seconds, or a date. */

/** No server means more than this; a harness that believed it would sit there for ever. */
const longestSeconds = 3_600;

/** Seconds from now; null where the header is absent or says nothing that can be read. */
export function retryAfterSeconds(header: string | string[] | null | undefined, now: number = Date.now()): number | null {
  const text = (Array.isArray(header) ? header[0] : header)?.trim() ?? "";
  if (text === "") return null;
  const seconds = /^\d+(\.\d+)?$/.test(text) ? Number(text) : (Date.parse(/^[A-Z][a-z]/.test(text) ? text : "") - now) / 1000;
  return Number.isFinite(seconds) ? Math.min(Math.max(seconds, 0), longestSeconds) : null;
}
