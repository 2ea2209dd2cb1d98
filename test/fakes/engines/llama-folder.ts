/** Writes a folder that the practice engine serves: a Llama of random weights, in the format of Hugging Face. */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { SeededRandom } from "../../../practice/model/random.ts";
import { vocabularySize } from "../../../practice/tokenizer/vocabulary.ts";

export const tinyConfig = {
  architectures: ["LlamaForCausalLM"],
  model_type: "llama",
  vocab_size: vocabularySize,
  hidden_size: 32,
  intermediate_size: 48,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  head_dim: 12,
  hidden_act: "silu",
  rms_norm_eps: 1e-5,
  rope_theta: 50_000,
  attention_bias: false,
  mlp_bias: false,
  tie_word_embeddings: false,
  max_position_embeddings: 2048,
};
export type WrittenConfig = typeof tinyConfig & { sliding_window?: number };

/** `dtype`: how the numbers are stored. */
export async function writeLlamaFolder(
  folder: string,
  seed: number,
  config: WrittenConfig = tinyConfig,
  dtype: "F32" | "BF16" = "F32",
): Promise<void> {
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, "config.json"), JSON.stringify(config));
  await writeFile(join(folder, "model.safetensors"), safetensors(sidesOf(config), seed, dtype));
}

function sidesOf(config: WrittenConfig): Record<string, number[]> {
  const { hidden_size: width, intermediate_size: hidden, head_dim } = config;
  const [queries, keys] = [config.num_attention_heads * head_dim, config.num_key_value_heads * head_dim];
  const layer = {
    "input_layernorm.weight": [width],
    "self_attn.q_proj.weight": [queries, width],
    "self_attn.k_proj.weight": [keys, width],
    "self_attn.v_proj.weight": [keys, width],
    "self_attn.o_proj.weight": [width, queries],
    "post_attention_layernorm.weight": [width],
    "mlp.gate_proj.weight": [hidden, width],
    "mlp.up_proj.weight": [hidden, width],
    "mlp.down_proj.weight": [width, hidden],
  };
  const layers = Array.from({ length: config.num_hidden_layers }, (_, at) =>
    Object.entries(layer).map(([name, sides]) => [`model.layers.${at}.${name}`, sides] as const),
  );
  return {
    "model.embed_tokens.weight": [config.vocab_size, width],
    ...Object.fromEntries(layers.flat()),
    "model.norm.weight": [width],
    ...(config.tie_word_embeddings ? {} : { "lm_head.weight": [config.vocab_size, width] }),
  };
}

function safetensors(tensors: Record<string, number[]>, seed: number, dtype: "F32" | "BF16"): Buffer {
  const random = new SeededRandom(seed);
  const header: Record<string, unknown> = { __metadata__: { format: "pt" } };
  const parts: Buffer[] = [];
  let start = 0;
  for (const [name, sides] of Object.entries(tensors)) {
    // Gains are about 1. Matrices are wide enough to give attention clear peaks.
    const singles = Buffer.alloc(4 * sides.reduce((product, side) => product * side, 1));
    for (let at = 0; at < singles.length; at += 4)
      singles.writeFloatLE(sides.length === 1 ? 1 + random.normal() / 4 : random.normal() / 4, at);
    const bytes = dtype === "F32" ? singles : upperHalves(singles);
    header[name] = { dtype, shape: sides, data_offsets: [start, start + bytes.length] };
    start += bytes.length;
    parts.push(bytes);
  }
  const text = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  return Buffer.concat([length, text, ...parts]);
}

function upperHalves(singles: Buffer): Buffer {
  const halves = Buffer.alloc(singles.length / 2);
  for (let at = 0; at < halves.length; at += 2) singles.copy(halves, at, 2 * at + 2, 2 * at + 4);
  return halves;
}
