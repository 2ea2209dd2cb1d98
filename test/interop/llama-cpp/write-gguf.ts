/**
 * Writes a Qwen2 model in Hugging Face's form (config.json, model.safetensors, tokenizer.json) as a GGUF file in f32, so
 * that llama.cpp can be a second opinion on what vLLM sampled. Formats: safetensors' header is JSON behind its length;
 * GGUF version 3 as in llama.cpp's `docs/gguf.md`.
 */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";

const Config = z.looseObject({
  hidden_size: z.number(),
  intermediate_size: z.number(),
  max_position_embeddings: z.number(),
  num_attention_heads: z.number(),
  num_hidden_layers: z.number(),
  num_key_value_heads: z.number(),
  rms_norm_eps: z.number(),
  rope_parameters: z.looseObject({ rope_theta: z.number() }),
  vocab_size: z.number(),
  eos_token_id: z.number(),
});
const Tokenizer = z.looseObject({
  model: z.looseObject({
    vocab: z.record(z.string(), z.number()),
    merges: z.array(z.union([z.string(), z.tuple([z.string(), z.string()])])),
  }),
  added_tokens: z.array(z.looseObject({ id: z.number(), content: z.string(), special: z.boolean() })),
});
const Header = z.record(
  z.string(),
  z.looseObject({ dtype: z.string(), shape: z.array(z.number()), data_offsets: z.tuple([z.number(), z.number()]) }),
);

type Tensor = { name: string; shape: number[]; values: Float32Array };

export async function writeGguf(modelFolder: string, out: string): Promise<void> {
  const config = Config.parse(JSON.parse(await readFile(join(modelFolder, "config.json"), "utf8")));
  const tokenizer = Tokenizer.parse(JSON.parse(await readFile(join(modelFolder, "tokenizer.json"), "utf8")));
  const tensors = await readSafetensors(join(modelFolder, "model.safetensors"));
  await writeFile(out, encode([...hyperparameters(config), ...vocabulary(config, tokenizer)], tensors));
}

async function readSafetensors(file: string): Promise<Tensor[]> {
  const bytes = await readFile(file);
  const start = 8 + Number(bytes.readBigUInt64LE(0));
  const { __metadata__: _, ...said } = JSON.parse(bytes.subarray(8, start).toString("utf8"));
  return Object.entries(Header.parse(said)).map(
    ([
      name,
      {
        dtype,
        shape,
        data_offsets: [from, to],
      },
    ]) => {
      const data = bytes.subarray(start + from, start + to);
      return { name: ggufName(name), shape, values: toFloats(data, dtype) };
    },
  );
}

function toFloats(data: Buffer, dtype: string): Float32Array {
  if (dtype === "F32") return Float32Array.from({ length: data.length / 4 }, (_, at) => data.readFloatLE(4 * at));
  if (dtype !== "BF16") throw new Error(`no reader for ${dtype}`);
  // A bfloat16 is the upper half of a float32.
  const bits = Uint32Array.from({ length: data.length / 2 }, (_, at) => data.readUInt16LE(2 * at) << 16);
  return new Float32Array(bits.buffer);
}

const parts: Record<string, string> = {
  input_layernorm: "attn_norm",
  post_attention_layernorm: "ffn_norm",
  "self_attn.q_proj": "attn_q",
  "self_attn.k_proj": "attn_k",
  "self_attn.v_proj": "attn_v",
  "self_attn.o_proj": "attn_output",
  "mlp.gate_proj": "ffn_gate",
  "mlp.up_proj": "ffn_up",
  "mlp.down_proj": "ffn_down",
};

function ggufName(name: string): string {
  const whole: Record<string, string> = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
  };
  const [, layer, part, kind] = /^model\.layers\.(\d+)\.(.+)\.(weight|bias)$/.exec(name) ?? [];
  const found = whole[name] ?? (part !== undefined && parts[part] ? `blk.${layer}.${parts[part]}.${kind}` : undefined);
  if (found === undefined) throw new Error(`a Qwen2 model has no tensor ${name}`);
  return found;
}

