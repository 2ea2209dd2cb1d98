/** The pages of a service's sets: who may read them, what they say, and what they take from ledger and blobs. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { putAllPacked } from "../../../service/blobs/index.ts";
import { GroupPart, SetSpec } from "../../../service/ledger/index.ts";
import { attemptResult } from "../../../service/nodes/attempt-result.ts";
import { toEntry } from "../../../view/sets/to-entry.ts";
import { serviceAt, serviceTask } from "../../fakes/proxies/service-at.ts";
import { viewedRollout } from "../../fakes/records/viewed-run.ts";
import { openBrowser } from "../../fakes/view/browser.ts";
import { need } from "../../needs.ts";

const rewards = [1, 0, 0, 0, 1, null];

/** A set of one group, and what ends its rollouts: results and trajectories as a node would leave them. */
async function viewedSet(t: TestContext, namespace = "") {
  const service = await serviceAt(t);
  const { ledger, blobs, lease } = service;
  const spec = SetSpec.parse({ samples: rewards.length, labels: { arm: "b" } });
  const { set_id } = await ledger.putSet("first", spec, namespace);
  await ledger.submit(set_id, [GroupPart.parse({ group_key: "g/1", task: serviceTask })]);
  const vocabulary = new Map<string, number>();
  const finish = async (many: number) => {
    for (const claim of await ledger.claim(lease, many)) {
      const { rollout_id, index, group_id, attempt } = claim;
      const order = { at: index, task_id: "t", group_id, sample_index: index, size: rewards.length, turns: 4, words: 1, vocabulary };
      const made = viewedRollout({ ...order, reward: rewards[index] ?? null });
      const trajectory = { ...made.trajectory, rollout_id };
      const record = { ...made.record, rollout_id, attempt };
      const payload = await putAllPacked(blobs, `${set_id}/${rollout_id}/${attempt}`, [trajectory, record]);
      await ledger.finish(claim, attemptResult({ record, trajectory }, payload));
    }
  };
  const get = (path: string, headers: Record<string, string> = { authorization: "Bearer read" }) =>
    fetch(`${service.url}/view/${path}`, { headers, redirect: "manual" });
  return { ...service, set_id, finish, get, text: async (path: string) => (await get(path)).text() };
}

test("a set's pages say of ledger and blobs what a run's pages say of its folder", async (t) => {
  const { set_id, finish, text } = await viewedSet(t);
  await finish(5);
  assert.match(await text(""), new RegExp(`<a class="" href="${set_id}/">first</a>`));
  const run = await text(`${set_id}/`);
  assert.match(run, /1 queued/);
  assert.match(run, /mean reward .*5 of 5 rollouts measured/s);
  assert.match(run, /not trained: undelivered/);
  assert.match(run, /arm=b group_key=g\/1/);
  assert.match(run, /<a class="" href="..\/">Sets<\/a>/);
  const rollout = await text(`${set_id}/rollout?id=ses3&reward=0`);
  assert.match(rollout, /2 of 3 required tests failed: test_above, test_edge/);
  assert.match(rollout, /href="rollout\?id=ses2&amp;reward=0"/);
  assert.match(await text(`${set_id}/tokens?id=ses3&turn=2`), /not trained: \d+ undelivered/);
  assert.match(await text(`${set_id}/group?task=t&group=${set_id}-0`), /parts from sample 0/);
  assert.match(await text(`${set_id}/tasks`), /look mixed/);
  const hash = /picture\?id=ses3&amp;hash=(\w+)/.exec(rollout)?.[1] ?? "";
  assert.ok((await text(`${set_id}/picture?id=ses3&hash=${hash}`)).includes("PNG"));
});

test("tokens without reasons, from an earlier version, count as not trained", async (t) => {
  const { ledger, set_id, finish } = await viewedSet(t);
  await finish(1);
  const [result] = await ledger.results(set_id, null, 1);
  const row = { ...(result?.row ?? assert.fail()), sampled_tokens: 10, trainable_tokens: 7, figures: null };
  assert.deepEqual(toEntry(row, SetSpec.parse({})).excluded, { reason_not_recorded: 3 });
});

