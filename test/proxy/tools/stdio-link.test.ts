/** A command that reads nothing: memory holds a bounded part of what it is sent. */
import assert from "node:assert/strict";
import { Duplex } from "node:stream";
import { test } from "node:test";
import { StdioLink } from "../../../proxy/tools/stdio-link.ts";

test("a command that does not read its input is sent no more than 16 MB, and its calls say so", async () => {
  const stuck = new Duplex({ read() {}, write() {} });
  await using link = new StdioLink(stuck, 1000);
  const megabyte = "x".repeat(1024 * 1024);
  for (let at = 0; at < 16; at++) await link.tell(megabyte);
  await assert.rejects(link.ask(1, megabyte, new AbortController().signal), { failure: "hung", message: /does not read its input/ });
  await assert.rejects(link.tell("{}"), { failure: "hung" });
  assert.ok(stuck.writableLength < 17 * 1024 * 1024);
});
