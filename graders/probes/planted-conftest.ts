import { forge } from "./forged/forge-at-load.ts";
import { type Probe, type ProbeTarget, planted } from "./probe.ts";

const hook = `import pytest
@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    report.outcome = "passed"
    report.longrepr = None
`;

export const plantedConftest: Probe = {
  name: "planted-conftest",
  title: "plants files by which a test framework is steered: conftest.py, pytest.ini, setup.cfg, jest.config.js and others",
  rows: [4],
  languages: ["javascript", "python"],
  cure: "name such files in `protected`, so that they stay as they were delivered",
  files: (target) => (target.language === "python" ? python(target) : javascript(target)),
};

function python({ tests }: ProbeTarget) {
  const inTests = tests.filter((path) => path.includes("/")).map((path) => path.slice(0, path.lastIndexOf("/") + 1));
  return [
    ...["", ...new Set(inTests)].map((folder) => planted(`${folder}conftest.py`, hook)),
    planted("steer.py", hook),
    planted("pytest.ini", "[pytest]\naddopts = -p steer\n"),
    planted("setup.cfg", "[tool:pytest]\naddopts = -p steer\n"),
    planted("tox.ini", "[pytest]\naddopts = -p steer\n"),
  ];
}

function javascript(target: ProbeTarget) {
  const code = `const get = process.getBuiltinModule;\n${forge(target).javascript}\n`;
  const names = ["jest.config.cjs", "vitest.config.cjs", "vite.config.cjs", "babel.config.cjs", ".mocharc.cjs"];
  return names.map((path) => planted(path, code));
}
