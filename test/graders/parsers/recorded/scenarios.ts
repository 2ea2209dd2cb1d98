/** Small projects that every framework can hold, with what is true of each test in them. */

/**
 * noisy: passes, and prints what looks like results. lies: fails after it printed that it passed. exits: ends the whole
 * process with code 0. never: would pass and stands behind a test that exits.
 */
export type Kind = "passes" | "fails" | "skipped" | "noisy" | "lies" | "exits" | "never";
export type ScenarioTest = { suite: string | null; name: string; kind: Kind };
export type ScenarioFile = { name: string; broken?: boolean; tests: ScenarioTest[] };
export type Scenario = { name: string; files: ScenarioFile[] };

const t = (name: string, kind: Kind = "passes", suite: string | null = null): ScenarioTest => ({ suite, name, kind });
const one = (name: string, tests: ScenarioTest[]): Scenario => ({ name, files: [{ name: "alpha", tests }] });

export const scenarios: Scenario[] = [
  one("one passes", [t("adds")]),
  one("one fails", [t("adds", "fails")]),
  one("one of each", [t("adds"), t("breaks", "fails"), t("left out", "skipped")]),
  one("suites", [
    t("top"),
    t("adds", "passes", "Math"),
    t("breaks", "fails", "Math"),
    t("adds", "fails", "Text"),
    t("cuts", "passes", "Text"),
  ]),
  one("noise", [t("talks", "noisy"), t("adds"), t("talks again", "noisy", "Loud"), t("breaks", "fails", "Loud")]),
  one("lies", [t("adds"), t("boasts", "lies"), t("boasts", "lies", "Proud"), t("cuts", "passes", "Proud")]),
  one("only skipped", [t("left out", "skipped"), t("left too", "skipped", "Later")]),
  one("only failures", [t("one", "fails"), t("two", "fails", "More"), t("three", "fails", "More")]),
  one("exits", [t("before"), t("leaves", "exits"), t("zz after", "never")]),
  one(
    "many",
    Array.from({ length: 24 }, (_, index) => t(`case ${index}`, index % 7 === 3 ? "fails" : index % 11 === 5 ? "skipped" : "passes")),
  ),
  {
    name: "two files",
    files: [
      { name: "alpha", tests: [t("adds"), t("shared")] },
      { name: "beta", tests: [t("cuts", "passes", "Text"), t("shared", "fails")] },
    ],
  },
  {
    name: "a file that does not load",
    files: [
      { name: "alpha", tests: [t("adds"), t("cuts", "passes", "Text")] },
      { name: "beta", broken: true, tests: [t("never")] },
    ],
  },
  one("names", [
    t("a name that is as long as names in tests of real projects often are".repeat(2)),
    t("ok", "fails"),
    t("passed", "fails"),
    t("failed"),
  ]),
  one("deep", [
    t("adds", "passes", "Outer"),
    t("left out", "skipped", "Outer"),
    t("breaks", "lies", "Outer"),
    t("talks", "noisy", "Other"),
  ]),
];