/** GGUF's own numbers of the types that are used here. */
const types = { u32: 4, i32: 5, f32: 6, bool: 7, string: 8, array: 9 } as const;
type Value = { u32: number } | { f32: number } | { bool: boolean } | { string: string } | { strings: string[] } | { i32s: number[] };

function hyperparameters(config: z.infer<typeof Config>): [string, Value][] {
  return [
    ["general.architecture", { string: "qwen2" }],
    ["general.name", { string: "tiny" }],
    ["qwen2.context_length", { u32: config.max_position_embeddings }],
    ["qwen2.embedding_length", { u32: config.hidden_size }],
    ["qwen2.block_count", { u32: config.num_hidden_layers }],
    ["qwen2.feed_forward_length", { u32: config.intermediate_size }],
    ["qwen2.attention.head_count", { u32: config.num_attention_heads }],
    ["qwen2.attention.head_count_kv", { u32: config.num_key_value_heads }],
    ["qwen2.attention.layer_norm_rms_epsilon", { f32: config.rms_norm_eps }],
    ["qwen2.rope.freq_base", { f32: config.rope_parameters.rope_theta }],
  ];
}

function vocabulary(config: z.infer<typeof Config>, tokenizer: z.infer<typeof Tokenizer>): [string, Value][] {
  const tokens = Array.from({ length: config.vocab_size }, (_, id) => `[unused ${id}]`);
  for (const [text, id] of Object.entries(tokenizer.model.vocab)) tokens[id] = text;
  // 1 normal, 3 control, 4 user-defined.
  const kinds = tokens.map(() => 1);
  for (const { id, content, special } of tokenizer.added_tokens) {
    tokens[id] = content;
    kinds[id] = special ? 3 : 4;
  }
  return [
    ["tokenizer.ggml.model", { string: "gpt2" }],
    ["tokenizer.ggml.pre", { string: "qwen2" }],
    ["tokenizer.ggml.tokens", { strings: tokens }],
    ["tokenizer.ggml.token_type", { i32s: kinds }],
    ["tokenizer.ggml.merges", { strings: tokenizer.model.merges.map((one) => (typeof one === "string" ? one : one.join(" "))) }],
    ["tokenizer.ggml.eos_token_id", { u32: config.eos_token_id }],
    ["tokenizer.ggml.add_bos_token", { bool: false }],
  ];
}

function encode(keys: [string, Value][], tensors: Tensor[]): Buffer {
  const head = [
    Buffer.from("GGUF"),
    u32(3),
    u64(tensors.length),
    u64(keys.length),
    ...keys.flatMap(([key, value]) => [text(key), encodedValue(value)]),
  ];
  let offset = 0;
  for (const { name, shape, values } of tensors) {
    // Dimensions stand fastest first; type 0 is f32.
    head.push(text(name), u32(shape.length), ...shape.toReversed().map(u64), u32(0), u64(offset));
    offset += aligned(values.byteLength);
  }
  const data = tensors.map(({ values }) => padded(Buffer.from(values.buffer, values.byteOffset, values.byteLength)));
  return Buffer.concat([padded(Buffer.concat(head)), ...data]);
}

function encodedValue(value: Value): Buffer {
  if ("u32" in value) return Buffer.concat([u32(types.u32), u32(value.u32)]);
  if ("f32" in value) return Buffer.concat([u32(types.f32), f32(value.f32)]);
  if ("bool" in value) return Buffer.concat([u32(types.bool), Buffer.from([Number(value.bool)])]);
  if ("string" in value) return Buffer.concat([u32(types.string), text(value.string)]);
  const [type, items] = "strings" in value ? [types.string, value.strings.map(text)] : [types.i32, value.i32s.map(u32)];
  return Buffer.concat([u32(types.array), u32(type), u64(items.length), ...items]);
}

/** GGUF's default alignment. */
const alignment = 32;
const aligned = (size: number) => Math.ceil(size / alignment) * alignment;
const padded = (bytes: Buffer) => Buffer.concat([bytes, Buffer.alloc(aligned(bytes.length) - bytes.length)]);

function text(string: string): Buffer {
  const bytes = Buffer.from(string);
  return Buffer.concat([u64(bytes.length), bytes]);
}

function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

function f32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeFloatLE(value);
  return bytes;
}

function u64(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}
