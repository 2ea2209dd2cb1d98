/** The Python package as `pip install ./clients/python` brings it: built into a wheel, installed into an empty environment. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { exporters } from "../../exporters/registry.ts";
import { scratchFolder } from "../fakes/machine/scratch-folder.ts";
import { root } from "../fakes/processes/cli.ts";
import { need } from "../needs.ts";

const source = join(root, "clients/python");
const scratch = scratchFolder("wheel");

test("the installed wheel has every loader, each importable where no trainer is installed, and a live trainer's file wants that trainer alone", async (t) => {
  if (!(await need(t, "pip"))) return;
  const before = await filesOf(source);
  const python = join(scratch, "venv/bin/python");
  await run("python3", ["-m", "venv", join(scratch, "venv")]);
  await run(python, ["-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", scratch, source]);
  const wheel = (await readdir(scratch)).find((name) => name.endsWith(".whl"));
  assert.match(wheel ?? "none", /^alidade-.*-py3-none-any\.whl$/);
  await run(python, ["-m", "pip", "install", "--quiet", "--no-index", "--no-deps", join(scratch, wheel ?? "")]);

  // Isolated (-I): neither this folder nor PYTHONPATH can stand in for what is installed.
  const listed = await run(python, ["-I", "-c", importAll]);
  const modules = listed.split("\n");
  const loaders = exporters.map(({ docs }) => docs.loader).filter((loader) => loader !== null);
  for (const loader of loaders) assert.ok(modules.includes(loader), `${loader} is not in the wheel`);
  const ours = before.filter((path) => path.startsWith("alidade/") && path.endsWith(".py"));
  assert.equal(modules.length, ours.length, `in the wheel: ${modules.join(", ")}; beside it: ${ours.join(", ")}`);

  await run(python, ["-I", "-c", (await importsOfReadme()).join("\n")]);
  assert.deepEqual(await filesOf(source), before, "building leaves nothing beside the sources");
});

const importAll = `
import importlib, pkgutil
import alidade
names = ["alidade"] + [module.name for module in pkgutil.walk_packages(alidade.__path__, "alidade.")]
for name in names:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as missing:
        # A file over a trainer's own classes wants that trainer, and nothing else that is not here.
        if missing.name.partition(".")[0] not in ("areal", "nemo_gym", "skyrl", "verifiers", "verl") or name.count(".") > 1: raise
print("\\n".join(names))`;

/** What the README's example takes from us; the rest of it is PyTorch's. */
async function importsOfReadme(): Promise<string[]> {
  const [, example = ""] = /```python\n([\s\S]*?)```/.exec(await readFile(join(root, "README.md"), "utf8")) ?? [];
  assert.doesNotMatch(example, /sys\.path/);
  const lines = example.split("\n").filter((line) => /^from alidade\b/.test(line));
  assert.ok(lines.length > 0, example);
  return lines;
}

async function filesOf(folder: string): Promise<string[]> {
  const paths = await readdir(folder, { recursive: true });
  return paths.filter((path) => !path.includes("__pycache__")).toSorted();
}

async function run(command: string, args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(command, args, { env: { ...process.env, PYTHONPATH: undefined } });
  return stdout.trim();
}
