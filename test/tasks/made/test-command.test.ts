import assert from "node:assert/strict";
import { test } from "node:test";
import { testCommand } from "../../../tasks/made/test-command.ts";

test("a line of plain words is a program and its arguments, and any other is a shell's", () => {
  assert.deepEqual(testCommand(" python3 -I  {runner} tests "), ["python3", "-I", "{runner}", "tests"]);
  assert.deepEqual(testCommand("go test -v ./..."), ["go", "test", "-v", "./..."]);
  for (const line of [
    "make && ctest",
    "A=1 pytest",
    "pytest tests/*.py",
    "pytest -k 'a b'",
    "echo $HOME",
    "ls {a,b}",
    "cd x; make",
    "a\nb",
  ])
    assert.deepEqual(testCommand(line), ["sh", "-c", line], line);
});
