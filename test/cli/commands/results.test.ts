/** What `alidade results` and `alidade status` say of a service. */
import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { main } from "../../../cli/commands/index.ts";
import { inTerminal } from "../../../cli/commands/terminal.ts";
import { type Claim, type Ledger, SetSpec } from "../../../service/ledger/index.ts";
import { scratchFolder } from "../../fakes/machine/scratch-folder.ts";
import { until } from "../../fakes/machine/until.ts";
import { cli, terminalSaying } from "../../fakes/processes/cli.ts";
import { serviceAt, serviceGroups } from "../../fakes/proxies/service-at.ts";
import { attemptResult } from "../../fakes/records/attempt-result.ts";

const scratch = scratchFolder("results");
let folders = 0;

/** A service with a set of three groups of one, found by `out`. */
async function setAt(t: TestContext) {
  const out = join(scratch, String(folders++));
  await mkdir(join(out, "service"), { recursive: true });
  const start = async (more: { path?: string } = {}) => {
    const service = await serviceAt(t, more);
    await writeFile(join(out, "service", "service.json"), JSON.stringify({ url: service.url, token: "all" }));
    return service;
  };
  const service = await start();
  const set = (await service.call("PUT", "/sets/first", { samples: 1 })).body.set_id as string;
  await service.call("POST", `/sets/${set}/groups`, serviceGroups("g", "h", "i\u001b[2J\nj"));
  return { out, set, service, start };
}

async function finish(ledger: Ledger, lease: Awaited<ReturnType<Ledger["join"]>>, more: Parameters<typeof attemptResult>[0] = {}) {
  for (const claim of (await ledger.claim(lease, 1)) as Claim[]) await ledger.finish(claim, attemptResult(more));
}

const policies = [{ version: "v1", step: 1 }];
const times = { init: 1_000, done: 13_340 };
const died = { state: "failed", reward: null, mask_reason: "sandbox_died", error: { code: "sandbox_died", message: "it died" } } as const;

/** Until `stop`, or its own end. */
function follow(args: string[]) {
  const stop = new AbortController();
  const terminal = terminalSaying({ stop: stop.signal });
  return {
    stdout: terminal.stdout,
    stderr: terminal.stderr,
    stop: () => stop.abort(new Error("stopped")),
    ended: inTerminal(terminal, () => main(["results", "--follow", ...args])),
    terminal,
  };
}

