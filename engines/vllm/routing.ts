/**
 * Reads the experts of the tokens in an answer of vLLM 0.32 with `--enable-return-routed-experts`. Only unstreamed answers have them:
 * base64 of a `.npy` file with the shape (tokens, layers, experts a token). A layer without experts has zeros. Row 0 is about the prompt's token
 * `routed_experts_prompt_start`. The last sampled token has no row, because the engine computed nothing on it.
 */
import { routingBytesOf } from "../../base/schema/log/token-numbers.ts";
import type { RoutedExperts } from "../engine.ts";

const magic = "\u0093NUMPY";

/** numpy's names of the types. vLLM takes the smallest type that holds the number of experts. */
const types = new Map<string, RoutedExperts["dtype"]>([
  ["|u1", "uint8"],
  ["<u2", "uint16"],
  ["<i4", "int32"],
]);

/** Real models have fewer than 200 layers, and at most some dozen experts a token. */
const most = 4096;

const header = /^\{'descr': '([^']{2,4})', 'fortran_order': False, 'shape': \((\d{1,9}), (\d{1,4}), (\d{1,4})\),? *\}\s*$/;

/** null: the bytes are no such file. */
export function readRouting(base64: string, start: number): RoutedExperts | null {
  const file = Buffer.from(base64, "base64");
  if (file.length < 12 || file.toString("latin1", 0, magic.length) !== magic) return null;
  const isLong = file[6] !== 1;
  const begin = isLong ? 12 : 10;
  const end = begin + (isLong ? file.readUInt32LE(8) : file.readUInt16LE(8));
  const found = end > file.length ? null : header.exec(file.toString("latin1", begin, end));
  const dtype = types.get(found?.[1] ?? "");
  if (!found || !dtype) return null;
  const [rows = 0, layers = 0, top_k = 0] = found.slice(2).map(Number);
  const bytes = file.subarray(end);
  if (rows === 0 || layers === 0 || top_k === 0 || Math.max(layers, top_k) > most) return null;
  const shape = { rows, layers, top_k, dtype };
  return bytes.length === routingBytesOf(shape) ? { start, ...shape, bytes } : null;
}
