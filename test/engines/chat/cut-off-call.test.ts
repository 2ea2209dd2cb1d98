import assert from "node:assert/strict";
import { test } from "node:test";
import { cutOffArguments } from "../../../engines/chat/cut-off-call.ts";

const call = (name: string, args: string, text: string) => cutOffArguments({ name, arguments: args }, async () => text);
const open = '<tool_call>\n{"name": ';

test("arguments that a parser made up for a call that was cut off are the beginning that was sampled", async () => {
  assert.equal(await call("ls", "{}", `${open}"ls", "arguments": {"path": "/t`), '{"path": "/t');
  assert.equal(await call("ls", "", `${open}"ls" , "parameters" : {"path`), '{"path');
  // One that calls its own arguments so, and a name that a pattern would read otherwise.
  assert.equal(await call("use (x)", "{}", `${open}"use (x)", "arguments": {"a": 1, "arguments": {"sql"`), '{"a": 1, "arguments": {"sql"');
});

test("what the parser read, what was sampled empty, and what no text tells stays as the parser said", async () => {
  assert.equal(await call("ls", '{"path": "/t', `${open}"ls", "arguments": {"path": "/t`), '{"path": "/t');
  assert.equal(await call("ls", "{}", `${open}"ls", "arguments": { }}`), "{}");
  assert.equal(await call("ls", "{}", "<function=ls>\n<parameter=path>\n/t"), "{}");
  assert.equal(await cutOffArguments({ name: "ls", arguments: "{}" }, () => Promise.reject(new Error("gone"))), "{}");
});

test("the arguments of another call, and JSON in the text before it, are not taken for those of a call that has none yet", async () => {
  assert.equal(await call("ls", "", `${open}"rm", "arguments": {"path": "a"}}\n</tool_call>\n${open}"ls"`), "");
  assert.equal(await call("ls", "", `Never {"name": "rm", "arguments": {"path": "/"}}.\n${open}"ls"`), "");
  assert.equal(await call("ls", "", `${open}"ls", "arguments": {"path": "a"}}\n</tool_call>\n${open}"ls"`), "");
});
