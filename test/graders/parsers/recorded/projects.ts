/** How a scenario is written in each framework's language, and how that framework calls its tests. */
import type { Kind, Scenario, ScenarioFile, ScenarioTest } from "./scenarios.ts";

export type Project = {
  framework: string;
  /** The parser that reads its logs. */
  parserOf(command: string): string;
  version: string[];
  /** A file that does not load stops all others too. */
  oneForAll?: true;
  /** What became of a test that exits: it is done where each is a process of its own, and fails where the framework forbids it. */
  exits?: "passed" | "failed";
  /** Path -> content. */
  files(scenario: Scenario): Record<string, string>;
  /** Shell commands, run in the project's folder. */
  commands: string[];
  nameOf(file: ScenarioFile, test: ScenarioTest, parser: string): string;
};

/** Two virtual environments with pytest, and a folder with jest, mocha and vitest. The other frameworks are in PATH. */
const place = process.env.ALIDADE_FRAMEWORKS ?? "/tmp/frameworks";

const word = (text: string) => text.replaceAll(/\W/g, "_");
const suites = (file: ScenarioFile) => [...new Set(file.tests.map(({ suite }) => suite))];
const inSuite = (file: ScenarioFile, suite: string | null) => file.tests.filter((test) => test.suite === suite);
const indent = (text: string, by: string) => text.replaceAll(/^(?=.)/gm, by);
const noise = ["ok", "PASSED", "hello ok world", "--- nothing", "\u001b[32mgreen\u001b[0m", "    1) indented"];

type Language = { print(line: string): string; fail: string; exit: string };
const python: Language = { print: (line) => `print(${JSON.stringify(line)}, flush=True)`, fail: "assert 1 == 2", exit: "os._exit(0)" };
const js: Language = { print: (line) => `console.log(${JSON.stringify(line)});`, fail: 'throw new Error("no");', exit: "process.exit(0);" };
const go: Language = { print: (line) => `fmt.Println(${JSON.stringify(line)})`, fail: 't.Fatal("no")', exit: "os.Exit(0)" };
const rust: Language = {
  print: (line) => `println!("{}", "${line.replaceAll("\u001b", "\\u{1b}").replaceAll('"', '\\"')}");`,
  fail: "assert_eq!(1, 2);",
  exit: "std::process::exit(0);",
};
const java: Language = {
  print: (line) => `System.out.println(${JSON.stringify(line)});`,
  fail: "org.junit.jupiter.api.Assertions.fail();",
  exit: "Runtime.getRuntime().halt(0);",
};

/** Lines of a test's body. `claims`: what the framework prints for a test that passes. */
function body(kind: Kind, language: Language, claims: string[], nothing = ""): string {
  if (kind === "fails") return language.fail;
  if (kind === "exits") return language.exit;
  const printed = (kind === "noisy" ? noise : kind === "lies" ? claims : []).map(language.print);
  return [...printed, ...(kind === "lies" ? [language.fail] : [])].join("\n") || nothing;
}

const pytestName = (file: ScenarioFile, { suite, name }: ScenarioTest) =>
  [`tests/test_${file.name}.py`, ...(suite ? [`Test${word(suite)}`] : []), `test_${word(name)}`].join("::");

function pytestFile(file: ScenarioFile): string {
  const test = (one: ScenarioTest) => {
    const name = pytestName(file, one);
    const code = body(one.kind, python, [`${name} PASSED [ 10%]`, `PASSED ${name}`], "pass");
    const skip = one.kind === "skipped" ? '@pytest.mark.skip(reason="later")\n' : "";
    return `${skip}def test_${word(one.name)}(${one.suite ? "self" : ""}):\n${indent(code, "    ")}\n`;
  };
  const parts = suites(file).map((suite) => {
    const code = inSuite(file, suite).map(test).join("\n");
    return suite === null ? code : `class Test${word(suite)}:\n${indent(code, "    ")}`;
  });
  return `import os\nimport pytest\n${file.broken ? "import not_there\n" : ""}${parts.join("\n")}`;
}

