/**
 * Records a real SGLang for the tests:  node test/interop/sglang/record.ts http://127.0.0.1:30000
 * Start it with `--tool-call-parser hermes --context-length 8192` and the tiny model of test/interop/vllm.
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { engineNamed } from "../../../engines/registry.ts";
import { type Exchange, recording } from "./exchanges.ts";
import { ask, questions, texts } from "./questions.ts";

const [url] = process.argv.slice(2);
if (url === undefined) throw new Error("give the address of a running SGLang");
const signal = AbortSignal.timeout(300_000);
const exchanges: Exchange[] = [];
await using relay = await recording(url.replace(/\/+$/, ""), exchanges);
const engine = engineNamed("sglang").create({ baseUrl: relay.url, apiKey: null });
const facts = await engine.probe(signal);
const model = facts.models[0] ?? "";
for (const name of Object.keys(questions)) console.log(name, JSON.stringify(await ask(engine, model, name, signal)).slice(0, 300));
for (const text of texts) {
  const ids = await engine.tokenize?.(model, { text }, signal);
  if (ids && ids.length > 0) await engine.detokenize?.(model, ids, signal);
}
await engine.close();
const path = join(import.meta.dirname, `recorded-${facts.version ?? "unknown"}.json`);
await writeFile(path, `[\n${exchanges.map((one) => JSON.stringify(one, withoutPaths)).join(",\n")}\n]\n`);
console.log(`${exchanges.length} exchanges in ${path}`);

/** A server tells where its files are, which stays private. */
function withoutPaths(key: string, value: unknown): unknown {
  return typeof value === "string" && key !== "path" ? value.replaceAll(/\/(?:root|home|tmp|Users|opt)\/[^\s"',]*/g, "/model") : value;
}
