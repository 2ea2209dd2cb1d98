/** Real processes, for what is tested ends them. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { z } from "zod";
import { readJson } from "../../../../base/schema/read-json.ts";
import { scratchFolder } from "../../../fakes/machine/scratch-folder.ts";
import { until } from "../../../fakes/machine/until.ts";

const script = join(import.meta.dirname, "../../../fakes/processes/guarded-process.ts");
const scratch = scratchFolder("deaths");
let folders = 0;
const folder = () => join(scratch, `${folders++}`);

const Said = z.object({
  ends: z.record(z.string(), z.string()),
  notes: z.array(z.string()),
  aside: z.array(z.tuple([z.string(), z.string()])),
  blameless: z.array(z.string()),
  suspects: z.array(z.string()),
});

/** One life of a process at work in the folder. `said`: null where it died. */
async function life(place: string, what: string, calls: Record<string, number> = {}) {
  const child = spawn(process.execPath, ["--max-old-space-size=60", script, place, what], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, SECRET_KEY: "hunter2", NODE_OPTIONS: "", CALLS: JSON.stringify(calls) },
  });
  const [out, err, [code, signal]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
  return { code, signal, err, said: out === "" ? null : Said.parse(readJson(out)) };
}

const Crash = z.object({ name: z.string().nullable(), ended: z.boolean(), message: z.string(), stack: z.string() });

async function crashesIn(place: string): Promise<z.infer<typeof Crash>[]> {
  const lines = await readFile(join(place, "deaths", "crashes.jsonl"), "utf8");
  return lines
    .trim()
    .split("\n")
    .map((line) => Crash.parse(readJson(line)));
}

for (const [what, message] of [
  ["timer", "a timer threw"],
  ["stream", "a stream broke"],
  ["promise", "a promise was not awaited"],
] as const)
  test(`an exception of a ${what} that no step awaits ends its own work, and its stack is on record`, { timeout: 300_000 }, async () => {
    const place = folder();
    const { code, said, err } = await life(place, what);
    assert.equal(code, 0, err);
    assert.deepEqual(said?.ends, { culprit: `Error: ${message}`, a: "done", b: "done" });
    const [crash] = await crashesIn(place);
    assert.deepEqual([crash?.name, crash?.ended, crash?.message], ["culprit#1", false, message]);
    assert.match(crash?.stack ?? "", /guarded-process\.ts:\d+/);
    const next = await life(place, "nothing");
    assert.deepEqual([next.said?.notes, next.said?.aside, next.said?.suspects], [[], [], []], "no process has died");
  });

test("a work that throws at each turn ends once, and fills no disk", { timeout: 300_000 }, async () => {
  const place = folder();
  const { code, said } = await life(place, "often");
  assert.deepEqual([code, said?.ends.culprit, said?.notes.length], [0, "Error: throw 0", 1]);
  assert.equal((await crashesIn(place)).length, 10);
});

test("an exception in no work's name ends the process with its stack, and what ran is suspected", { timeout: 300_000 }, async () => {
  const place = folder();
  const { code, said, err } = await life(place, "nameless");
  assert.deepEqual([code, said], [1, null]);
  assert.match(err, /an exception that no step awaited ends the process.*\nError: another timer threw\n +at /);
  const next = await life(place, "nothing");
  assert.deepEqual([next.said?.suspects, next.said?.aside], [["culprit", "a", "b"], []]);
  assert.match(
    next.said?.notes[0] ?? "",
    /^the process before ended by a crash while 3 rollouts ran: another timer threw; its 3 suspects run one at a time now$/,
  );
  const orderly = await life(place, "nothing");
  assert.deepEqual([orderly.said?.suspects, orderly.said?.notes], [["culprit", "a", "b"], []], "suspects stay suspects");
});

test("a process that runs out of memory leaves a mark, without its variables", { timeout: 300_000 }, async () => {
  const place = folder();
  const { signal, said } = await life(place, "memory-alone");
  assert.deepEqual([signal, said], ["SIGABRT", null]);
  // Another process writes the mark, from what the dead one left in a pipe.
  await until(() => existsSync(join(place, "deaths", "fatal.mark")));
  for (const name of ["fatal.mark", "running.json"])
    assert.doesNotMatch(await readFile(join(place, "deaths", name), "utf8"), /hunter2|SECRET_KEY/);
  assert.deepEqual((await readdir(join(place, "deaths"))).sort(), ["fatal.mark", "fatal.pipe", "running.json"]);
  const next = await life(place, "nothing");
  assert.deepEqual(
    next.said?.aside.map(([name]) => name),
    ["culprit"],
  );
  assert.match(next.said?.aside[0]?.[1] ?? "", /^the process ended while it alone ran \(.*out of memory/);
  assert.deepEqual((await readdir(join(place, "deaths"))).includes("fatal.mark"), false, "it counts once");
});

test("a work that ends the process is known by its name", { timeout: 300_000 }, async () => {
  const place = folder();
  assert.equal((await life(place, "exit")).code, 3);
  const { said } = await life(place, "nothing");
  assert.deepEqual(said?.suspects, []);
  assert.deepEqual(said?.aside, [["culprit", "the process ended by an exception in it (process.exit(3))"]]);
});

test("a process that is killed from outside blames nothing that ran, ten times over", { timeout: 300_000 }, async () => {
  const place = folder();
  for (let kills = 0; kills < 3; kills++) assert.equal((await life(place, "kill")).signal, "SIGKILL");
  const { said } = await life(place, "nothing");
  assert.deepEqual([said?.suspects, said?.aside], [[], []]);
  assert.match(said?.notes[0] ?? "", /^the process before ended from outside while 3 rollouts ran and 1 waited/);
});

test("ten kills set aside an attempt without progress, but none that waited or finished calls each time", {
  timeout: 300_000,
}, async () => {
  const place = folder();
  for (let kills = 0; kills < 10; kills++) assert.equal((await life(place, "kill", { "a#1": kills, "b#1": 3 })).signal, "SIGKILL");
  const { said } = await life(place, "nothing", { "a#1": 10, "b#1": 3 });
  assert.deepEqual(said?.aside, [["culprit", "the process was killed 10 times while it ran"]]);
  assert.deepEqual(said?.blameless.slice(-2), ["waits#1", "a#1"]);
});