function pytest(python: string, version: string, flags: string[]): Project {
  return {
    framework: `pytest-${version}`,
    parserOf: () => "pytest",
    oneForAll: true,
    version: [`${python} -c 'import pytest,platform;print("pytest",pytest.__version__,"Python",platform.python_version())'`],
    files: (scenario) => Object.fromEntries(scenario.files.map((file) => [`tests/test_${file.name}.py`, pytestFile(file)])),
    commands: flags.map((flag) => `${python} -m pytest -p no:cacheprovider ${flag} tests`),
    nameOf: pytestName,
  };
}

const unittestName = (file: ScenarioFile, { suite, name }: ScenarioTest) =>
  `test_${word(name)} (test_${file.name}.${word(suite ?? "Top")})`;

function unittestFile(file: ScenarioFile): string {
  const parts = suites(file).map((suite) => {
    const tests = inSuite(file, suite).map((one) => {
      const code = body(one.kind, python, ["ok", `${unittestName(file, one)} ... ok`], "pass");
      return `${one.kind === "skipped" ? '@unittest.skip("later")\n' : ""}def test_${word(one.name)}(self):\n${indent(code, "    ")}\n`;
    });
    return `class ${word(suite ?? "Top")}(unittest.TestCase):\n${indent(tests.join("\n"), "    ")}`;
  });
  return `import os\nimport unittest\n${file.broken ? "import not_there\n" : ""}${parts.join("\n")}`;
}

function unittest(python: string, version: string): Project {
  return {
    framework: `unittest-${version}`,
    parserOf: () => "unittest",
    version: [`${python} --version`],
    files: (scenario) => Object.fromEntries(scenario.files.map((file) => [`test_${file.name}.py`, unittestFile(file)])),
    commands: [`${python} -B -m unittest -v`, `${python} -B -u -m unittest -v 2>&1`],
    nameOf: unittestName,
  };
}

/** describe and it, as jest, mocha and vitest have them. */
function jsFile(file: ScenarioFile, head: string, claims: (test: ScenarioTest) => string[]): string {
  const test = (one: ScenarioTest) => {
    const code = body(one.kind, js, claims(one));
    return `it${one.kind === "skipped" ? ".skip" : ""}(${JSON.stringify(one.name)}, () => {\n${indent(code, "  ")}\n});`;
  };
  const parts = suites(file).map((suite) => {
    const code = inSuite(file, suite).map(test).join("\n");
    return suite === null ? code : `describe(${JSON.stringify(suite)}, () => {\n${indent(code, "  ")}\n});`;
  });
  return `${head}\n${file.broken ? 'throw new Error("does not load");\n' : ""}${parts.join("\n")}\n`;
}

const jsPath = (_file: ScenarioFile, { suite, name }: ScenarioTest) => [...(suite ? [suite] : []), name].join(" > ");
const bin = `${place}/js/node_modules/.bin`;

const jest: Project = {
  framework: "jest",
  parserOf: (command) => (command.includes("json") ? "jest-json" : "jest"),
  version: [`${bin}/jest --version | sed 's/^/jest /'`, "node --version | sed 's/^/node /'"],
  files: (scenario) => ({
    "package.json": "{}",
    ...Object.fromEntries(
      scenario.files.map((file) => [
        `${file.name}.test.js`,
        jsFile(file, "", ({ name }) => [`PASS ./${file.name}.test.js`, `  ✓ ${name} (1 ms)`]),
      ]),
    ),
  }),
  commands: [
    `${bin}/jest --verbose --watchman=false`,
    `${bin}/jest --verbose --watchman=false --color --runInBand 2>&1`,
    `${bin}/jest --json --watchman=false`,
  ],
  nameOf: jsPath,
};

const mocha: Project = {
  framework: "mocha",
  parserOf: () => "mocha",
  oneForAll: true,
  version: [`${bin}/mocha --version | sed 's/^/mocha /'`, "node --version | sed 's/^/node /'"],
  files: (scenario) =>
    Object.fromEntries(
      scenario.files.map((file) => [`test/${file.name}.js`, jsFile(file, "", ({ suite, name }) => [`${suite ? "    " : "  "}✔ ${name}`])]),
    ),
  commands: [`${bin}/mocha --reporter spec`, `${bin}/mocha --reporter spec --color`],
  nameOf: jsPath,
};

