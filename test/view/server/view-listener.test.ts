/** The view as a server: who may read it, what its pages say, and what they never do. */
import assert from "node:assert/strict";
import { appendFile, readFile, writeFile } from "node:fs/promises";
import { request } from "node:http";
import { join } from "node:path";
import { test } from "node:test";
import { untrainedReasons } from "../../../base/schema/reasons/untrained.ts";
import type { Statistics } from "../../../base/statistics/statistics.ts";
import type { FidelitySummary } from "../../../view/fidelity/summary.ts";
import { scratchFolder } from "../../fakes/machine/scratch-folder.ts";
import { cli, jsonOf } from "../../fakes/processes/cli.ts";
import { png, tokenizer, viewedRollout, writeViewedRun } from "../../fakes/records/viewed-run.ts";
import { serveView, viewKey } from "../../fakes/view/served-view.ts";

const scratch = scratchFolder("view");

test("each request needs the key, and the link's key becomes a cookie that stands in no address", async () => {
  const folder = join(scratch, "key");
  await writeViewedRun(folder);
  await using view = await serveView(folder);
  for (const path of ["", "tasks", "rollout?id=ses1", "tokens?id=ses1", "picture?id=ses3&hash=x", "events", "assets/page.js", "nope"]) {
    const answer = await fetch(`${view.url}/${path}`);
    assert.equal(answer.status, 401, path);
    assert.match(answer.headers.get("content-security-policy") ?? "", /^default-src 'none'; script-src 'self'/);
  }
  assert.equal((await fetch(`${view.url}/?key=other`, { redirect: "manual" })).status, 401);
  const opened = await fetch(`${view.url}/tasks?page=1&key=${viewKey}`, { redirect: "manual" });
  assert.deepEqual([opened.status, opened.headers.get("location")], [303, "/tasks?page=1"]);
  const cookie = opened.headers.get("set-cookie") ?? "";
  assert.match(cookie, /^alidade_view_\d+=.*HttpOnly.*SameSite=Lax/);
  assert.equal((await fetch(`${view.url}/tasks`, { headers: { cookie: cookie.split(";")[0] ?? "" } })).status, 200);
});

test("a name of a stranger that leads here is refused, also with the key", async () => {
  const folder = join(scratch, "host");
  await writeViewedRun(folder);
  await using view = await serveView(folder);
  const statusAt = (host: string) =>
    new Promise<number | undefined>((resolve, reject) => {
      const headers = { host, authorization: `Bearer ${viewKey}` };
      request(`${view.url}/`, { headers }, (answer) => resolve(answer.resume().statusCode))
        .on("error", reject)
        .end();
    });
  const { port } = new URL(view.url);
  assert.deepEqual(
    [await statusAt(`evil.example:${port}`), await statusAt("127.0.0.1:1"), await statusAt(`localhost:${port}`)],
    [400, 400, 200],
  );
});

test("the rollout's page says why, opens on the turn that failed, and leads to its neighbours of the filtered list", async () => {
  const folder = join(scratch, "rollout");
  await writeViewedRun(folder);
  await using view = await serveView(folder);
  const page = await view.text("rollout?id=ses3&reward=0");
  assert.match(page, /2 of 3 required tests failed: test_above, test_edge/);
  assert.match(page, /edit failed: the text occurs twice in clamp\.py/, "the turn that is shown is the one that failed");
  assert.match(page, /<a class="key-j" href="rollout\?id=ses5&amp;reward=0">/);
  assert.match(page, /<a class="key-k" href="rollout\?id=ses2&amp;reward=0">/);
  assert.match(page, /queue 0\.8 s.*init 4\.2 s.*run 36 s/s);
  const hash = /picture\?id=ses3&amp;hash=(\w+)/.exec(page)?.[1];
  const picture = await view.get(`picture?id=ses3&hash=${hash}`);
  assert.deepEqual([picture.headers.get("content-type"), picture.headers.get("x-content-type-options")], ["image/png", "nosniff"]);
  assert.deepEqual(Buffer.from(await picture.arrayBuffer()).toString("base64"), png.split(",")[1]);
  assert.match(await view.text("rollout?id=ses17"), /null.*grader timeout: The tests did not end within 900 seconds\./s);
});

