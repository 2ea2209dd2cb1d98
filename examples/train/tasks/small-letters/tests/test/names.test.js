import assert from "node:assert/strict";
import { test } from "node:test";
import { printed } from "../names.js";

test("names are printed in small letters", () => {
  assert.equal(printed("Ada Lovelace"), "ada lovelace");
  assert.equal(printed("Grace Hopper"), "grace hopper");
});

test("an empty name stays empty", () => {
  assert.equal(printed(""), "");
});
