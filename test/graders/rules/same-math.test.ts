import assert from "node:assert/strict";
import { test } from "node:test";
import { boxedIn, hashedIn } from "../../../graders/rules/marked-answer.ts";
import { isSameMath } from "../../../graders/rules/same-math.ts";

for (const [said, expected] of [
  ["42", "42"],
  [" 42.0 ", "42"],
  ["42.", "42"],
  ["+42", "42"],
  ["1,234,567", "1234567"],
  ["10{,}000", "10,000"],
  ["10,\\!000.50", "10000.5"],
  ["$42", "42"],
  ["\\$1,234", "1234"],
  ["50\\%", "50"],
  ["90^\\circ", "90"],
  ["90", "90^{\\circ}"],
  ["5", "5\\text{ cm}^2"],
  ["5 \\text{cm}", "5\\text{ cm}"],
  [".5", "\\frac{1}{2}"],
  ["-0.25", "-\\frac{1}{4}"],
  ["\\dfrac12", "\\frac{1}{2}"],
  ["\\tfrac{1}2", "\\frac{1}{2}"],
  ["1/2", "\\frac{1}{2}"],
  ["\\left( 3, \\frac{\\pi}{2} \\right)", "(3,\\frac{\\pi}{2})"],
  ["\\sqrt3", "\\sqrt{3}"],
  ["2 \\sqrt{3}", "2\\sqrt{3}"],
  ["x = 5", "5"],
  ["y=2x+3", "y = 2x + 3"],
  ["\\text{Evelyn}", "Evelyn"],
  ["123456789012345678901234567890.0", "123456789012345678901234567890"],
] as const)
  test(`${said} is ${expected}`, () => assert.equal(isSameMath(said, expected), true));

for (const [said, expected] of [
  ["41", "42"],
  ["42 43", "43"],
  ["41 or 42", "42"],
  ["-42", "42"],
  ["1 1/2", "11/2"],
  ["1\\,1/2", "11/2"],
  ["1 2", "12"],
  ["1, 234", "1234"],
  ["12,34", "1234"],
  ["0.333", "\\frac{1}{3}"],
  ["2/4", "\\frac{1}{2}"],
  ["1/0", "0"],
  ["0.5", "50\\%"],
  ["5\\text{ m}", "5\\text{ cm}"],
  ["5\\text{ m}", "5"],
  ["x=2y+3", "y=2y+3"],
  ["(3,4]", "(3,4)"],
  ["\\frac{2}{1}", "\\frac{1}{2}"],
  ["123456789012345678901234567891", "123456789012345678901234567890"],
  ["", "0"],
  ["", "\\%"],
  [".", "0"],
  ["NaN", "0"],
  ["42".padEnd(2_000, " "), "42"],
] as const)
  test(`${said.trim()} is not ${expected}`, () => assert.equal(isSameMath(said, expected), false));

test("the last closed box is the answer, and the last line with four signs", () => {
  assert.equal(boxedIn("\\boxed{1} then $\\boxed{\\frac{1}{\\sqrt{2}}}$."), "\\frac{1}{\\sqrt{2}}");
  assert.equal(boxedIn("\\boxed{\\{1, 2\\}}"), "\\{1, 2\\}");
  assert.deepEqual([boxedIn("no box"), boxedIn("\\boxed{1"), boxedIn("\\boxed{1} \\boxed{2")], [null, null, null]);
  assert.equal(hashedIn("#### 1\nno\n####  1,234 \nend"), "1,234");
  assert.deepEqual([hashedIn("a #### 1"), hashedIn("####")], [null, ""]);
});

test("a hostile answer is compared at once", () => {
  for (const sign of [" ", "\\frac", "{", "\\boxed{", ",123", "\\text{", "1 "]) {
    const long = sign.repeat(1_000_000 / sign.length);
    boxedIn(long);
    hashedIn(long);
    isSameMath(long.slice(0, 1_000), "1,234\\text{ cm}");
    isSameMath("1", long.slice(0, 1_000));
  }
});
