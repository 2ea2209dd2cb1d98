/** The columns of a flat row in Parquet's terms. A test holds the list to the fields of `FlatRow`. */
import type { ParquetWriter } from "hyparquet-writer";
import type { FlatRow } from "../../reconstruct/index.ts";

type SchemaElement = ConstructorParameters<typeof ParquetWriter>[0]["schema"][number];
type Repetition = "REQUIRED" | "OPTIONAL";
type Leaf = Pick<SchemaElement, "type" | "converted_type">;

const text: Leaf = { type: "BYTE_ARRAY", converted_type: "UTF8" };
/** What we count: tokens, rows, places in them. */
const whole: Leaf = { type: "INT32" };
/** What others number, maybe by the milliseconds since 1970. */
const large: Leaf = { type: "INT64" };
const number: Leaf = { type: "DOUBLE" };
const flag: Leaf = { type: "BOOLEAN" };

const value = (name: string, leaf: Leaf, repetition_type: Repetition = "REQUIRED"): SchemaElement[] => [{ name, repetition_type, ...leaf }];
const maybe = (name: string, leaf: Leaf): SchemaElement[] => value(name, leaf, "OPTIONAL");
const list = (name: string, element: SchemaElement[], repetition_type: Repetition = "REQUIRED"): SchemaElement[] => [
  { name, repetition_type, converted_type: "LIST", num_children: 1 },
  { name: "list", repetition_type: "REPEATED", num_children: 1 },
  ...element,
];
const group = (name: string, fields: SchemaElement[][]): SchemaElement[] => [
  { name, repetition_type: "REQUIRED", num_children: fields.length },
  ...fields.flat(),
];

const segment = group("element", [
  value("start", whole),
  value("end", whole),
  value("kind", text),
  value("call_id", text),
  value("agent", text),
  value("node_id", text),
  value("node_start", whole),
  maybe("policy_version", text),
  maybe("policy_step", large),
  value("context", text),
  value("trainable", flag),
  maybe("reason", text),
]);

const picture = group("element", [value("sha256", text), value("start", whole), value("length", whole)]);

const routing = group("element", [
  value("start", whole),
  value("length", whole),
  value("sha256", text),
  value("row", whole),
  value("layers", whole),
  value("top_k", whole),
  value("dtype", text),
]);

const support = group("element", [
  value("start", whole),
  value("length", whole),
  value("sha256", text),
  value("row", whole),
  value("rows", whole),
]);

/** Text by text. */
const map = (name: string): SchemaElement[] => [
  { name, repetition_type: "REQUIRED", converted_type: "MAP", num_children: 1 },
  { name: "key_value", repetition_type: "REPEATED", num_children: 2 },
  ...value("key", text),
  ...value("value", text),
];

const fields = {
  schema_version: (name) => value(name, whole),
  trajectory_id: (name) => value(name, text),
  session_id: (name) => value(name, text),
  task_id: (name) => maybe(name, text),
  rollout_id: (name) => maybe(name, text),
  attempt: (name) => value(name, large),
  group_id: (name) => maybe(name, text),
  group_size: (name) => maybe(name, large),
  sample_index: (name) => maybe(name, large),
  row_index: (name) => value(name, whole),
  row_count: (name) => value(name, whole),
  trace_id: (name) => value(name, text),
  agent: (name) => value(name, text),
  token_ids: (name) => list(name, value("element", whole)),
  media: (name) => list(name, picture, "OPTIONAL"),
  loss_mask: (name) => list(name, value("element", { type: "INT32", converted_type: "INT_8" })),
  logprobs: (name) => list(name, maybe("element", number)),
  teacher_logprobs: (name) => list(name, maybe("element", number), "OPTIONAL"),
  teacher_top_ids: (name) => list(name, list("element", value("element", whole)), "OPTIONAL"),
  teacher_top_logprobs: (name) => list(name, list("element", value("element", number)), "OPTIONAL"),
  routing: (name) => list(name, routing, "OPTIONAL"),
  support: (name) => list(name, support, "OPTIONAL"),
  position_ids: (name) => list(name, value("element", whole), "OPTIONAL"),
  parent_index: (name) => list(name, value("element", whole), "OPTIONAL"),
  segments: (name) => list(name, segment),
  harness: (name) => maybe(name, text),
  harness_version: (name) => maybe(name, text),
  labels: (name) => map(name),
  policy_version: (name) => maybe(name, text),
  policy_step: (name) => maybe(name, large),
  temperature: (name) => maybe(name, number),
  status: (name) => value(name, text),
  stop_reason: (name) => maybe(name, text),
  seconds: (name) => maybe(name, number),
  reward: (name) => maybe(name, number),
  in_baseline: (name) => value(name, flag),
  weight: (name) => value(name, number),
  trained_tokens: (name) => value(name, whole),
  rollout_trained_tokens: (name) => value(name, whole),
  prompt_length: (name) => value(name, whole),
  cut: (name) => value(name, flag),
  dummy: (name) => value(name, flag),
} as const satisfies { [Name in keyof FlatRow]-?: (name: string) => SchemaElement[] };

export const columns = Object.keys(fields) as (keyof FlatRow)[];

export const schema: SchemaElement[] = [{ name: "row", num_children: columns.length }, ...columns.flatMap((name) => fields[name](name))];

/** What stands in the column: the library wants a bigint where it writes 64 bits. */
export function cellOf(row: FlatRow, name: keyof FlatRow): unknown {
  if (name === "segments") return row.segments.map((segment) => ({ ...segment, policy_step: toLarge(segment.policy_step) }));
  return largeColumns.has(name) ? toLarge(row[name] as number | null) : row[name];
}

const largeColumns: ReadonlySet<string> = new Set(schema.filter(({ type }) => type === large.type).map(({ name }) => name));

function toLarge(number: number | null): bigint | null {
  return number === null ? null : BigInt(number);
}
