import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type DeathEntry, judgeDeaths, mostKills } from "../../../../base/host/deaths/judge-deaths.ts";

const death = (by: "crash" | "kill", running: string[], culprit: string | null = null): DeathEntry => ({
  type: "death",
  by,
  culprit,
  why: "why",
  running: running.map((name) => `${name}#1`),
});

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

test("what is forgiven is as if it had never run at a death", () => {
  const entries = [death("crash", ["a"]), death("crash", ["b", "c"])];
  assert.deepEqual(judged(...entries, { type: "forgiven", names: ["a", "b"] }), { aside: [], suspects: ["c"] });
  assert.deepEqual(judged(...entries, { type: "forgiven", names: ["a"] }, death("crash", ["a"])).aside, ["a"]);
});
