/**
 * The numbers of each screen are those of the command line, over 200 random sessions in one run. No browser: pages as the server makes
 * them.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { untrainedReasons } from "../../../base/schema/reasons/untrained.ts";
import type { Trajectory } from "../../../base/schema/trajectory.ts";
import type { Statistics } from "../../../base/statistics/statistics.ts";
import type { FidelitySummary } from "../../../view/fidelity/summary.ts";
import { scratchFolder } from "../../fakes/machine/scratch-folder.ts";
import { cli, jsonOf } from "../../fakes/processes/cli.ts";
import { writeGoldenRun } from "../../fakes/records/golden-run.ts";
import { serveView } from "../../fakes/view/served-view.ts";

const sessions = 200;
const folder = join(scratchFolder("golden-numbers"), "run");

type StatsRow = Statistics & { by: string; key: string | null };
let view: Awaited<ReturnType<typeof serveView>>;
let statistics: StatsRow[];
let fidelity: FidelitySummary;
/** As `show --json` prints them, by session. */
const shown = new Map<string, Trajectory>();

before(async () => {
  await writeGoldenRun(folder, sessions);
  view = await serveView(folder);
  ({ statistics } = jsonOf<{ statistics: StatsRow[] }>(await cli(["stats", "--run", folder, "--json"])));
  fidelity = jsonOf<FidelitySummary>(await cli(["fidelity", "--run", folder, "--json"]));
  for (const { id } of view.reader.rollouts) shown.set(id, jsonOf<Trajectory>(await cli(["show", id, "--run", folder, "--json"])));
});
after(() => view[Symbol.asyncDispose]());

const toNumber = (text = ""): number | null => (text === "–" ? null : Number(text.replaceAll(",", "")));
const rounded = (value: number | null): number | null => (value === null ? null : Number(value.toFixed(3)));
const spaced = (name: string): string => name.replaceAll("_", " ");
const numbersIn = (page: string, pattern: RegExp): (number | null)[] =>
  (pattern.exec(page) ?? assert.fail(`${pattern}`)).slice(1).map(toNumber);
/** What a screen says of each name: name -> number. */
const countsIn = (page: string, pattern: RegExp): Record<string, number | null> =>
  Object.fromEntries([...page.matchAll(pattern)].map(([, name = "", count]) => [name, toNumber(count)]));
const namedBySpaces = (counts: Record<string, number>): Record<string, number> =>
  Object.fromEntries(Object.entries(counts).map(([name, count]) => [spaced(name), count]));
const card = (page: string, title: string): string =>
  new RegExp(`<h2>${title}.*?</section>`, "s").exec(page)?.[0] ?? assert.fail(`no card ${title}`);

test("the golden run has what the screens are to count", () => {
  assert.equal(view.reader.rollouts.length, sessions - sessions / 20);
  assert.ok(Object.keys(fidelity.tokens.excluded).length >= 5, JSON.stringify(fidelity.tokens.excluded));
  assert.ok(fidelity.causes.length >= 4 && fidelity.tokens.trained > 500, JSON.stringify(fidelity.causes.map(({ cause }) => cause)));
  assert.ok([...shown.values()].some(({ traces }) => traces.length > 3));
});

