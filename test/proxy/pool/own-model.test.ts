/** A session trains its own model: what another one sampled is never trained, and a sandboxed agent reaches no other. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { SessionSpec } from "../../../base/schema/session-spec.ts";
import { exporters } from "../../../exporters/registry.ts";
import { decode } from "../../fakes/engines/scripted-engine.ts";
import { dialectRequest } from "../../fakes/proxies/dialect-requests.ts";
import { enginesAt } from "../../fakes/proxies/engines-at.ts";
import type { Client } from "../../fakes/proxies/proxy-at.ts";
import { exported } from "../../fakes/records/exported.ts";

const hi = [{ role: "user", content: "hi" }];
const sandboxed: Partial<SessionSpec> = { sandboxed: true, purpose: "train" };
const reply = (name: string) => ({ text: `by ${name}` });
/** As a run file lists them: the one by globs, by its served name, or by both. */
const pools = {
  "a glob": { policy: {}, judge: { models: ["judge-*"] } },
  "its served name": { policy: {}, judge: { models_served: ["judge-70b"] } },
  "a glob and a purpose": { policy: {}, judge: { models: ["judge-*"], purpose: "eval" as const } },
};

/** The texts that an export of token rows would train. */
async function trainedTexts(client: Client): Promise<string[]> {
  const flat = exporters.find(({ name }) => name === "flat") ?? assert.fail();
  const { rows } = await exported(flat, [{ ...(await client.trajectory()), reward: 1 }]);
  return rows.map((row) => decode((row.token_ids as number[]).filter((_, at) => (row.loss_mask as number[])[at] === 1)));
}