test("results are printed one a line with all that is known, from a cursor on, and a key does not act on the terminal", async (t) => {
  const { out, service, set } = await setAt(t);
  const { ledger, lease } = service;
  await finish(ledger, lease, { policies, times });
  await finish(ledger, lease, died);
  await finish(ledger, lease, { reward: 0.25, mask_reason: "cut" });
  const { code, stdout } = await cli(["results", "-o", out]);
  const lines = stdout.trimEnd().split("\n");
  assert.deepEqual([code, lines.length], [0, 4], stdout);
  assert.match(lines[1] ?? "", /^g\/0 +1 +12\.3 +completed +v1$/);
  assert.match(lines[2] ?? "", /^h\/0 +– +– +failed \(sandbox_died\)$/);
  assert.match(lines[3] ?? "", /^i\\x1b\[2J\\nj\/0 +0\.25 +– +completed \(cut\)$/);

  const [{ cursor, row } = { cursor: "", row: null }] = await ledger.results(set, null, 1);
  const first = (await cli(["results", "-o", out, "--set", "first", "--json"])).stdout.split("\n")[0] ?? "";
  assert.deepEqual(JSON.parse(first), { cursor, result: row });
  assert.equal((await cli(["results", "-o", out, "--after", cursor])).stdout.trimEnd().split("\n").length, 3);
  assert.match((await cli(["results", "-o", out, "--after", "x"])).stderr, /answers 400: .*is not one of ours/);
  await ledger.putSet("second", SetSpec.parse({}));
  const unnamed = await cli(["results", "-o", out]);
  assert.deepEqual([unnamed.code, /--set is not given: name one by --set; there are: first, second/.test(unnamed.stderr)], [2, true]);
  assert.match((await cli(["results", "-o", out, "--set", "third"])).stderr, /--set is third, which is no set: name one/);
  await ledger.putSet("second", SetSpec.parse({}), "team");
  assert.match(
    (await cli(["results", "-o", out, "--set", "second"])).stderr,
    /which is a set of several namespaces: .*first, second, team\/second/,
  );
  assert.equal((await cli(["results", "-o", out, "--set", "team/second"])).code, 0);
  assert.match((await cli(["status", "-o", out])).stdout, /^team\/second /m);
  assert.match((await cli(["results", "-o", join(out, "none")])).stderr, /there is no .*service\.json: name the folder/);
  const { set_id: ahead } = await ledger.putSet("ahead", SetSpec.parse({ max_version_lag: 1, groups_per_step: 2, samples: 3 }));
  await service.call("POST", `/sets/${ahead}/groups`, serviceGroups("g"));
  const { set_id: parking } = await ledger.putSet("parking", SetSpec.parse({ samples: 1, straggler_cut: { seconds: 1, rest: "park" } }));
  assert.doesNotMatch((await cli(["status", "-o", out])).stdout, /parked rollouts/);
  const isCut = async (count: number) => {
    await ledger.cutStragglers();
    return (await ledger.set(parking)).groups.whole === count;
  };
  for (const key of ["one", "two"]) {
    await service.call("POST", `/sets/${parking}/groups`, serviceGroups(key));
    const [claim] = await ledger.claim(lease, 9);
    await until(() => isCut(key === "one" ? 1 : 2));
    if (key === "one") await ledger.letGo(claim ?? assert.fail(), "nothing_sampled");
  }
  const status = (await cli(["status", "-o", out])).stdout;
  assert.match(status, /^first +0 +0 +0 +2 +1 +0 +3 +3/m);
  assert.match(status, /^ahead +3 +0/m);
  assert.match(
    status,
    /^set parking: of its parked rollouts 1 wait for a later group of their task, 0 went on in one, 1 dropped \(nothing_sampled\)$/m,
  );
  assert.match(status, /^set ahead: 1 groups are held: the weights have no name with a step \(PUT \/control\/policy\)$/m);
});

test("--follow prints results as they come, each once, while the service is started again, and ends with the set", async (t) => {
  const { out, service, set, start } = await setAt(t);
  const following = follow(["-o", out]);
  await finish(service.ledger, service.lease);
  await until(() => /^g\/0 /m.test(following.stdout.text));
  await service.close();
  await until(() => /no service answers at .*; waiting for it/.test(following.stderr.text));
  const second = await start({ path: service.path });
  await finish(second.ledger, second.lease);
  await until(() => /^h\/0 /m.test(following.stdout.text));
  await second.ledger.drain(set);
  await finish(second.ledger, second.lease);
  await following.ended;
  assert.deepEqual(
    following.stdout.text.split("\n").flatMap((line) => /^(\w)\S*\/0 /.exec(line)?.[1] ?? []),
    ["g", "h", "i"],
  );
  assert.equal(following.terminal.exitCode, 0);
});

test("status prints figures by policy step, why some are unknown, and pass ratios by data source", async (t) => {
  const { out, service } = await setAt(t);
  const counted = {
    row_tokens: 3,
    tree_tokens: 2,
    prompt_tokens: 0,
    cached_tokens: 0,
    excluded: {},
    causes: {},
    engine_spans: [{ engine: "e", step: 7, times: [5_000, 300, 100, 600] }],
  };
  const figures = { data_source: "math\u001b[2J", is_cut: false, edges: {}, ...counted };
  await finish(service.ledger, service.lease, { newest_step: 7, figures });
  const { code, stdout } = await cli(["status", "-o", out, "--figures"]);
  assert.equal(code, 0, stdout);
  assert.match(stdout, /figures of the set first\nstep +results +pass +no variance .*\n─.*\n7 +1 +1 +– +0 +0 +0 +– +– +1\.5 +– +0\.9\n/);
  assert.match(stdout, /cache_hit_ratio is unknown: no engine tells/);
  assert.match(stdout, /\n7 +math\\x1b\[2J +1 +1$/m);
  const { figures: json } = JSON.parse((await cli(["status", "-o", out, "--figures", "1", "--json"])).stdout);
  assert.equal(json[0].steps[0].figures.row_inflation.value, 1.5);
  assert.match((await cli(["status", "-o", out, "--figures", "0"])).stderr, /from 1 to 1000/);
});

test("a follower that is stopped says the cursor to go on from", async (t) => {
  const { out, service, set } = await setAt(t);
  const following = follow(["-o", out, "--json"]);
  await finish(service.ledger, service.lease);
  await until(() => following.stdout.text.includes("\n"));
  following.stop();
  await following.ended;
  const [last] = await service.ledger.results(set, null, 9);
  assert.ok(following.stderr.text.includes(`the same command with --after ${last?.cursor} goes on from here`), following.stderr.text);
  assert.equal(following.terminal.exitCode, 0);
});
