/** Milliseconds of each unit. */
const units = { ms: 1, s: 1000, m: 60 * 1000, h: 60 * 60 * 1000, d: 24 * 60 * 60 * 1000 };

/** Milliseconds of a duration such as "90s" or "1h 30m". A TypeError says when the text holds none. */
export function parseDuration(text) {
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)/g)];
  if (parts.length === 0) throw new TypeError(`no duration: ${text}`);
  let total = 0;
  for (const [, amount, unit] of parts) {
    total = Number(amount) * units[unit];
  }
  return total;
}
