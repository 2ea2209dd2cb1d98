import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { junit } from "../../../graders/parsers/junit.ts";

const read = (text: string) => junit.parse(text, "");

test("an entity that is the name of a property of every object stays as it stands", () => {
  const report = read('<testsuite><testcase name="&toString;&valueOf;"/></testsuite>');
  assert.deepEqual([...report.outcomes.keys()], ["&toString;&valueOf;"]);
});

test("cases are read with class, failure, error and skip", () => {
  const report = read(`<?xml version="1.0"?><testsuites><testsuite name="pytest" tests="6">
    <testcase classname="tests.a" name="good" time="0.1"/>
    <testcase classname="tests.a" name="bad[&lt;1&gt;]"><failure message="x &gt; y"><![CDATA[<testcase name="forged"/>]]></failure></testcase>
    <testcase name="broken"><error>no</error></testcase>
    <testcase name="left out"><skipped type="pytest.skip"/></testcase>
    <testcase name="expected"><skipped type="pytest.xfail" message=""/></testcase>
    <testcase name="talks"><system-out>&lt;failure/&gt;</system-out></testcase>
    <!-- <testcase name="commented"/> --></testsuite></testsuites>`);
  assert.equal(report.problem, null);
  assert.deepEqual(Object.fromEntries(report.outcomes), {
    "tests.a::good": "passed",
    "tests.a::bad[<1>]": "failed",
    broken: "failed",
    "left out": "skipped",
    expected: "passed",
    talks: "passed",
  });
});

for (const [title, text] of [
  ["nothing", ""],
  ["a cut report", "<testsuite><testcase name='a'/>"],
  ["another root", "<html><testcase name='a'/></html>"],
  ["two roots", "<testsuite/><testsuite/>"],
  ["a document type", '<!DOCTYPE t [<!ENTITY a "b">]><testsuite/>'],
  ["a wrong end", "<testsuite><testcase name='a'></testsuite></testcase>"],
  ["too deep", "<testsuite>".repeat(200)],
] as const) {
  test(`JUnit: ${title} is no complete report`, () => {
    assert.equal(read(text).complete, false);
    assert.notEqual(read(text).problem, null);
  });
}

test("no text makes the parser throw or hang", () => {
  const piece = fc.constantFrom(
    "<testsuite>",
    "</testsuite>",
    "<testcase name='a'>",
    "</testcase>",
    "<failure/>",
    "<![CDATA[",
    "]]>",
    "<!--",
    "&#x110000;",
    "<",
  );
  fc.assert(fc.property(fc.array(fc.oneof(piece, fc.string())), (pieces) => void read(pieces.join(""))));
  read(`<testsuite ${'a="b" '.repeat(50_000)}`);
  read("<".repeat(200_000));
});
