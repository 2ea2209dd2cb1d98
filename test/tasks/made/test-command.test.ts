import assert from "node:assert/strict";
import { test } from "node:test";
import { apartCommand } from "../../../tasks/made/apart-command.ts";
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

test("a line of pytest or unittest is also a command of our runner, unless it says what the runner cannot do", () => {
  const cases: [string, "pytest" | "unittest" | "tap", string[] | null][] = [
    ["pytest -rA tests", "pytest", ["python3", "{runner}", "tests"]],
    ["python -m pytest -v --tb=short -o asyncio_mode=auto", "pytest", ["python", "{runner}", "-o", "asyncio_mode=auto"]],
    ["python3 {runner} tests", "pytest", ["python3", "{runner}", "tests"]],
    ["python3 -m unittest -v", "unittest", ["python3", "{runner}"]],
    ["python3 -m unittest discover -v -s tests -t .", "unittest", ["python3", "{runner}", "-t", ".", "tests"]],
    ["python3 -m unittest discover tests", "unittest", ["python3", "{runner}", "-t", "tests", "tests"]],
    ["python3 -m unittest tests.test_a", "unittest", null],
    ["python3 -m unittest discover -p '*_test.py'", "unittest", null],
    ["make -s && pytest -rA", "pytest", null],
    ["tox -e py39", "pytest", null],
    ["pytest", "tap", null],
  ];
  for (const [line, parser, expected] of cases) assert.deepEqual(apartCommand({ test: line, parser }), expected, line);
});
