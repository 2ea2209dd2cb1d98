/**
 * Reads a folder in the format of transformers and vLLM: `config.json` of a Llama or Mistral and `model.safetensors`. The tokenizer and the
 * chat template stay the engine's own, so that ids mean the same with all weights.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";
import { messageOf } from "../../base/errors.ts";
import { readJson } from "../../base/schema/read-json.ts";
import { vocabularySize } from "../tokenizer/vocabulary.ts";
import { readSafetensors, type Tensor } from "./safetensors.ts";
import type { LayerWeights, LlamaShape, Weights } from "./weights.ts";

const Size = z.int().positive();
/** Widths are multiples of four, because sums take four numbers at once. */
const Width = Size.multipleOf(4);
/** Refuses fields that change the results but are not implemented here: the results would be wrong. */
const LlamaConfig = z.looseObject({
  /** A Mistral is a Llama whose tokens may see only a window. */
  model_type: z.enum(["llama", "mistral"]),
  sliding_window: Size.nullish(),
  vocab_size: z.literal(vocabularySize, {
    error: `must be ${vocabularySize}, the vocabulary of the embedded engine`,
  }),
  hidden_size: Width,
  intermediate_size: Width,
  num_hidden_layers: Size,
  num_attention_heads: Size,
  num_key_value_heads: Size.nullish(),
  head_dim: Size.multipleOf(2).nullish(),
  hidden_act: z.literal("silu").default("silu"),
  rms_norm_eps: z.number().positive().default(1e-6),
  rope_theta: z.number().positive().nullish(),
  rope_scaling: z.null().optional(),
  rope_parameters: z.looseObject({ rope_theta: z.number().positive(), rope_type: z.literal("default").default("default") }).nullish(),
  partial_rotary_factor: z.literal(1).nullish(),
  attention_bias: z.literal(false).default(false),
  mlp_bias: z.literal(false).default(false),
  tie_word_embeddings: z.boolean().default(false),
  max_position_embeddings: z.int().min(2).default(2048),
});
type LlamaConfig = z.infer<typeof LlamaConfig>;

/** `version` names the weights: the hash of their file. */
export type LlamaFolder = { weights: Weights; version: string; maxPositions: number };

/** Throws an error that names the file and the field that are wrong. */
export async function readLlamaFolder(folder: string): Promise<LlamaFolder> {
  const config = await readConfig(join(folder, "config.json"));
  const file = join(folder, "model.safetensors");
  const { tensors, sha256 } = await readSafetensors(file);
  const shape = shapeOf(config);
  const take = (name: string, ...sides: number[]): Float64Array => numbersOf(file, tensors.get(name), name, sides);
  const embedding = take("model.embed_tokens.weight", shape.vocabularySize, shape.width);
  const weights = {
    shape,
    embedding,
    layers: Array.from({ length: shape.layers }, (_, at) => layerOf(shape, `model.layers.${at}.`, take)),
    norm: take("model.norm.weight", shape.width),
    head: config.tie_word_embeddings ? embedding : take("lm_head.weight", shape.vocabularySize, shape.width),
    bias: null,
  };
  return { weights, version: `sha256:${sha256.slice(0, 16)}`, maxPositions: config.max_position_embeddings };
}

async function readConfig(path: string): Promise<LlamaConfig> {
  const found = LlamaConfig.safeParse(await readJsonFile(path));
  if (!found.success) {
    const [issue] = found.error.issues;
    throw new Error(`${path}: ${issue?.path.join(".") || "the file"}: ${issue?.message}`, { cause: found.error });
  }
  const { hidden_size, num_attention_heads: heads, num_key_value_heads, head_dim } = found.data;
  if (heads % (num_key_value_heads ?? heads) !== 0)
    throw new Error(`${path}: num_attention_heads ${heads} is no multiple of num_key_value_heads ${num_key_value_heads}`);
  if ((head_dim ?? hidden_size / heads) % 2 !== 0) throw new Error(`${path}: a head of ${hidden_size / heads} numbers has no pairs`);
  return found.data;
}

async function readJsonFile(path: string): Promise<unknown> {
  const text = await readFile(path, "utf8");
  try {
    return readJson(text);
  } catch (error) {
    throw new Error(`${path} is no JSON: ${messageOf(error)}`, { cause: error });
  }
}

function shapeOf(config: LlamaConfig): LlamaShape {
  const { hidden_size: width, num_attention_heads: heads } = config;
  return {
    vocabularySize: config.vocab_size,
    width,
    layers: config.num_hidden_layers,
    heads,
    keyValueHeads: config.num_key_value_heads ?? heads,
    headSize: config.head_dim ?? width / heads,
    hidden: config.intermediate_size,
    window: config.model_type === "mistral" ? (config.sliding_window ?? null) : null,
    sinks: 0,
    singleAngles: true,
    ropeBase: config.rope_parameters?.rope_theta ?? config.rope_theta ?? 10_000,
    normEpsilon: config.rms_norm_eps,
  };
}

function layerOf(shape: LlamaShape, prefix: string, take: (name: string, ...sides: number[]) => Float64Array): LayerWeights {
  const { width, hidden } = shape;
  const [queryWidth, keyValueWidth] = [shape.heads * shape.headSize, shape.keyValueHeads * shape.headSize];
  return {
    attentionNorm: take(`${prefix}input_layernorm.weight`, width),
    query: take(`${prefix}self_attn.q_proj.weight`, queryWidth, width),
    key: take(`${prefix}self_attn.k_proj.weight`, keyValueWidth, width),
    value: take(`${prefix}self_attn.v_proj.weight`, keyValueWidth, width),
    output: take(`${prefix}self_attn.o_proj.weight`, width, queryWidth),
    mlpNorm: take(`${prefix}post_attention_layernorm.weight`, width),
    gate: take(`${prefix}mlp.gate_proj.weight`, hidden, width),
    up: take(`${prefix}mlp.up_proj.weight`, hidden, width),
    down: take(`${prefix}mlp.down_proj.weight`, width, hidden),
  };
}

function numbersOf(file: string, tensor: Tensor | undefined, name: string, sides: readonly number[]): Float64Array {
  if (tensor === undefined) throw new Error(`${file} has no tensor ${name}`);
  if (tensor.shape.join() !== sides.join()) throw new Error(`${file}: ${name} is [${tensor.shape}], and config.json makes it [${sides}]`);
  return tensor.numbers;
}
