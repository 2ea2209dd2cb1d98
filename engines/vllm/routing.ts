/**
 * Which experts the tokens took, as vLLM 0.32 tells it with `--enable-return-routed-experts`: base64 of a `.npy` file of the
 * shape (tokens, layers, experts a token), in answers of one piece alone. Its first row is about the prompt's token
 * `routed_experts_prompt_start`; the last sampled token has none, because nothing was computed on it.
 */
import type { RoutedExperts } from "../engine.ts";

const magic = "\u0093NUMPY";

/** numpy's names of the types that vLLM takes: the smallest that holds the number of experts. */
const types = new Map<string, { dtype: RoutedExperts["dtype"]; size: number }>([
  ["|u1", { dtype: "uint8", size: 1 }],
  ["<u2", { dtype: "uint16", size: 2 }],
  ["<i4", { dtype: "int32", size: 4 }],
]);

/** Real models have below 200 layers and at most some dozen experts a token. */
const most = 4096;

const header = /^\{'descr': '([^']{2,4})', 'fortran_order': False, 'shape': \((\d{1,9}), (\d{1,4}), (\d{1,4})\),? *\}\s*$/;

/** null: another file than the one above. */
export function readRouting(base64: string, start: number): RoutedExperts | null {
  const file = Buffer.from(base64, "base64");
  if (file.length < 12 || file.toString("latin1", 0, magic.length) !== magic) return null;
  const isLong = file[6] !== 1;
  const begin = isLong ? 12 : 10;
  const end = begin + (isLong ? file.readUInt32LE(8) : file.readUInt16LE(8));
  const found = end > file.length ? null : header.exec(file.toString("latin1", begin, end));
  const type = types.get(found?.[1] ?? "");
  if (!found || !type) return null;
  const [rows = 0, layers = 0, top_k = 0] = found.slice(2).map(Number);
  const bytes = file.subarray(end);
  if (rows === 0 || layers === 0 || top_k === 0 || Math.max(layers, top_k) > most) return null;
  return bytes.length === rows * layers * top_k * type.size ? { start, rows, layers, top_k, dtype: type.dtype, bytes } : null;
}
