/** What a monitor reads of a service: figures of its ledger and its engines. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { prometheusText } from "../../base/wire/prometheus-text.ts";
import { type Claim, SetSpec } from "../../service/ledger/index.ts";
import { serviceAt, serviceGroups, serviceTask } from "../fakes/proxies/service-at.ts";
import { attemptResult } from "../fakes/records/attempt-result.ts";

async function scraped(url: string, token = "read"): Promise<{ response: Response; text: string; value(series: string): number | null }> {
  const response = await fetch(`${url}/metrics`, { headers: { authorization: `Bearer ${token}` } });
  const text = await response.text();
  const lines = text.split("\n");
  const value = (series: string): number | null => {
    const found = lines.filter((line) => line.replace(/set_id="[^"]*",?/, "").startsWith(`${series} `));
    assert.ok(found.length < 2, found.join("\n"));
    return found[0] === undefined ? null : Number(found[0].slice(found[0].lastIndexOf(" ") + 1));
  };
  return { response, text, value };
}

test("a monitor reads what the ledger counts, and what is not known yet has no line", async (t) => {
  const { url, call, ledger, lease, slot } = await serviceAt(t);
  const before = await scraped(url);
  assert.match(before.response.headers.get("content-type") ?? "", /^text\/plain; version=0\.0\.4/);
  assert.deepEqual([before.value("alidade_sets"), before.value('alidade_node_slots{node="n"}')], [0, 9]);
  assert.equal(before.value(`alidade_engine_calls_in_flight{engine="${slot.name}"}`), 0);
  assert.equal((await scraped(url, "wrong")).response.status, 401);

  await ledger.grantPlaces(lease, [{ name: "e", server: "s", limit: 8, used: 3, waiting: 2, held: 0 }]);
  const places = await scraped(url);
  assert.equal(places.value('alidade_engine_places{engine="e",node="n"}'), 8);
  assert.deepEqual(
    ["granted", "used", "waiting"].map((what) => places.value(`alidade_engine_places_${what}{engine="e",node="n"}`)),
    [8, 3, 2],
  );
  const set = (await call("PUT", "/sets/a", { samples: 2 })).body.set_id;
  await call("POST", `/sets/${set}/groups`, serviceGroups("same", "other", "broken", "late"));
  const unmeasured = await scraped(url);
  assert.equal(unmeasured.value('alidade_reward_mean{set="a",}'), null);
  const claims = await ledger.claim(lease, 6);
  const results = [
    ...[attemptResult({ reward: 1 }), attemptResult({ reward: 1 })],
    ...[attemptResult({ reward: 0.5, trainable_tokens: 2 }), attemptResult({ reward: 0 })],
    attemptResult({ state: "failed", reward: null, mask_reason: "sandbox_died", error: { code: "sandbox_died", message: "it died" } }),
    attemptResult({ reward: null, mask_reason: "grader_timeout", sampled_tokens: 0, trainable_tokens: 0 }),
  ];
  for (const [at, claim] of claims.entries()) {
    await ledger.finish(claim as Claim, results[at] as (typeof results)[number]);
    // A look after each result adds each result once.
    await scraped(url);
  }
  const { value } = await scraped(url);
  const of = (name: string, more = "") => value(`${name}{set="a",${more}}`);
  assert.deepEqual(
    ["completed", "failed", "cancelled", "queued", "running"].map((state) => of("alidade_rollouts", `state="${state}"`)),
    [5, 1, 0, 2, 0],
  );
  assert.equal(of("alidade_failures_total", 'code="sandbox_died"'), 1);
  assert.deepEqual([of("alidade_groups", 'state="whole"'), of("alidade_groups", 'state="open"')], [3, 1]);
  assert.deepEqual([of("alidade_compared_groups_total"), of("alidade_groups_without_variance_total")], [2, 1]);
  assert.deepEqual([of("alidade_rewards_total"), of("alidade_reward_mean"), of("alidade_pass_ratio")], [4, 0.625, 0.5]);
  assert.equal(of("alidade_null_reward_ratio"), 2 / 6);
  assert.deepEqual([of("alidade_sampled_tokens_total"), of("alidade_trainable_tokens_total")], [15, 14]);
  assert.ok((of("alidade_oldest_rollout_age_seconds", 'state="queued"') ?? -1) >= 0);
  assert.equal(of("alidade_oldest_rollout_age_seconds", 'state="running"'), null);
});

test("figures by policy step are served for all steps, and as gauges for the latest ones", async (t) => {
  const { url, call, ledger, lease } = await serviceAt(t);
  const set = (await call("PUT", "/sets/a", { samples: 2 })).body.set_id;
  await call("POST", `/sets/${set}/groups`, serviceGroups("g1", "g2", "g3", "g4"));
  const nothing = (await call("GET", `/sets/${set}/figures`)).body;
  assert.deepEqual(nothing, { set_id: set, steps: [], steps_left_out: 0, evaluation: null, counted: 0, expired: 0 });
  for (const [at, claim] of (await ledger.claim(lease, 8)).entries())
    await ledger.finish(claim, attemptResult({ reward: at % 2, newest_step: Math.floor(at / 2) }));
  const both = [call("GET", `/sets/${set}/figures?last=2`, undefined, "read"), call("GET", `/sets/${set}/figures`)];
  const [{ body: last } = { body: null }, { body: all } = { body: null }] = await Promise.all(both);
  assert.deepEqual([last.steps_left_out, all.steps.length], [2, 4], "two looks at once count each result once");
  assert.deepEqual(last.steps[1].policy_step, 3);
  assert.deepEqual(last.steps[1].figures.pass_ratio, { value: 0.5, part: 1, whole: 2, reason: null });
  assert.equal(last.steps[1].figures.cache_hit_ratio.value, null);
  const { text, value } = await scraped(url);
  assert.equal(value('alidade_step_no_variance_ratio{set="a",step="3"}'), 0);
  assert.doesNotMatch(text, /step="0"|alidade_step_cache_hit_ratio\{/);
  assert.equal((await call("GET", "/sets/setnone/figures")).status, 404);
  assert.equal((await call("GET", `/sets/${set}/figures?last=0`)).status, 400);
  assert.equal((await call("GET", `/sets/${set}/figures`, undefined, "node")).status, 403);
});

test("a trainer's keys change no line of a scrape, and sets beyond the bound are counted and left out", async (t) => {
  const { url, call, ledger } = await serviceAt(t);
  const hostile = 'a"} 1\nalidade_rollouts{set="b\\\u0000\r';
  const long = "x".repeat(500);
  for (const key of [hostile, `${long.slice(1)}y`, `${long.slice(1)}z`]) {
    const { status, body } = await call("PUT", `/sets/${encodeURIComponent(key)}`, { samples: 1 });
    assert.equal(status, 200, JSON.stringify(body));
  }
  const { text } = await scraped(url);
  const line = /^(?:# (?:HELP|TYPE) alidade_\w+ .*|alidade_\w+(?:\{(?:\w+="(?:[^"\\\p{Cc}]|\\[\\n"])*",?)*\})? -?[\d.e+-]+)$/u;
  const lines = text.trimEnd().split("\n");
  assert.deepEqual(
    lines.filter((one) => !line.test(one)),
    [],
  );
  const series = lines.filter((one) => !one.startsWith("#")).map((one) => one.slice(0, one.lastIndexOf(" ")));
  assert.equal(new Set(series).size, series.length, "no series twice");
  assert.match(text, /set="a\\"\} 1\\nalidade_rollouts\{set=\\"b\\\\\ufffd\ufffd"/);

  const first = await ledger.putSet("first, with open rollouts", SetSpec.parse({ samples: 1 }));
  for (let at = 0; at < 105; at++) await ledger.putSet(`later ${at}`, SetSpec.parse({}));
  await call("POST", `/sets/${first.set_id}/groups`, JSON.stringify({ group_key: "g", task: serviceTask }));
  const { value, text: many } = await scraped(url);
  assert.deepEqual([value("alidade_sets"), value("alidade_sets_left_out")], [109, 9]);
  assert.match(many, /alidade_rollouts\{set="first, with open rollouts",[^}]*state="queued"\} 1\n/);
  assert.match(many, /set="later 104"/);
  assert.doesNotMatch(many, /set="later 0"/);
});

test("the text format has each name's help, and no line for what is no number", () => {
  const samples = [1, null, Number.NaN, Number.POSITIVE_INFINITY].map((value) => ({ labels: {}, value }));
  assert.equal(
    prometheusText([{ name: "a_seconds", type: "gauge", help: "one\nline", samples }]),
    "# HELP a_seconds one\\nline\n# TYPE a_seconds gauge\na_seconds 1\n",
  );
});
