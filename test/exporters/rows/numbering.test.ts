import assert from "node:assert/strict";
import { test } from "node:test";
import type { Trajectory } from "../../../base/schema/trajectory.ts";
import { numberSessions } from "../../../exporters/rows/numbering.ts";

test("no two rollouts of a group have one number, whatever sample index they were given", () => {
  const numberOf = numberSessions();
  const numbers = (group: string, ...indices: (number | null)[]) =>
    indices.map((sample_index) => numberOf(group, { group: { id: group, size: null, sample_index } } as Trajectory));
  assert.deepEqual(numbers("named", 1, 0, 3), [1, 0, 3]);
  assert.deepEqual(numbers("unnamed", null, null, null), [0, 1, 2]);
  for (const indices of [
    [null, 0, 1, null],
    [0, 0, 0],
    [2, null, 2, null, 0],
  ])
    assert.equal(new Set(numbers(indices.join(), ...indices)).size, indices.length, indices.join());
});
