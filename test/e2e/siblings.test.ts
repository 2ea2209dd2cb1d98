/**
 * One hostile sandbox beside four that work, each process by itself, for each attack. A sibling's call takes 22 ms of
 * which 20 are the engine's, so it takes twice as long only where the thread that serves all is kept from it. That is
 * asserted by the thread's own CPU, for a machine that runs other tests too makes a 99th percentile of its own. What
 * siblings wait is told: `node test/fakes/load/table.ts` measures it.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Round, Siege } from "../fakes/load/siege.ts";

/** A quarter of a gigabyte of bodies on their way in, as much of what sessions brought, and V8's room to breathe. */
const mostMemory = 1024 * 1024 * 1024;
/** Refusals and a few calls; the attacks send gigabytes. */
const mostLogged = 64 * 1024 * 1024;
/** In pieces that are short a quarter of a thread is nothing that others see. */
const mostShare = 0.25;
/** As long as a sibling's call, twice: caches that other processes fill cost CPU too. */
const mostAtOnceMs = 40;
/** What a session may bring at once comes in the first round; a collection of garbage falls in one of them. */
const rounds = 4;

const isFair = ({ share, longestMs }: Round): boolean => share < mostShare && longestMs < mostAtOnceMs;

test("whatever a sandbox sends, the thread that serves its siblings is theirs, and memory and disk stay bounded", {
  timeout: 900_000,
}, async (t) => {
  await using siege = await Siege.start();
  for (const name of await siege.attacks()) {
    const { rounds: seen, peakRss, logged } = await siege.measure(name, { rounds, calls: 80, isEnough: isFair });
    const last = seen.at(-1) as Round;
    const told = `${name}: ${(last.share * 100).toFixed(0)} % of the thread, at most ${last.longestMs.toFixed(0)} ms at once`;
    t.diagnostic(`${told}; p99 ${last.alone.toFixed(0)} ms alone, ${last.beside.toFixed(0)} ms beside it; ${Math.round(peakRss / 1e6)} MB`);
    assert.ok(isFair(last), told);
    assert.ok(Number.isFinite(last.beside), `${name}: no sibling was answered`);
    assert.ok(peakRss < mostMemory, `${name}: ${peakRss} bytes of memory`);
    assert.ok(logged < mostLogged, `${name}: ${logged} bytes of log`);
  }
});
