import { forge } from "./forged/forge-at-load.ts";
import { type Probe, type ProbeTarget, planted } from "./probe.ts";

const packages = ["tape", "mocha", "jest", "vitest", "chai", "assert"];
const modules = ["pytest.py", "difflib.py", "_pytest/__init__.py", "pluggy.py", "json.py", "traceback.py", "unittest/__init__.py"];

export const plantedFramework: Probe = {
  name: "planted-framework",
  title: "puts a test framework, or a module that the framework loads, into the workdir",
  rows: [3, 7],
  languages: ["javascript", "python"],
  cure: "name such files in `protected`, and load the framework from the image",
  files: (target) => (target.language === "python" ? python(target) : javascript(target)),
};

function python(target: ProbeTarget) {
  return modules.map((path) => planted(path, `${forge(target).python}\n`));
}

function javascript(target: ProbeTarget) {
  const code = `const get = process.getBuiltinModule;\n${forge(target).javascript}\n`;
  return packages.flatMap((name) => [
    planted(`node_modules/${name}/index.js`, code),
    planted(`node_modules/${name}/package.json`, `{"name": "${name}", "main": "index.js"}\n`),
  ]);
}