const vitest: Project = {
  framework: "vitest",
  parserOf: (command) => (command.includes("json") ? "jest-json" : "vitest"),
  exits: "failed",
  version: [`${bin}/vitest --version | sed 's/ linux.*//'`],
  files: (scenario) => ({
    "package.json": '{"type":"module"}',
    ...Object.fromEntries(
      scenario.files.map((file) => [
        `${file.name}.test.js`,
        jsFile(file, 'import { describe, it } from "vitest";', (test) => [` ✓ ${file.name}.test.js > ${jsPath(file, test)} 1ms`]),
      ]),
    ),
  }),
  commands: [
    `${bin}/vitest run --reporter=verbose`,
    `${bin}/vitest run --reporter=verbose --color --disable-console-intercept 2>&1`,
    `${bin}/vitest run --reporter=json`,
  ],
  nameOf: (file, test, parser) => (parser === "vitest" ? `${file.name}.test.js > ${jsPath(file, test)}` : jsPath(file, test)),
};

const goName = (file: ScenarioFile, { suite, name }: ScenarioTest) => `Test${suite ? word(suite) : ""}_${file.name}_${word(name)}`;

const goTest: Project = {
  framework: "go",
  parserOf: (command) => (command.includes("json") ? "go-test-json" : "go-test"),
  version: ["go version | sed 's/ linux.*//'"],
  files: (scenario) => ({
    "go.mod": "module example.com/m\n\ngo 1.20\n",
    ...Object.fromEntries(
      scenario.files.map((file) => {
        const tests = file.tests.map((test) => {
          const code = test.kind === "skipped" ? 't.Skip("later")' : body(test.kind, go, [`--- PASS: ${goName(file, test)} (0.00s)`]);
          return `func ${goName(file, test)}(t *testing.T) {\n${code}\n}\n`;
        });
        const used = "var _ = fmt.Sprint\nvar _ = os.Args\n";
        return [
          `${file.name}/${file.name}_test.go`,
          `package ${file.name}\n\nimport (\n"fmt"\n"os"\n"testing"\n)\n\n${used}${file.broken ? "var broken = notThere\n" : ""}${tests.join("\n")}`,
        ];
      }),
    ),
  }),
  commands: ["go test -v ./...", "go test -json ./..."],
  nameOf: goName,
};

const cargo: Project = {
  framework: "cargo",
  parserOf: () => "cargo",
  oneForAll: true,
  version: ["cargo --version | sed 's/ (.*//'"],
  files: (scenario) => ({
    "Cargo.toml": '[package]\nname = "small"\nversion = "0.1.0"\nedition = "2021"\n',
    "src/lib.rs": "/// Adds.\n/// ```\n/// assert_eq!(small::add(1, 2), 3);\n/// ```\npub fn add(a: i32, b: i32) -> i32 { a + b }\n",
    ...Object.fromEntries(
      scenario.files.map((file) => {
        const test = (one: ScenarioTest) => {
          const name = (one.suite ? `${word(one.suite).toLowerCase()}::` : "") + word(one.name);
          const code = body(one.kind, rust, [`test ${name} ... ok`]);
          return `#[test]\n${one.kind === "skipped" ? "#[ignore]\n" : ""}fn ${word(one.name)}() {\n${code}\n}\n`;
        };
        const parts = suites(file).map((suite) => {
          const code = inSuite(file, suite).map(test).join("\n");
          return suite === null ? code : `mod ${word(suite).toLowerCase()} {\n${code}\n}\n`;
        });
        return [`tests/${file.name}.rs`, `${file.broken ? "use not_there;\n" : ""}${parts.join("\n")}`];
      }),
    ),
  }),
  commands: [
    "cargo test --offline --no-fail-fast",
    "cargo test --offline --no-fail-fast --color always -- --color always --nocapture --test-threads 1 2>&1",
  ],
  nameOf: (_file, { suite, name }) => (suite ? `${word(suite).toLowerCase()}::` : "") + word(name),
};