test("every sampled token of a session stands on its page once, and every untrained one with its reason", async () => {
  const folder = join(scratch, "tokens");
  await writeViewedRun(folder);
  await using view = await serveView(folder);
  for (const { id } of view.reader.rollouts) {
    const trajectory = await view.reader.trajectory(id);
    const seen = new Map<string, string>();
    for (const { trace_id } of trajectory.traces) {
      const page = await view.text(`tokens?id=${id}&trace=${trace_id}&from=0`);
      for (const [, words = ""] of page.matchAll(/<i class="m-(?:trained|forced|not)[^"]*" title="([^"]*)"/g)) {
        const [, state = "", position, node] =
          /logprob \S+ · (trained|not trained: [\w ]+) · position (\d+) · turn \d+ · node (\w+)/.exec(words) ?? [];
        seen.set(`${node} ${position}`, state);
      }
    }
    const reasons = [...seen.values()]
      .filter((state) => state !== "trained")
      .map((state) => state.slice("not trained: ".length).replaceAll(" ", "_"));
    const { sampled_tokens, trainable_tokens, excluded } = trajectory.fidelity;
    assert.deepEqual([seen.size, seen.size - reasons.length], [sampled_tokens, trainable_tokens], id);
    assert.deepEqual(
      Object.fromEntries(
        Map.groupBy(reasons, (reason) => reason)
          .entries()
          .map(([reason, all]) => [reason, all.length]),
      ),
      excluded,
    );
    for (const reason of reasons) assert.ok(Object.hasOwn(untrainedReasons, reason), reason);
  }
  assert.match(await view.text("tokens?id=ses1&turn=2"), /upper.*bound/s, "texts come from the run's vocabulary");
});

test("a token without a text on record is shown as its id", async () => {
  const folder = join(scratch, "ids");
  await writeViewedRun(folder);
  await appendFile(join(folder, "vocabulary", `${tokenizer}.jsonl`), `{"id":2,"bytes":[226,130]}\n`);
  await using view = await serveView(folder);
  const page = await view.text("tokens?id=ses1&from=0");
  assert.match(page, /&lt;e2&gt;&lt;82&gt;/, "a part of a character is shown as its bytes");
  const { trajectory } = viewedRollout({
    at: 99,
    task_id: "t",
    group_id: "g",
    sample_index: 0,
    size: 1,
    reward: 1,
    turns: 2,
    words: 1,
    vocabulary: new Map(),
  });
  await appendFile(
    join(folder, "trajectories.jsonl"),
    `${JSON.stringify({ ...trajectory, calls: trajectory.calls.map((call) => ({ ...call, fingerprints: null })) })}\n`,
  );
  await using other = await serveView(folder);
  assert.match(await other.text("tokens?id=ses99"), /<u>\d+<\/u>/);
});

test("a group's page puts its samples side by side, with where each parts from the best one", async () => {
  const folder = join(scratch, "group");
  await writeViewedRun(folder);
  await using view = await serveView(folder);
  const page = await view.text("group?task=clamp&group=clamp-g0");
  assert.match(page, /sample 3.*parts from sample 0 at <a[^>]*turn=2[^>]*>turn 2<\/a>.*min\(x, high\).*max\(x, high\)/s);
  assert.match(await view.text("group?task=parse&group=parse-g0"), /no variance/);
  const tasks = await view.text("tasks");
  const order = [...tasks.matchAll(/href="\.\/\?task=(\w+)"/g)].map(([, task]) => task);
  assert.deepEqual(order, ["parse", "sort", "fetch", "clamp"], "no variance, then nulls, then mixed ones");
});

test("a page that listens is told of a rollout that ended, and one that comes back of what it missed", async () => {
  const folder = join(scratch, "events");
  await writeViewedRun(folder);
  await using view = await serveView(folder);
  const told = async (after: string | null, act: () => Promise<void>): Promise<{ id: string; ids: string[] }> => {
    const answer = await view.get("events", after === null ? {} : { "last-event-id": after });
    const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
    let said = (await reader.read()).value ?? "";
    await act();
    for (;;) {
      const found = /id: (\d+)\nevent: rollouts\ndata: (.*)\n/.exec(said);
      if (found === null) said += (await reader.read()).value ?? "";
      else {
        await reader.cancel();
        return { id: found[1] ?? "", ids: (JSON.parse(found[2] ?? "") as { rows: { id: string }[] }).rows.map(({ id }) => id) };
      }
    }
  };
  const add = async (at: number, retried: { rollout_id?: string; attempt?: number } = {}) => {
    const { trajectory, record } = viewedRollout({
      at,
      task_id: "late",
      group_id: "late-g0",
      sample_index: 0,
      size: 2,
      reward: 1,
      turns: 2,
      words: 1,
      vocabulary: new Map(),
    });
    await appendFile(join(folder, "trajectories.jsonl"), `${JSON.stringify({ ...trajectory, ...retried })}\n`);
    await appendFile(join(folder, "rollouts.jsonl"), `${JSON.stringify({ ...record, ...retried })}\n`);
  };
  const first = await told(null, () => add(50));
  assert.ok(first.ids.includes("ses50"), first.ids.join());
  const second = await told(first.id, () => add(51));
  assert.ok(second.ids.includes("ses51") && !second.ids.includes("ses50"), second.ids.join());
  const again = await told(first.id, async () => undefined);
  assert.ok(again.ids.includes("ses51"), "it goes on behind its last event");
  await told(second.id, () => add(52, { rollout_id: "roll51", attempt: 2 }));
  const late = await told(first.id, async () => undefined);
  assert.ok(late.ids.includes("ses52") && !late.ids.includes("ses51"), "an earlier attempt has no row");
});

test("a link of another site makes no sandbox", async () => {
  const folder = join(scratch, "work");
  await writeViewedRun(folder);
  await using view = await serveView(folder, "The changes cannot be shown here.");
  assert.match(await view.text("work?id=ses1"), /The changes cannot be shown here/);
  assert.equal((await view.get("work?id=ses1", { "sec-fetch-site": "cross-site" })).status, 400);
});

test("the run's page has the numbers of stats and of fidelity, also of a part of it", async () => {
  const folder = join(scratch, "numbers");
  await writeViewedRun(folder);
  await using view = await serveView(folder);
  for (const [query, flags] of [
    ["", []],
    ["task=clamp", ["--task", "clamp"]],
    ["reward=0", ["--reward", "0"]],
  ] as const) {
    const { statistics } = jsonOf<{ statistics: Statistics[] }>(await cli(["stats", "--run", folder, "--json", ...flags]));
    const [all] = statistics;
    const page = await view.text(`?${query}`);
    const said = /class="big">([\d.]+)<small> mean reward .*? · (\d+) of (\d+) rollouts measured · (\d+) tasks?/
      .exec(page)
      ?.slice(1)
      .map(Number);
    assert.deepEqual(said, [Number(all?.mean_reward?.toFixed(3)), all?.measured, all?.rollouts, all?.tasks], query);
  }
  const { tokens } = jsonOf<FidelitySummary>(await cli(["fidelity", "--run", folder, "--json"]));
  const page = await view.text("");
  assert.ok(page.includes(`Tokens: ${tokens.sampled} sampled, ${tokens.trained} trained`));
  for (const [reason, count] of Object.entries(tokens.excluded))
    assert.match(page, new RegExp(`not trained: ${reason.replaceAll("_", " ")}</a></td><td class="n">${count}<`));
});

test("each bar of the lengths leads to the rollouts that it counts, and an empty bar leads nowhere", async () => {
  const folder = join(scratch, "bars");
  await writeViewedRun(folder);
  await using view = await serveView(folder);
  const page = await view.text("");
  for (const name of ["turns", "tokens"]) {
    const bars = [
      ...page.matchAll(new RegExp(`href="\\./\\?${name}=([\\d.]+)">[\\d,]+(?: to [\\d,]+)?</a></td><td class="n">(\\d+)<`, "g")),
    ];
    const counted = bars.reduce((sum, [, , count]) => sum + Number(count), 0);
    assert.equal(counted, view.reader.rollouts.length, name);
    for (const [, text = "", count] of bars) {
      const shown = await view.text(`?${name}=${text}`);
      assert.equal(shown.match(/<tr data-id=/g)?.length, Number(count), `${name}=${text}`);
    }
  }
  assert.doesNotMatch(page, /\?(?:turns|tokens)=[^<]*<\/a><\/td><td class="n">0</, "an empty bar is no link");
  assert.doesNotMatch(page, /<h2>Turns of a rollout<\/h2><table class="bars"><tr><td>[^/]*<\/span><\/td><td class="n">0</);
  assert.equal((await view.text("?turns=>=4")).match(/<tr data-id=/g)?.length, view.reader.rollouts.length, "earlier addresses stay valid");
});

test("each reason for no reward leads to the rollouts that it counts", async () => {
  const folder = join(scratch, "nulls");
  await writeViewedRun(folder);
  await using view = await serveView(folder);
  const page = await view.text("");
  const [, card = ""] = /<h2>Without a reward, by reason<\/h2>(.*?)<\/table>/s.exec(page) ?? [];
  const bars = [...card.matchAll(/href="\.\/\?(reward=[^"]+)">[^<]*<\/a><\/td><td class="n">(\d+)</g)];
  assert.ok(bars.length > 0, card);
  for (const [, query = "", count] of bars)
    assert.equal((await view.text(`?${query}`)).match(/<tr data-id=/g)?.length, Number(count), query);
});

test("a step of the run says how many of its rollouts were measured", async () => {
  const folder = join(scratch, "measured");
  await writeViewedRun(folder);
  await using view = await serveView(folder);
  assert.match(await view.text(""), /\?step=3">3<\/a>.*?<td class="n">3 of 4<\/td><\/tr>/);
});

test("a filter that is not valid shows the form as it was filled in, with the sentence", async () => {
  const folder = join(scratch, "filter");
  await writeViewedRun(folder);
  await using view = await serveView(folder);
  for (const path of ["?reward=abc&task=cl*", "rollout?id=ses1&reward=abc&task=cl*", "tasks?reward=abc&task=cl*"]) {
    const answer = await view.get(path);
    const page = await answer.text();
    assert.equal(answer.status, 400, path);
    assert.match(page, /name="reward" value="abc"/);
    assert.match(page, /name="task" value="cl\*"/);
    assert.match(page, /role="alert">reward: give a number, &gt;= and a number, a range such as 4\.\.7, or none, and not &quot;abc&quot;</);
    assert.match(page, /class="key-g" href="tasks"/);
  }
  assert.match(await view.text('?turns="><script>'), /value="&quot;&gt;&lt;script&gt;"/);
});

test("who comes from a group walks its samples in their order", async () => {
  const folder = join(scratch, "walk");
  await writeViewedRun(folder, [{ task_id: "clamp", rewards: [1, 0, 0] }]);
  for (const name of ["trajectories.jsonl", "rollouts.jsonl"]) {
    const lines = (await readFile(join(folder, name), "utf8")).trimEnd().split("\n");
    await writeFile(join(folder, name), `${lines.toReversed().join("\n")}\n`);
  }
  await using view = await serveView(folder);
  const group = await view.text("group?task=clamp&group=clamp-g0");
  const links = [...group.matchAll(/href="rollout\?id=(\w+)&amp;([^"]*)">sample/g)];
  assert.deepEqual(new Set(links.map(([, , query]) => query)), new Set(["task=clamp&amp;group=clamp-g0"]));
  const order = links.map(([, id]) => id);
  assert.deepEqual(order, ["ses0", "ses1", "ses2"]);
  for (const [at, id] of order.entries()) {
    const page = await view.text(`rollout?id=${id}&task=clamp&group=clamp-g0`);
    assert.match(page, new RegExp(`>${at + 1} of 3<`), id);
    const chips = [
      ...page.matchAll(/<a class="sample[^"]*" href="rollout\?id=(\w+)&amp;task=clamp&amp;group=clamp-g0"><span title="sample \d/g),
    ];
    assert.deepEqual(
      chips.map(([, chip]) => chip),
      order,
    );
    const next = order[at + 1];
    if (next !== undefined) assert.match(page, new RegExp(`class="key-j" href="rollout\\?id=${next}&amp;task=clamp`));
  }
});

test("a group's card names both sides of the parting, what came next and how it ended", async () => {
  const folder = join(scratch, "cards");
  await writeViewedRun(folder);
  await using view = await serveView(folder);
  const page = await view.text("group?task=clamp&group=clamp-g0");
  const [reference = "", other = ""] = page.match(/<section.*?<\/section>/gs) ?? [];
  assert.match(
    reference,
    /the others are compared with this one.*<p class="deeds">it did: bash ls → edit clamp\.py → .*1 more turn; ended: exited<\/p>/s,
  );
  assert.match(other, /parts from sample 0 at .*: they [a-z ]+ with other arguments/s);
  assert.match(other, /<del><b>sample 0<\/b> \S.*<ins><b>sample 1<\/b> \S/s);
  assert.match(other, /<p class="deeds">then: .+; ended: exited<\/p>/);
});

test("samples that did the same and earned another reward are marked in words", async () => {
  const folder = join(scratch, "flaky");
  await writeViewedRun(folder, [{ task_id: "clamp", rewards: [1, 1] }]);
  for (const name of ["trajectories.jsonl", "rollouts.jsonl"]) {
    const [first = ""] = (await readFile(join(folder, name), "utf8")).split("\n");
    const same = first
      .replaceAll(/"ses0"/g, '"ses1"')
      .replaceAll(/"roll0"/g, '"roll1"')
      .replaceAll(/"sample_index":0/g, '"sample_index":1')
      .replaceAll(/"reward":1\b/g, '"reward":0');
    await writeFile(join(folder, name), `${first}\n${same}\n`);
  }
  await using view = await serveView(folder);
  assert.match(await view.text("group?task=clamp&group=clamp-g0"), /<b>same calls, other reward<\/b>: look at how both were graded/);
});

test("two runs stand side by side by task, and each number leads to its rollouts", async () => {
  const [one, other] = [join(scratch, "compared"), join(scratch, "compared-other")];
  await writeViewedRun(one);
  await writeViewedRun(other, [
    { task_id: "clamp", rewards: [1, 1, 1, 1] },
    { task_id: "parse", rewards: [0, 1] },
    { task_id: "new", rewards: [1] },
  ]);
  await using view = await serveView(one, null, other);
  assert.match(await view.text("?reward=0"), /href="compare\?reward=0">side by side/);
  const page = await view.text("compare");
  assert.match(
    page,
    /\+0\.563<small> \(.* to .*\) paired difference of the mean reward, over 2 tasks that both measured: 0\.188 and 0\.75/,
  );
  assert.match(page, /clamp<\/td>.*\?task=clamp">0\.375<\/a> <span class="quiet">8 of 8.*other\/\?task=clamp">1<\/a>.*\+0\.625/);
  assert.match(page, /new<\/td><td class="n"><span class="quiet">not in it/);
  const there = await view.text("other/?task=clamp");
  assert.match(there, /4 of 4 rollouts measured/);
  assert.match(there, /<a class="" href="..\/">compared<\/a>/);
  assert.match(await view.text("compare?label=split%3Dheld-out"), /Both by the filters label=split%3Dheld-out/);
  assert.equal((await fetch(`${view.url}/other/`)).status, 401);
  await using alone = await serveView(one);
  assert.equal((await alone.get("compare")).status, 404);
});
