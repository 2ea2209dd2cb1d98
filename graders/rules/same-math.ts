/**
 * Compares two mathematical answers. As in MATH's and GSM8K's own comparison, spacing, signs of units, thousands separators and
 * short forms of `\frac` and `\sqrt` do not count. Nothing is calculated except decimals: `2/4` is not `1/2`.
 */

/** Characters of an answer. A longer one is never the same, because an answer is a short line. */
export const longestMath = 1_000;

export function isSameMath(said: string, expected: string): boolean {
  if (said.length > longestMath || expected.length > longestMath) return false;
  // One of the two may have a name, as in x = 5. If both have one, the names are compared too.
  const bare = named.test(said) === named.test(expected) ? (text: string) => text : (text: string) => text.replace(named, "");
  const one = plainMath(bare(said));
  // An expected unit may be left out. A unit that is not expected may be wrong, so it counts.
  const others = [expected, withoutUnit(expected)].map((text) => plainMath(bare(text)));
  return others.some((other) => other !== "" && (one === other || isSameNumber(one, other)));
}

const named = /^\s*[a-zA-Z]\s*=(?=.)/;

const unit = /(?<!\s)\s*\\(?:text|mathrm|mbox|textbf)\{[^{}]*\}(?:\^\{?\d\}?)?\s*$/;

function withoutUnit(text: string): string {
  return text.replace(unit, "") || text;
}

const wrapped = /^\\(?:text|mathrm|mbox|textbf)\{([^{}]*)\}$/;

/** Applied in this order. */
const plainForms: readonly (readonly [RegExp, string])[] = [
  [/\\(?:left|right)(?![a-zA-Z])|\\!/g, ""],
  [/\\[dt]frac(?![a-zA-Z])/g, "\\frac"],
  [/\{,\}/g, ","],
  // Signs that both comparisons ignore.
  [/\\?[$%]|\^\\circ(?![a-zA-Z])|\^\{\\circ\}|°/g, ""],
  // Must come before spaces are removed: 1, 234 is two numbers.
  [/(?<=^\s*[-+]?\d{1,3}(?:,\d{3})*),(?=\d{3}(?:,\d{3})*(?:\.\d*)?\s*$)/g, ""],
  [/\\[ ,;:]|~/g, " "],
  // A space between two words or digits has a meaning: 1 1/2 is not 11/2.
  [/(?<![\s\w])\s+|\s+(?!\w|\s)/g, ""],
  [/\s+/g, " "],
  [/\.$/, ""],
  [/\\frac ?(\w)/g, "\\frac{$1}"],
  [/(\\frac\{[^{}]*\})(\w)/g, "$1{$2}"],
  [/\\sqrt ?(\w)/g, "\\sqrt{$1}"],
  [/^(-?)(\d+)\/(\d+)$/, "$1\\frac{$2}{$3}"],
];

function plainMath(text: string): string {
  const plain = plainForms.reduce((all, [form, by]) => all.replace(form, by), text.trim()).trim();
  return wrapped.exec(plain)?.[1]?.trim() ?? plain;
}

type Ratio = { over: bigint; under: bigint; isDecimal: boolean };

/** Compares values if one of the two is a decimal. Two fractions must be written the same, because an answer must be reduced. */
function isSameNumber(one: string, other: string): boolean {
  const [a, b] = [ratioOf(one), ratioOf(other)];
  return a !== null && b !== null && (a.isDecimal || b.isDecimal) && a.over * b.under === b.over * a.under;
}

function ratioOf(text: string): Ratio | null {
  const decimal = /^([-+]?)(\d*)\.?(\d*)$/.exec(text);
  const [, sign = "", whole = "", part = ""] = decimal ?? [];
  if (decimal && whole + part !== "") return { over: signed(sign, whole + part), under: 10n ** BigInt(part.length), isDecimal: true };
  const [, minus = "", over = "", under = ""] = /^(-?)\\frac\{(\d+)\}\{(\d+)\}$/.exec(text) ?? [];
  return under === "" || BigInt(under) === 0n ? null : { over: signed(minus, over), under: BigInt(under), isDecimal: false };
}

function signed(sign: string, digits: string): bigint {
  return sign === "-" ? -BigInt(digits) : BigInt(digits);
}
