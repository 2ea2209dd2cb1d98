import assert from "node:assert/strict";
import { test } from "node:test";
import { kinds, modes, type Played, playKind } from "./session-kinds.ts";

const callsEach = 24;

/** All that every session holds, whatever the mode: nothing lost, nothing in a context that was not there. */
function assertFaithful({ trajectory, delivered, exact, proven, told }: Played): void {
  assert.equal(trajectory.calls.length, callsEach);
  assert.equal(delivered, 1);
  assert.equal(exact, 1);
  assert.equal(proven, callsEach);
  assert.deepEqual(told, []);
}

for (const kind of kinds) {
  test(`${kind.name}: with continuity and full restore each conversation is one trace, and every edge exact`, async () => {
    const played = await playKind(kind, modes["continuity, restore full"] ?? {}, callsEach);
    assertFaithful(played);
    const { trajectory } = played;
    assert.equal(trajectory.traces.length, kind.conversations);
    assert.deepEqual(new Set(trajectory.calls.map(({ match }) => match)), new Set(["root", "exact"]));
    assert.ok((trajectory.fidelity.row_inflation ?? 0) < 1.5);
  });
}

test("with the default restore a conversation branches where reasoning was dropped or a stop string cut out, and nowhere else", async () => {
  for (const kind of kinds) {
    const played = await playKind(kind, modes["continuity, default restore"] ?? {}, callsEach);
    assertFaithful(played);
    const causes = new Set(
      played.trajectory.calls.flatMap(({ continuity }) => (continuity?.mode === "rendered" ? [continuity.cause] : [])),
    );
    causes.delete("first_turn");
    const expected = kind.name.startsWith("thinking") ? ["reasoning_dropped"] : kind.name.includes("stop string") ? ["stop_string"] : [];
    assert.deepEqual([...causes], expected, kind.name);
    for (const { match, continuity } of played.trajectory.calls)
      if (match !== "root")
        assert.equal(match === "exact", continuity?.mode === "continued", `${kind.name}: ${match} and ${continuity?.mode}`);
  }
});
