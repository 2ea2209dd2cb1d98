import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import type { EngineFacts } from "../../../engines/engine.ts";
import type { Finding } from "../../../engines/examine.ts";
import { ScriptedEngine, type ScriptedReply } from "../../fakes/engines/scripted-engine.ts";
import { llamaCppWire } from "../../fakes/engines/scripted-llama-cpp.ts";
import { sglangWire, sglangWith } from "../../fakes/engines/scripted-sglang.ts";
import { ScriptedWire, type Wire } from "../../fakes/engines/scripted-wire.ts";
import { scratchFolder } from "../../fakes/machine/scratch-folder.ts";
import { cli, jsonOf } from "../../fakes/processes/cli.ts";

type Looked = { trainable: boolean; engines: { name: string; facts: EngineFacts; findings: Finding[] }[] };

async function doctor(wire: Wire, kind: string, reply: ScriptedReply): Promise<{ code: number | null; looked: Looked }> {
  await using server = await ScriptedWire.start(wire, () => reply);
  const result = await cli(["doctor", "--engine", server.url, "--kind", kind, "--json"]);
  return { code: result.code, looked: jsonOf<Looked>(result) };
}

const found = ({ engines }: Looked, what: string): Finding =>
  engines[0]?.findings.find((one) => one.what === what) ?? assert.fail(`nothing is said of ${what}`);

test("doctor finds all that training needs in the practice engine, and prints it for a person", async () => {
  const result = await cli(["doctor", "--engine", "practice"]);
  assert.equal(result.code, 0, result.stderr);
  for (const line of [/ok +token ids +prompt and sampled/, /ok +tool calls +parsed, when written as hermes/, /ok +abort +stopped \d+ ms/])
    assert.match(result.stdout, line);
  assert.match(result.stdout, /ok +token-in +prompt ids are taken as given/);
  assert.match(result.stderr, /practice can be trained on/);
});

test("doctor ends with 1 at a router that strips ids, and names it", async () => {
  const { code, looked } = await doctor(sglangWire, "sglang", { text: "x", quirk: "router_strips_meta" });
  assert.deepEqual([code, looked.trainable], [1, false]);
  assert.match(found(looked, "token ids").todo ?? "", /router/);
});

test("doctor says of SGLang and llama-server what their logprobs are, and whether they take prompt ids", async () => {
  const sglang = await doctor(sglangWire, "sglang", { text: "x" });
  assert.deepEqual([sglang.code, sglang.looked.trainable], [0, true]);
  assert.match(found(sglang.looked, "logprobs are").found, /^processed/);
  assert.equal(found(sglang.looked, "weight version").found, "w7");
  const llama = await doctor(llamaCppWire, "llama-cpp", { text: "x" });
  assert.equal(llama.looked.trainable, true);
  assert.match(found(llama.looked, "logprobs are").found, /^raw/);
  assert.equal(found(sglang.looked, "token-in").status, "ok");
  const none = found(llama.looked, "token-in");
  assert.deepEqual([none.status, /parsers.*do not run.*row_inflation/.test(none.todo ?? "")], ["gap", true]);
});

test("doctor ends with an error where nothing listens, and for a kind that there is not", async () => {
  const gone = await cli(["doctor", "--engine", "http://127.0.0.1:1", "--json"]);
  assert.equal(jsonOf<{ error: { code: string } }>(gone).error.code, "engine_unreachable");
  assert.equal(gone.code, 1);
  const unknown = await cli(["doctor", "--engine", "http://127.0.0.1:1", "--kind", "mine", "--json"]);
  assert.equal(unknown.code, 2);
  assert.match(unknown.stdout, /engine\.kind/);
});

test("doctor says whether the experts of tokens are recorded and names the flag, and is silent if the model has none or it is unknown", async () => {
  await using engine = await ScriptedEngine.start(() => ({ text: "x" }));
  const root = scratchFolder("doctor");
  for (const [config, experts, routing] of [
    [null, null, null],
    ['{"hidden_size": 64}', null, null],
    ['{"num_experts": 8}', "8: which of them each token took is not recorded", null],
    ['{"num_experts": 8}', "8: which of them each token took is recorded, in sessions that are not live", "told"],
  ] as const) {
    engine.routing = routing;
    if (config !== null) await writeFile(join(root, "config.json"), config);
    engine.root = config === null ? null : root;
    const result = await cli(["doctor", "--engine", engine.url, "--json"]);
    assert.equal(result.code, 0, result.stderr);
    const said = jsonOf<Looked>(result).engines[0]?.findings.find(({ what }) => what === "experts");
    assert.equal(said?.found ?? null, experts);
    assert.equal(/--enable-return-routed-experts/.test(said?.todo ?? ""), experts !== null && routing === null);
  }
});

const sglangModels = scratchFolder("doctor-sglang");

test("doctor says of SGLang how its experts come on record: by the flag, by the model's configuration, or not with these options", async () => {
  const model_path = join(sglangModels, "moe");
  await mkdir(model_path, { recursive: true });
  for (const [server, found, todo] of [
    [{ told: "as asked", model_path }, "which of them each token took is not recorded", /hf download MODEL config\.json/],
    [{ told: null, model_path }, "8: which of them each token took is not recorded", /start SGLang with --enable-return-routed-experts/],
    [{ told: "as asked", model_path }, "8: which of them each token took is recorded", null],
    [{ told: "as asked", model_path, options: { pp_size: 2 } }, "8: which of them each token took is not recorded", /--pp-size/],
  ] as const) {
    const { looked } = await doctor(sglangWith(server), "sglang", { text: "x" });
    const said = looked.engines[0]?.findings.find(({ what }) => what === "experts");
    assert.deepEqual([said?.found, said?.status], [found, todo === null ? "ok" : "gap"]);
    if (todo !== null) assert.match(said?.todo ?? "", todo);
    await writeFile(join(model_path, "config.json"), '{"num_experts": 8, "num_hidden_layers": 2, "num_experts_per_tok": 2}');
  }
});