for (const [how, specs] of Object.entries(pools)) {
  test(`a sandboxed agent that names the judge does not reach it (known by ${how})`, async () => {
    await using at = await enginesAt(reply, specs);
    const client = await at.open(sandboxed);
    for (const dialect of ["openai-chat", "openai-responses", "anthropic-messages", "google-generate-content", "openai-completions"]) {
      const { path, body } = dialectRequest(dialect, false);
      const response = await client.post(
        path.replace("/scripted:", "/judge-70b:"),
        "model" in body ? { ...body, model: "judge-70b" } : body,
      );
      assert.equal(response.status, 404, dialect);
      assert.match(JSON.stringify(await response.json()), /judge-70b.*is not this session's/);
    }
    assert.equal(at.calls().judge, 0);
    const models = (await (await fetch(`${at.proxy.url}/v1/models`, { headers: { authorization: `Bearer ${client.key}` } })).json()) as {
      data: { id: string }[];
    };
    assert.deepEqual(
      models.data.map(({ id }) => id),
      ["scripted"],
    );
  });

  test(`what the judge sampled leaves in no export as the policy's (known by ${how})`, async () => {
    await using at = await enginesAt(reply, specs);
    const client = await at.open({ purpose: "train" });
    assert.equal((await client.say(hi)).content, "by policy");
    assert.equal((await client.say([{ role: "user", content: "judge me" }], { model: "judge-70b" })).content, "by judge");
    const { calls, fidelity, nodes } = await client.trajectory();
    assert.deepEqual(
      calls.map((call) => call.other_policy),
      [false, true],
    );
    assert.deepEqual(fidelity.excluded, { other_policy: "by judge".length + 1 });
    assert.ok(nodes.every((node) => !node.trainable || node.call_id === calls[0]?.call_id));
    assert.deepEqual(await trainedTexts(client), ["by policy⏹"]);
  });
}

test("the names that harnesses ask for on their own lead to the policy", async () => {
  await using at = await enginesAt(reply, pools["a glob"]);
  const client = await at.open(sandboxed);
  for (const model of ["scripted", "claude-haiku-4-5", "gemini-3-flash-preview", "gpt-5-nano", "claude-haiku@20251001"])
    assert.equal((await client.say([{ role: "user", content: model }], { model })).content, "by policy");
  assert.ok(at.engines.policy?.requests.every(({ model }) => model === "scripted"));
  assert.deepEqual((await client.trajectory()).fidelity.excluded, {});
});

test("a sandboxed agent does not choose the weights: neither another step, nor the base model behind an adapter", async () => {
  const policy = { models_served: ["base", "lora", "lora@2"], policy: { version: "v7", step: 7 } };
  await using at = await enginesAt(reply, { policy, old: { policy: { version: "v3", step: 3 }, models_served: ["lora"] } });
  const client = await at.open({ ...sandboxed, model: "lora" });
  for (const model of ["base", "lora@2", "lora@3", "lora@v3"]) {
    const response = await client.chat({ messages: hi, model });
    assert.equal(response.status, 404, model);
  }
  await client.say(hi, { model: "lora" });
  assert.deepEqual(
    [...(at.engines.policy?.requests ?? []), ...(at.engines.old?.requests ?? [])].map((one) => one.model),
    ["lora"],
  );
});

test("the base model behind an adapter is another policy, a step of the same name is not", async () => {
  await using at = await enginesAt(reply, { policy: { models_served: ["base", "lora@2", "lora@3"] } });
  const client = await at.open();
  for (const model of ["lora@2", "lora@3", "base"]) await client.say([{ role: "user", content: model }], { model });
  assert.deepEqual(
    (await client.trajectory()).calls.map((call) => call.other_policy),
    [false, false, true],
  );
});

const toJudge = [{ request_class: "main", model: "*-haiku", engine: "judge" }];

test("a rule leads a sandboxed agent elsewhere only where it is open to sandboxes, and then nothing of it is trained", async () => {
  for (const open of [false, true]) {
    await using at = await enginesAt(reply, pools["a glob and a purpose"], {
      routes: toJudge.map((rule) => ({ ...rule, request_class: "main", sandboxed: open })),
    });
    const client = await at.open(sandboxed);
    assert.equal((await client.say(hi, { model: "claude-haiku" })).content, open ? "by judge" : "by policy");
    assert.deepEqual((await client.trajectory()).fidelity.excluded, open ? { other_policy: "by judge".length + 1 } : {});
  }
});

test("an agent that calls itself another agent or another class is led by no rule", async () => {
  const routes = [
    { agent: "helper*", engine: "judge" },
    { request_class: "title", engine: "judge" },
  ];
  await using at = await enginesAt(reply, pools["a glob"], { routes });
  const client = await at.open(sandboxed);
  const headers = { authorization: `Bearer ${client.key}`, "x-parent-session-id": "a", "x-session-id": "helper-1" };
  const body = JSON.stringify({ model: "any", messages: [{ role: "system", content: "You are a title generator" }, ...hi] });
  assert.equal((await fetch(`${at.proxy.url}/v1/chat/completions`, { method: "POST", headers, body })).status, 200);
  assert.deepEqual(at.calls(), { policy: 1, judge: 0 });
});

test("an engine that is added beside the policy is asked by name, and never trained", async () => {
  await using at = await enginesAt(reply, { policy: {}, helper: {} });
  const judge = at.engines.helper ?? assert.fail();
  assert.equal((await at.control("DELETE", "/engines/helper")).status, 200);
  const added = await at.control("POST", "/engines", { name: "judge", url: judge.url, models: ["judge-*"], purpose: "eval" });
  assert.deepEqual([added.status, added.body.purpose], [201, "eval"]);
  const client = await at.open({ purpose: "train" });
  assert.equal((await client.say(hi, { model: "judge-1" })).content, "by helper");
  assert.equal((await client.say(hi, { model: "any" })).content, "by policy");
  const tried = (await client.entries()).filter((entry) => entry.type === "tried");
  assert.deepEqual(
    tried.map((entry) => entry.other_policy ?? false),
    [true, false],
  );
  assert.deepEqual(await trainedTexts(client), ["by policy⏹"]);
});

test("the weights that a trainer names are the policy's, and a pause holds no judge", async () => {
  await using at = await enginesAt(reply, pools["a glob and a purpose"]);
  const paused = await at.control("POST", "/pause", {});
  assert.deepEqual(paused.body.engines, ["policy"]);
  const named = await at.control("PUT", "/policy", { version: "v2", fence: paused.body.fence });
  assert.deepEqual(named.body.engines, ["policy"]);
  assert.equal(at.proxy.pool.named("judge").policy, null);
  await at.control("POST", "/resume", { fence: paused.body.fence });
});
