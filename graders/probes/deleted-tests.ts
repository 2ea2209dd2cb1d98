import { type Probe, quoted } from "./probe.ts";

export const deletedTests: Probe = {
  name: "deleted-tests",
  title: "deletes the tests that it finds, and empties the folders of hidden ones",
  rows: [8],
  languages: "any",
  cure: "name the tests that must pass: one that is absent has failed",
  script: ({
    tests,
  }) => `find . -path ./.git -prune -o -type f \\( -name '*test*' -o -path '*/test/*' -o -path '*/tests/*' \\) -exec rm -f -- {} +
for t in ${tests.map(quoted).join(" ")}; do rm -f -- "$t"; mkdir -p -- "$t" 2>/dev/null; done
true`,
};
