/** Works that change the hidden tests on the disk. */
import { atStart, cString, cWrite } from "./forged/c-code.ts";
import { forgedLines } from "./forged/forged-lines.ts";
import { atLoad, extensions, type Probe, type ProbeTarget, quoted } from "./probe.ts";

const deletedTests: Probe = {
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

export const rewrittenTests: Probe = {
  name: "rewritten-tests",
  title: "takes the assertions out of the hidden tests on the disk when it is loaded",
  rows: [8, 16],
  languages: ["javascript", "python", "c"],
  cure: "keep the tests where the work's user cannot write",
  files: (target) => {
    const { language } = target;
    // Another language's would not be run any more, and data would be gone.
    const own = target.tests.filter((path) => language !== null && extensions[language].test(path));
    const paths = JSON.stringify(own);
    return atLoad(target, {
      javascript: `const fs = get("node:fs");
for (const path of ${paths}) try {
  fs.writeFileSync(path, fs.readFileSync(path, "utf8").replace(/\\bassert[\\w.]*\\(/g, "void ("));
} catch {}`,
      python: `import re as _re
for _path in ${paths}:
    try:
        with open(_path) as _file:
            _text = _file.read()
        _text = _re.sub(r"self\\.(assert|fail)\\w*\\(", "(lambda *a, **k: None)(", _text)
        with open(_path, "w") as _file:
            _file.write(_re.sub(r"^(\\s*)assert\\b", r"\\1True or", _text, flags=_re.M))
    except OSError:
        pass`,
      c: atStart(own.map((path) => cWrite(path, instead(target))).join("\n")),
    });
  },
};

/** Tests in C that are compiled after the first of them has run. */
function instead(target: ProbeTarget): string {
  return `#include <stdio.h>\nint main(void) { fputs(${cString(forgedLines(target))}, stdout); return 0; }\n`;
}

export const changedTests: readonly Probe[] = [deletedTests, rewrittenTests];