test("the run's screen has the numbers of `stats` and `fidelity`", async () => {
  const page = await view.text("");
  const all = statistics.find(({ by }) => by === "all") ?? assert.fail();
  const head =
    /class="big">([\d.]+)<small> mean reward .*? · ([\d,]+) of ([\d,]+) rollouts measured · ([\d,]+) tasks? · pass rate ([\d.]+)/;
  assert.deepEqual(numbersIn(page, head), [rounded(all.mean_reward), all.measured, all.rollouts, all.tasks, rounded(all.pass_rate)]);
  const steps =
    /\?step=(\w+)">\w+<\/a><\/td><td class="n">([\d.–]+)<\/td><td>[^<]*<\/td><td class="n">([\d.–]+)<\/td><td class="n">([\d,]+) of ([\d,]+)</g;
  const told = [...page.matchAll(steps)].map(([, step, ...numbers]) => [step === "none" ? null : `v${step}`, ...numbers.map(toNumber)]);
  const byPolicy = statistics.filter(({ by }) => by === "policy");
  assert.deepEqual(new Set(told.map((row) => JSON.stringify(row))).size, byPolicy.length);
  for (const { key, mean_reward, pass_rate, measured, rollouts } of byPolicy) {
    const row = told.find(([step]) => step === key?.split(",")[0]) ?? assert.fail(`no step of policy ${key}: ${JSON.stringify(told)}`);
    assert.deepEqual(row.slice(1), [rounded(mean_reward), rounded(pass_rate), measured, rollouts], key ?? "");
  }
  const tokens = /Tokens: ([\d,]+) sampled, ([\d,]+) trained/;
  assert.deepEqual(numbersIn(page, tokens), [fidelity.tokens.sampled, fidelity.tokens.trained]);
  assert.deepEqual(countsIn(page, />not trained: ([^<]+)<\/a><\/td><td class="n">([\d,]+)</g), namedBySpaces(fidelity.tokens.excluded));
  const parting = card(page, "Why contexts part");
  const causes = Object.fromEntries(fidelity.causes.map(({ cause, calls }) => [spaced(cause), calls]));
  assert.deepEqual(countsIn(parting, />([^<]+)<\/a><\/td><td class="n">([\d,]+)</g), causes);
  const [, calls, edges = ""] = /class="quiet">([\d,]+) calls: ([^<]*)</.exec(parting) ?? [];
  assert.equal(toNumber(calls), fidelity.calls);
  assert.deepEqual(
    Object.fromEntries(edges.split(", ").map((edge) => [edge.slice(edge.indexOf(" ") + 1), toNumber(edge.split(" ")[0])])),
    namedBySpaces(fidelity.matches),
  );
});

test("a filter leaves the numbers of `stats` under the same filter", async () => {
  for (const [query, flags] of [
    ["task=task3", ["--task", "task3"]],
    ["reward=none", ["--reward", "none"]],
    ["label=split%3Dheld-out", ["--label", "split=held-out"]],
  ] as const) {
    const [all] = jsonOf<{ statistics: StatsRow[] }>(await cli(["stats", "--run", folder, "--json", ...flags])).statistics;
    const head = / · ([\d,]+) of ([\d,]+) rollouts measured · ([\d,]+) tasks?/;
    assert.deepEqual(numbersIn(await view.text(`?${query}`), head), [all?.measured, all?.rollouts, all?.tasks], query);
  }
});

test("each row of the list has the numbers of its session", async () => {
  const rows = new Map<string, (number | null)[]>();
  for (const page of [1, 2])
    for (const [, id = "", reward, ...counts] of (await view.text(`?page=${page}`)).matchAll(
      /<tr data-id="(\w+)">.*?class="pill \w+">([\w.]+)<.*?<td class="n">([^<]*)<\/td><td class="n">([^<]*)<\/td><td class="n">([^<]*)</g,
    ))
      rows.set(id, [reward === "null" ? null : Number(reward), ...counts.map(toNumber)]);
  assert.equal(rows.size, view.reader.rollouts.length);
  for (const [id, { reward, calls, fidelity: own }] of shown)
    assert.deepEqual(rows.get(id), [reward, calls.length, own.sampled_tokens, own.trainable_tokens], id);
});

test("tasks and groups have the numbers of `stats` by task, and of the sessions of each group", async () => {
  const page = await view.text("tasks");
  const means = countsIn(page, /<td><a class="" href="\.\/\?task=(\w+)">\w+<\/a><\/td><td>([\d.–]+)</g);
  const byTask = statistics.filter(({ by, key }) => by === "task" && key !== "unknown");
  assert.equal(byTask.length, 15);
  // Rollouts of a task weigh the same in both.
  for (const { key, mean_reward } of byTask) assert.equal(means[key ?? ""], rounded(mean_reward), key ?? "");
  const groups = Map.groupBy(view.reader.rollouts, ({ entry }) => JSON.stringify([entry.task_id, entry.group_id]));
  for (const [key, samples] of groups) {
    const [task, group] = JSON.parse(key) as (string | null)[];
    if (task == null || group == null) continue;
    const cards = [
      ...(await view.text(`group?task=${task}&group=${group}`)).matchAll(
        /href="rollout\?id=(\w+)[^"]*">sample \d+<.*?<p class="quiet">([\d,]+) turns? · ([\d,]+) tokens/gs,
      ),
    ];
    assert.equal(cards.length, samples.length, key);
    for (const [, id = "", ...counts] of cards) {
      const { calls, fidelity: own } = shown.get(id) ?? assert.fail(id);
      assert.deepEqual(counts.map(toNumber), [calls.length, own.sampled_tokens], id);
    }
  }
});

