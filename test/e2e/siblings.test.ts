/**
 * One hostile sandbox beside four that work, each process by itself. Memory and log are asserted, and that every sibling
 * is answered. How long siblings wait is told: `node test/fakes/load/table.ts` measures it for all attacks.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { Siege } from "../fakes/load/siege.ts";

/** A quarter of a gigabyte of bodies on their way in, as much of what sessions brought, and V8's room to breathe. */
const mostMemory = 1024 * 1024 * 1024;
/** Refusals and a few calls; the attacks send gigabytes. */
const mostLogged = 64 * 1024 * 1024;

const attacks = ["unfinished bodies", "refused calls of 40 MB", "pipelined calls"];

test("a sandbox that floods the proxy costs neither its memory nor its disk, and its siblings are answered", {
  timeout: 600_000,
}, async (t) => {
  await using siege = await Siege.start();
  for (const name of attacks) {
    const { alone, beside, peakRss, logged } = await siege.measure(name, { rounds: 1, calls: 80 });
    t.diagnostic(`${name}: p99 ${alone.toFixed(0)} ms alone, ${beside.toFixed(0)} ms beside it, ${Math.round(peakRss / 1e6)} MB at most`);
    assert.ok(Number.isFinite(beside), `${name}: no sibling was answered`);
    assert.ok(peakRss < mostMemory, `${name}: ${peakRss} bytes of memory`);
    assert.ok(logged < mostLogged, `${name}: ${logged} bytes of log`);
  }
});