test("pages need a token with the role read, and its key opens pages and no other route", async (t) => {
  const { url, set_id, finish, get } = await viewedSet(t);
  await finish(1);
  for (const path of ["", `${set_id}/`, `${set_id}/rollout?id=ses0`, `${set_id}/events`]) {
    const refused = await get(path, {});
    assert.equal(refused.status, 401, path);
    assert.match(refused.headers.get("content-security-policy") ?? "", /^default-src 'none'/);
    assert.equal((await get(path, { authorization: "Bearer submit" })).status, 403, path);
  }
  const signIn = (token: string) =>
    fetch(`${url}/view/sign-in`, { method: "POST", body: new URLSearchParams({ token }), redirect: "manual" });
  assert.equal((await signIn("other")).status, 401);
  const opened = await signIn("read");
  const cookie = opened.headers.get("set-cookie")?.split(";")[0] ?? "";
  assert.deepEqual([opened.status, opened.headers.get("location")], [303, "/view/"]);
  assert.match(opened.headers.get("set-cookie") ?? "", /Path=\/view; HttpOnly; SameSite=Lax/);
  assert.ok(!cookie.includes("read"), "the cookie does not say the token");
  assert.equal((await get(`${set_id}/`, { cookie })).status, 200);
  const key = cookie.split("=")[1] ?? "";
  assert.equal((await fetch(`${url}/sets`, { headers: { cookie } })).status, 401);
  assert.equal((await fetch(`${url}/sets`, { headers: { authorization: `Bearer ${key}` } })).status, 401);
});

test("a token sees the pages of its namespace alone, and a set of another one is not there", async (t) => {
  const { set_id, finish, get } = await viewedSet(t, "team-a");
  await finish(1);
  const as = async (token: string, path: string) => (await get(path, { authorization: `Bearer ${token}` })).status;
  assert.deepEqual([await as("team-a", `${set_id}/`), await as("team-b", `${set_id}/`)], [200, 404]);
  assert.ok((await (await get("", { authorization: "Bearer team-a" })).text()).includes(set_id));
  assert.ok(!(await (await get("", { authorization: "Bearer team-b" })).text()).includes(set_id));
});

test("a blob that is gone or another one is an error page, and the set's other pages stay", async (t) => {
  const { set_id, finish, get, blobs, ledger } = await viewedSet(t);
  await finish(2);
  const [first] = await ledger.results(set_id, null, 1);
  await blobs.removeBelow(`${set_id}/${first?.row.rollout_id}`);
  const broken = await get(`${set_id}/rollout?id=${first?.row.session_id}`);
  assert.deepEqual([broken.status, (await broken.text()).includes("store error")], [503, true]);
  assert.equal((await get(`${set_id}/`)).status, 200);
});

test("a page of a set gets results as they come", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "chromium"))) return;
  const { url, set_id, finish } = await viewedSet(t);
  await finish(1);
  const browser = await openBrowser();
  t.after(() => browser.close());
  const page = await browser.newPage();
  const said: string[] = [];
  page.on("console", (message) => void said.push(message.text()));
  await page.goto(`${url}/view/`);
  said.length = 0;
  await page.fill('input[name="token"]', "read");
  await page.keyboard.press("Enter");
  await page.getByText("first").click();
  await page.waitForURL(`${url}/view/${set_id}/`);
  await finish(2);
  await page.locator(".live", { hasText: "3 rollouts" }).waitFor();
  await page.goto(`${url}/view/${set_id}/rollout?id=ses1`);
  assert.match((await page.locator(".why").textContent()) ?? "", /2 of 3 required/);
  assert.deepEqual(said, []);
});

test("two sets stand side by side for who sees both, however the address is written", async (t) => {
  const { set_id, finish, get, text, ledger } = await viewedSet(t, "team-a");
  await finish(6);
  const { set_id: other } = await ledger.putSet("second", SetSpec.parse({}), "team-b");
  assert.match(await text(`${set_id}/compare`), new RegExp(`href="compare\\?set=${other}">second<`));
  assert.match(await text(`${set_id}/compare?set=${other}`), /over 0 tasks that both measured.*not in it/s);
  for (const path of ["compare", "%63ompare", "%2563ompare", "//compare", "./compare"]) {
    const answer = await get(`${other}/${path}?set=${set_id}`, { authorization: "Bearer team-b" });
    assert.equal(answer.status, 404, path);
  }
  const chosen = await (await get(`${other}/compare`, { authorization: "Bearer team-b" })).text();
  assert.ok(!chosen.includes(set_id));
});
