/** Writes a `.npy` file as numpy does, and picks the experts of a scripted model. */

const types = { uint8: "|u1", uint16: "<u2", int32: "<i4" } as const;

export type NpyType = keyof typeof types;

/** `values`: by token, then layer, then expert. */
export function npyOf(values: number[][][], dtype: NpyType = "uint8"): Buffer {
  const [rows, layers, top_k] = [values.length, values[0]?.length ?? 0, values[0]?.[0]?.length ?? 0];
  const text = `{'descr': '${types[dtype]}', 'fortran_order': False, 'shape': (${rows}, ${layers}, ${top_k}), }`;
  const padded = `${text.padEnd(Math.ceil((10 + text.length + 1) / 64) * 64 - 11)}\n`;
  const head = Buffer.from(`\u0093NUMPY\u0001\u0000\u0000\u0000${padded}`, "latin1");
  head.writeUInt16LE(padded.length, 8);
  return Buffer.concat([head, bytesOf(values.flat(2), dtype)]);
}

export function bytesOf(numbers: number[], dtype: NpyType = "uint8"): Buffer {
  if (dtype === "uint8") return Buffer.from(numbers);
  const list = dtype === "uint16" ? Uint16Array.from(numbers) : Int32Array.from(numbers);
  return Buffer.from(list.buffer);
}

/** Shape of the scripted model: eight experts. */
export const scriptedExperts = { experts: 8, layers: 2, top_k: 2 };

/** Depends only on place and id, so that a test notices a shifted row. */
export function expertsAt(id: number, position: number): number[][] {
  return [0, 1].map((layer) => [0, 1].map((place) => (id * 3 + position * 5 + layer * 2 + place) % scriptedExperts.experts));
}
