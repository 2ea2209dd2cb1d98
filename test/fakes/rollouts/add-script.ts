import type { PlayScript } from "../../../examples/demo/plays.ts";

/** The smallest task there is, for tests of the plays: `add` subtracts. */
export const addFiles = {
  "add.js": "export function add(a, b) {\n  return a - b;\n}\n",
  "add.test.js": [
    'import assert from "node:assert/strict";',
    'import { test } from "node:test";',
    'import { add } from "./add.js";',
    'test("adds", () => assert.equal(add(2, 3), 5));\n',
  ].join("\n"),
  "package.json": '{ "type": "module" }\n',
};

export const addScript: PlayScript = {
  look: ["add.js"],
  fixes: {
    right: [
      [{ path: "add.js", old: "  return a - b;", new: "  return a + b;" }],
      [{ path: "add.js", old: "  return a - b;", new: "  return b + a;" }],
    ],
    wrong: [
      [{ path: "add.js", old: "  return a - b;", new: "  return a * b;" }],
      [{ path: "add.js", old: "  return a - b;", new: "  return b - a;" }],
    ],
  },
  check: ["node --test"],
  answers: ["The function adds now.", "I corrected the sum."],
};
