/** A row with SWE-bench's columns, and its image of this machine. */
import { testImage } from "./test-image.ts";

export const tested =
  "import unittest\nimport add\nfrom tests.one import ONE\n\nclass Add(unittest.TestCase):\n    def test_zero(self):\n        self.assertEqual(add.add(1, 0), ONE)\n";
const more = "\n    def test_sum(self):\n        self.assertEqual(add.add(1, 1), 2)\n";
export const encoded = (text: string): string => Buffer.from(text).toString("base64");

/** As SWE-bench's images are: root's, with the repository at /testbed, its past, its future, and what its build left. */
const image = `RUN mkdir -p /testbed/tests && cd /testbed && git init -q . && git config user.name a && git config user.email a@b \\
 && echo 'secret = "of the past"' > add.py && git add -A && git commit -qm past \\
 && printf 'def add(a, b):\\n    return a - b\\n' > add.py && echo ${encoded(tested)} | base64 -d > tests/test_add.py && touch tests/__init__.py && echo 'ONE = 1' > tests/one.py \\
 && echo '*.so' > .gitignore && git add -A && GIT_COMMITTER_DATE='2024-01-01T00:00:00Z' git commit -qm base --date=2024-01-01T00:00:00Z && git tag base \\
 && printf 'def add(a, b):\\n    return a + b  # secret\\n' > add.py && git commit -qam future && git checkout -q base && touch built.so
WORKDIR /testbed`;

const diff = (path: string, body: string) => `diff --git a/${path} b/${path}\n--- a/${path}\n+++ b/${path}\n${body}`;
const testPatch = diff(
  "tests/test_add.py",
  `@@ -7 +7,4 @@\n         self.assertEqual(add.add(1, 0), ONE)\n${more.trimEnd().replace(/^/gm, "+")}\n`,
);

export async function publishedRow() {
  return {
    instance_id: "owner__add-1",
    repo: "owner/add",
    base_commit: "0".repeat(40),
    problem_statement: "add subtracts.",
    image: await testImage("published", image),
    patch: diff("add.py", "@@ -1,2 +1,2 @@\n def add(a, b):\n-    return a - b\n+    return a + b\n"),
    test_patch: testPatch,
    FAIL_TO_PASS: ["test_sum (tests.test_add.Add.test_sum)"],
    PASS_TO_PASS: ["test_zero (tests.test_add.Add.test_zero)"],
    log_parser: "parse_log_django",
    eval_type: "pass_and_fail",
    eval_script: `#!/bin/bash\ncd /testbed\ngit config --global --add safe.directory /testbed\ngit checkout base tests/test_add.py\ngit apply -v - <<'EOF_1'\n${testPatch}\nEOF_1\n: '>>>>> Start Test Output'\npython3 -m unittest -v tests.test_add\n: '>>>>> End Test Output'\ngit checkout base tests/test_add.py\n`,
  };
}
