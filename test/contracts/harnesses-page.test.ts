/** The page on harnesses and what the harnesses are configured by are one: neither has a setting that the other lacks. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { parse as parseToml } from "smol-toml";
import { triedContext } from "../../harnesses/contract.ts";
import { harnesses } from "../../harnesses/registry.ts";
import { harnessesPage, path } from "./harnesses-page.ts";

test("docs/harnesses.md says what the harnesses are configured by", async () => {
  const page = await readFile(path, "utf8");
  assert.equal(page, harnessesPage(page), "run: node test/contracts/harnesses-page.ts");
});

for (const harness of harnesses) {
  test(`${harness.name}: whatever its configuration holds is one of its settings`, () => {
    const keys = (place: string): string[] => (harness.settings ?? []).filter((setting) => setting.place === place).map(({ key }) => key);
    const { argv, env, files } = harness.launch(triedContext);
    const recorded = harness.configure(triedContext);

    // The program, the settings in their order, and then the instruction.
    const later = harness.resumes ? harness.launch({ ...triedContext, dialogue: "goes_on" }).argv : [];
    const all = keys("argv").filter((key) => key.startsWith("--"));
    for (const options of [optionsOf(argv), optionsOf(later)])
      assert.deepEqual(
        options,
        all.filter((key) => options.includes(key)),
      );
    assert.deepEqual(new Set([...optionsOf(argv), ...optionsOf(later)]), new Set(all));
    for (const name of Object.keys({ ...env, ...recorded.env }))
      if (name !== "OPENCODE_CONFIG_CONTENT") assert.ok(keys("env").includes(name), name);

    const content = env.OPENCODE_CONFIG_CONTENT === undefined ? {} : { "opencode.json": env.OPENCODE_CONFIG_CONTENT };
    for (const [file, text] of Object.entries({ ...files, ...recorded.files, ...content })) {
      // What it holds of ours is the variables again, or the instruction.
      if (!/\.(json|toml)$/.test(file) || file === ".alidade-settings.json" || file.includes("/commands/")) continue;
      const value: unknown = file.endsWith(".toml") ? parseToml(text) : JSON.parse(text);
      for (const leaf of leaves(value))
        assert.ok(
          keys(file).some((key) => leaf === key || leaf.startsWith(`${key}.`)),
          `${file}: ${leaf}`,
        );
    }
  });

  test(`${harness.name}: each setting says why, and what it is where that depends on the run`, () => {
    assert.ok((harness.settings ?? []).length > 0);
    for (const { key, value, says, why } of harness.settings ?? []) {
      assert.match(why, /^\S.{5,}[^.]$/, key);
      assert.equal(typeof value === "function", says !== undefined, key);
    }
  });
}

function optionsOf(argv: readonly string[]): string[] {
  const end = argv.includes("--") ? argv.indexOf("--") : argv.length;
  // `--last` is no option of its own: it is the value of `resume`.
  return argv.slice(1, end).filter((word) => word.startsWith("--") && !word.startsWith("--prompt=") && word !== "--last");
}

/** Paths of keys, joined by dots, down to what is no object. */
function leaves(value: unknown, path: string[] = []): string[] {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return [path.join(".")];
  const entries = Object.entries(value);
  return entries.length === 0 ? [path.join(".")] : entries.flatMap(([key, inner]) => leaves(inner, [...path, key]));
}
