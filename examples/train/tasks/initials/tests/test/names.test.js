import assert from "node:assert/strict";
import { test } from "node:test";
import { printed } from "../names.js";

test("names are printed as initials", () => {
  assert.equal(printed("Ada Lovelace"), "A. L.");
  assert.equal(printed("Grace Hopper"), "G. H.");
});

test("an empty name stays empty", () => {
  assert.equal(printed(""), "");
});