const ctest: Project = {
  framework: "ctest",
  parserOf: () => "ctest",
  exits: "passed",
  version: ["ctest --version | head -1"],
  files: (scenario) => {
    const tests = scenario.files.flatMap((file) =>
      file.tests.map((test) => {
        const name = ctest.nameOf(file, test, "ctest");
        const lines = test.kind === "noisy" ? noise : test.kind === "lies" ? [`1/1 Test #1: ${name} ....   Passed    0.00 sec`] : [];
        const script = [
          ...lines.map((line) => `echo '${line.replaceAll("\u001b", "")}'`),
          file.broken || test.kind === "fails" || test.kind === "lies" ? "exit 1" : test.kind === "skipped" ? "exit 77" : "exit 0",
        ];
        return { name, path: `${name}.sh`, script: `${script.join("\n")}\n`, test };
      }),
    );
    const lines = tests.map(
      ({ name, path }) => `add_test([=[${name}]=] "sh" "${path}")\nset_tests_properties([=[${name}]=] PROPERTIES SKIP_RETURN_CODE 77)\n`,
    );
    return { "CTestTestfile.cmake": lines.join(""), ...Object.fromEntries(tests.map(({ path, script }) => [path, script])) };
  },
  commands: ["ctest", "ctest -V", "ctest --output-on-failure -j2"],
  nameOf: (file, { suite, name }) => [file.name, ...(suite ? [suite] : []), word(name)].join("."),
};

const javaClass = (file: ScenarioFile, suite: string | null) =>
  `${file.name[0]!.toUpperCase()}${file.name.slice(1)}${suite ? word(suite) : ""}Test`;

const maven: Project = {
  framework: "maven",
  parserOf: () => "maven",
  version: ["mvn --version | head -1 | sed 's/\\x1b\\[[0-9;]*m//g'"],
  files: (scenario) => ({
    "pom.xml": pom,
    ...Object.fromEntries(
      scenario.files.flatMap((file) =>
        suites(file).map((suite) => {
          const name = javaClass(file, suite);
          const tests = inSuite(file, suite).map((test) => {
            const code = body(test.kind, java, [
              `[INFO] m.${name}.${word(test.name)} -- Time elapsed: 0.001 s`,
              `${word(test.name)}(m.${name})  Time elapsed: 0.001 s`,
            ]);
            return `@org.junit.jupiter.api.Test\n${test.kind === "skipped" ? "@org.junit.jupiter.api.Disabled\n" : ""}void ${word(test.name)}() {\n${code}\n}\n`;
          });
          const setUp = file.broken
            ? '@org.junit.jupiter.api.BeforeAll\nstatic void open() { throw new RuntimeException("does not load"); }\n'
            : "";
          return [`src/test/java/m/${name}.java`, `package m;\n\nclass ${name} {\n${setUp}${tests.join("\n")}}\n`];
        }),
      ),
    ),
  }),
  commands: ["mvn -B -o test -Dsurefire.useFile=false -Dsurefire.reportFormat=plain"],
  nameOf: (file, { suite, name }) => `m.${javaClass(file, suite)}.${word(name)}`,
};

const pom = `<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion><groupId>m</groupId><artifactId>m</artifactId><version>1</version>
<properties><maven.compiler.source>17</maven.compiler.source><maven.compiler.target>17</maven.compiler.target><project.build.sourceEncoding>UTF-8</project.build.sourceEncoding></properties>
<dependencies><dependency><groupId>org.junit.jupiter</groupId><artifactId>junit-jupiter</artifactId><version>5.11.4</version><scope>test</scope></dependency></dependencies>
<build><plugins><plugin><artifactId>maven-surefire-plugin</artifactId><version>3.5.2</version></plugin></plugins></build></project>
`;

export const projects: Project[] = [
  pytest(`${place}/pytest-9/bin/python`, "9", ["-rA", "-v", "-rA -v -s --color=yes", "-q -rA"]),
  pytest(`${place}/pytest-6/bin/python`, "6", ["-rA", "-v"]),
  unittest("python3.8", "3.8"),
  unittest("python3.12", "3.12.1"),
  unittest("python3.13", "3.13"),
  goTest,
  cargo,
  vitest,
  jest,
  mocha,
  ctest,
  maven,
];
