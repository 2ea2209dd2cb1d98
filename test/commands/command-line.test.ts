import assert from "node:assert/strict";
import { test } from "node:test";
import { table } from "../../commands/command-line.ts";
import { cli } from "../fakes/cli.ts";

const hostile = "\u001b[2J\u001b]0;owned\u0007";

test("what strangers wrote cannot act on the terminal: neither in what is said nor in a table, whose lines stay one each", async () => {
  const { stderr } = await cli(["show", hostile, "--run", hostile]);
  assert.match(stderr, /there is no folder \\x1b\[2J\\x1b\]0;owned\\x07\n$/);
  const lines = table(["task", "reward"], [[`${hostile}\nb/0`, 1]]).split("\n");
  assert.deepEqual([lines.length, lines[2]], [3, "\\x1b[2J\\x1b]0;owned\\x07\\nb/0       1"]);
});
