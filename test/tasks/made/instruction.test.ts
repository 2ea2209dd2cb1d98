import assert from "node:assert/strict";
import { test } from "node:test";
import { instructionOf, leaksOf } from "../../../tasks/made/instruction.ts";

/** The words of the message that are left, without what stands around them. */
const told = (message: string, leaks: string[] = []) =>
  instructionOf(message, leaks)?.split("\n\n").slice(1).join("\n\n").replace(/^> ?/gm, "").trim();

test("trailers go, and links, numbers and ids that lead to the change are marked", () => {
  const trailers = [
    "Signed-off-by: A <a@b>",
    "Co-Authored-By: B <b@c>",
    "Change-Id: I0123",
    "Fixes: #3",
    "Cc: list@example.org",
    "PR-URL: x",
  ];
  assert.equal(told(["Fold letters", "", ...trailers, "(cherry picked from commit 0123abc)"].join("\n")), "Fold letters");
  for (const [message, left] of [
    ["Fold letters (#12)", "Fold letters […]"],
    ["Fold letters (fixes acme/slug#12)", "Fold letters […]"],
    ["Fold letters, closes #4.", "Fold letters, […]."],
    ["See https://example.org/pull/9 there", "See […] there"],
    ["Broken since 0a1b2c3d4e5f6071 was in", "Broken since […] was in"],
    ["Take 1234567890 and deadbeef as they are", "Take 1234567890 and deadbeef as they are"],
  ])
    assert.equal(told(message!), left, message);
});

test("names of hidden tests and of their files are marked, and plain words stay", () => {
  const leaks = leaksOf([{ path: "tests/test_slug.py" }], ["test_lower (tests.test_slug.SlugTest)", "returns the latest - value", "-"]);
  assert.deepEqual(leaks.sort(), ["SlugTest", "test_lower", "test_slug", "test_slug.py"]);
  assert.equal(told("The latest value - see tests/test_slug.py::test_lower.", leaks), "The latest value - see […]");
});

test("a message that says nothing, or a book, is no instruction", () => {
  for (const message of ["", "\n", "(#12)", "Signed-off-by: A <a@b>", "x".repeat(10_001)]) assert.equal(instructionOf(message, []), null);
});