test("the rollout's screen has the numbers of `show --json`", async () => {
  for (const [id, { reward, calls, fidelity: own }] of shown) {
    const page = await view.text(`rollout?id=${id}`);
    assert.match(page, new RegExp(`<h1>[^<]* <span class="pill \\w+">${reward === null ? "null" : Number(reward.toFixed(3))}<`), id);
    assert.deepEqual(numbersIn(page, /<p class="quiet">([\d,]+) turns? ·/), [calls.length], id);
    const [, line = ""] = /<b>tokens<\/b> (.*?)<\/p>/.exec(page) ?? assert.fail(id);
    assert.deepEqual(numbersIn(line, /^([\d,]+) sampled · ([\d,]+) trained/), [own.sampled_tokens, own.trainable_tokens], id);
    assert.deepEqual(countsIn(line, /<abbr[^>]*>([^<]+) ([\d,]+)<\/abbr>/g), namedBySpaces(own.excluded), id);
  }
});

test("every sampled token of every session stands on the screen of tokens, and each that is not trained has its reason", async () => {
  let untrained = 0;
  let said = 0;
  for (const [id, { traces, fidelity: own }] of shown) {
    const states = new Map<string, string>();
    for (const { trace_id } of traces) {
      const page = await view.text(`tokens?id=${id}&trace=${trace_id}&from=0`);
      assert.deepEqual(numbersIn(page, /tokens · ([\d,]+) sampled · ([\d,]+) trained/), [own.sampled_tokens, own.trainable_tokens], id);
      assert.match(page, /the end: [\d,]+ tokens/, "the whole trace is in one window");
      const sampled = / · (trained|not trained: [\w ]+) · position (\d+) · turn \d+ · node (\w+)$/;
      for (const [, words = ""] of page.matchAll(/<i class="m-(?:trained|forced|not)[^"]*" title="([^"]*)"/g)) {
        const [, state = "", position, node] = sampled.exec(words) ?? assert.fail(words);
        states.set(`${node} ${position}`, state);
      }
      for (const [, count, reason] of page.matchAll(/class="untrained-words">not trained: ([\d,]+) ([\w ]+): /g)) {
        said += toNumber(count) ?? 0;
        assert.ok((toNumber(count) ?? 0) > 0);
        assert.ok(Object.hasOwn(untrainedReasons, (reason ?? "").replaceAll(" ", "_")), reason);
      }
    }
    const reasons = [...states.values()].filter((state) => state !== "trained").map((state) => state.slice("not trained: ".length));
    untrained += reasons.length;
    const counts = new Map([...Map.groupBy(reasons, (reason) => reason)].map(([reason, all]) => [reason, all.length]));
    // A token without an id is in no trace. The page counts it in a sentence.
    const outside = countsIn(
      (await view.text(`tokens?id=${id}`)).replaceAll(
        /class="untrained-words outside">not trained: ([\d,]+) ([\w ]+),/g,
        "<outside>$2</a>$1<",
      ),
      /<outside>([^<]+)<\/a>([\d,]+)</g,
    );
    for (const [reason, count] of Object.entries(outside)) counts.set(reason, (counts.get(reason) ?? 0) + (count ?? 0));
    for (const [reason, count] of counts) if (count === 0) counts.delete(reason);
    const sum = [...counts.values()].reduce((all, count) => all + count, 0);
    assert.deepEqual([states.size - reasons.length, states.size - reasons.length + sum], [own.trainable_tokens, own.sampled_tokens], id);
    assert.deepEqual(Object.fromEntries(counts), namedBySpaces(own.excluded), id);
  }
  assert.ok(untrained > 500 && said > 500, `${untrained} ${said}`);
});
