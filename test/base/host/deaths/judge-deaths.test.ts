import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type DeathEntry, judgeDeaths, mostKills, mostLives } from "../../../../base/host/deaths/judge-deaths.ts";

const death = (by: "crash" | "kill", running: string[], culprit: string | null = null): DeathEntry => ({
  type: "death",
  by,
  culprit,
  why: "why",
  running: running.map((name) => `${name}#1`),
  waiting: [],
  queued: [],
  calls: {},
});

/** A kill while these attempts ran. Each name maps to its finished calls. */
function killed(calls: Record<string, number>, waiting: string[] = []): DeathEntry {
  const running = Object.keys(calls);
  return {
    ...death("kill", running),
    ...{ type: "death" as const, waiting: waiting.map((name) => `${name}#1`) },
    calls: Object.fromEntries(running.map((name) => [`${name}#1`, calls[name] ?? 0])),
  } as DeathEntry;
}

function judged(...entries: DeathEntry[]): { aside: string[]; suspects: string[] } {
  const { aside, suspects } = judgeDeaths(entries);
  return { aside: [...aside.keys()], suspects: [...suspects] };
}

test("a crash sets aside what it is known to come from, or what ran alone, after one death", () => {
  assert.deepEqual(judged(death("crash", ["a", "b", "c"], "b")), { aside: ["b"], suspects: [] });
  assert.deepEqual(judged(death("crash", ["a"])), { aside: ["a"], suspects: [] });
  assert.match(judgeDeaths([death("crash", ["a"])]).aside.get("a") ?? "", /^the process ended while it alone ran \(why\)$/);
});

test("a crash among several makes all of them suspects, and the next one sets the one suspect aside that ran", () => {
  const first = death("crash", ["a", "b", "c"]);
  assert.deepEqual(judged(first), { aside: [], suspects: ["a", "b", "c"] });
  assert.deepEqual(judged(first, death("crash", ["b", "x", "y"])), { aside: ["b"], suspects: ["a", "c"] });
});

test("a suspect that waited for its turn has no part in a crash of the one that ran", () => {
  const [first, second] = [death("crash", ["a", "b", "c"]), { ...death("crash", ["b"]), queued: ["a#1", "c#1"] }];
  assert.deepEqual(judged(first, second), { aside: ["b"], suspects: ["a", "c"] });
  const { blameless } = judgeDeaths([first, second]);
  assert.deepEqual(blameless, ["a#1", "c#1"]);
});

test("a culprit costs two crashes at most, whatever runs beside it, and nothing else is set aside", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 8 }), fc.integer({ min: 1, max: 4 }), fc.integer(), (count, slots, seed) => {
      const names = Array.from({ length: count }, (_, at) => `r${at}`);
      const culprit = names[Math.abs(seed) % count] as string;
      const entries: DeathEntry[] = [];
      let left = [...names];
      for (let crashes = 0; left.length > 0; ) {
        const { aside, suspects } = judgeDeaths(entries);
        left = left.filter((name) => !aside.has(name));
        // One suspect at a time, and as many others as there are slots.
        const running = [
          ...left.filter((name) => suspects.has(name)).slice(0, 1),
          ...left.filter((name) => !suspects.has(name)).slice(0, slots),
        ];
        if (!running.includes(culprit)) left = left.filter((name) => !running.includes(name));
        else {
          entries.push(death("crash", running));
          crashes++;
          assert.ok(crashes <= 2);
        }
      }
      assert.deepEqual([...judgeDeaths(entries).aside.keys()], [culprit]);
    }),
  );
});

test("kills from outside make no suspects, and set nothing aside before so many that chance is no reason", () => {
  const kills = Array.from({ length: mostKills }, () => death("kill", ["a", "b"]));
  assert.deepEqual(judged(...kills.slice(1)), { aside: [], suspects: [] });
  assert.deepEqual(judged(...kills.slice(1), death("kill", ["a"])), { aside: ["a"], suspects: [] });
});

test("a kill counts towards the ten only if the rollout had got no further than before", () => {
  const further = Array.from({ length: mostKills * 2 }, (_, at) => killed({ a: at + 1, b: 3 }));
  assert.deepEqual(judged(...further.slice(0, mostKills)).aside, [], "of b the first kill does not count");
  assert.deepEqual(judged(...further.slice(0, mostKills + 1)).aside, ["b"]);
  assert.deepEqual(judged(...further).aside, ["b"]);
  const begunAnew = Array.from({ length: mostKills }, (_, at) => killed({ a: at }));
  assert.deepEqual(judged(killed({ a: 99 }), ...begunAnew).aside, ["a"], "what it had done before is no progress");
});

test("an agent that ends its process after each call is set aside, although it gets further each time", () => {
  const lives = Array.from({ length: mostLives }, (_, at) => killed({ a: at + 1 }));
  assert.deepEqual(judged(...lives.slice(1)).aside, []);
  assert.deepEqual(judged(...lives).aside, ["a"]);
  assert.equal(judgeDeaths(lives).aside.get("a"), `the process was killed ${mostLives} times while it ran`);
});

test("a waiting attempt is not blamed for a kill, but may be suspected of a crash", () => {
  const kills = Array.from({ length: mostLives }, () => killed({}, ["a", "b"]));
  assert.deepEqual(judged(...kills), { aside: [], suspects: [] });
  assert.deepEqual(judged({ ...death("crash", ["a"]), ...{ waiting: ["b#1"] } } as DeathEntry).suspects, ["a", "b"]);
});

test("attempts of the latest deaths are blameless if they had not begun, or had got further", () => {
  const { blameless } = judgeDeaths([killed({ a: 1, b: 0 }, ["c"]), killed({ a: 1, b: 1 }, ["d"])]);
  assert.deepEqual(blameless, ["c#1", "a#1", "d#1", "b#1"]);
  assert.deepEqual(judgeDeaths(Array.from({ length: 9 }, () => killed({}, ["c"]))).blameless, ["c#1", "c#1", "c#1"]);
});

test("what is forgiven is as if it had never run at a death", () => {
  const entries = [death("crash", ["a"]), death("crash", ["b", "c"])];
  assert.deepEqual(judged(...entries, { type: "forgiven", names: ["a", "b"] }), { aside: [], suspects: ["c"] });
  assert.deepEqual(judged(...entries, { type: "forgiven", names: ["a"] }, death("crash", ["a"])).aside, ["a"]);
});
