/**
 * The commands of `docs/guides/` as they stand. A block with a file's name behind its language is that file; `sh` is run;
 * each line of a `text` block behind it must be in what it printed, with `…` for anything and white space for white space.
 */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { before, test } from "node:test";
import { scratchFolder } from "./fakes/machine/scratch-folder.ts";
import { root } from "./fakes/processes/cli.ts";
import { consumersPlace } from "./interop/consumers/place.ts";
import { taughtModel, vllmPlace } from "./interop/vllm/place.ts";
import { type Need, need, needs } from "./needs.ts";

const guides = join(root, "docs/guides");
const scratch = scratchFolder("guides");

type Block = { language: string; file: string; text: string };
type Guide = { name: string; needs: Need[]; after: string | null; blocks: Block[] };

function read(name: string): Guide {
  const text = readFileSync(join(guides, `${name}.md`), "utf8");
  const asked = /<!-- needs: (.*) -->/.exec(text)?.[1]?.split(" ") ?? [];
  const blocks = [...text.matchAll(/^```(\w+) ?(.*)\n([\s\S]*?)^```$/gm)];
  return {
    name,
    needs: needs.filter((one) => asked.includes(one)),
    after: /<!-- after: (.*) -->/.exec(text)?.[1] ?? null,
    blocks: blocks.map(([, language = "", file = "", content = ""]) => ({ language, file, text: content })),
  };
}

before(async () => {
  await mkdir(bin(), { recursive: true });
  await writeFile(join(bin(), "alidade"), `#!/bin/sh\nexec "${process.execPath}" "${join(root, "cli/cli.ts")}" "$@"\n`, { mode: 0o755 });
});

const all = readdirSync(guides).map((file) => read(file.replace(/\.md$/, "")));

// Those that go on from another come behind it.
for (const guide of all.toSorted((a, b) => Number(a.after !== null) - Number(b.after !== null)))
  test(`the guide ${guide.name} does what it says`, { timeout: 600_000 }, async (t) => {
    for (const one of guide.needs) if (!(await need(t, one))) return;
    const folder = join(scratch, guide.after ?? guide.name);
    await mkdir(folder, { recursive: true });
    let printed = "";
    for (const { language, file, text } of guide.blocks) {
      if (file !== "") {
        await mkdir(dirname(join(folder, file)), { recursive: true });
        await writeFile(join(folder, file), text);
      } else if (language === "sh") printed = await shell(text, folder, guide.needs);
      else if (language === "text")
        for (const line of text.trim().split("\n"))
          assert.ok(
            pattern(line).test(printed),
            `not printed: ${line}
${printed}`,
          );
    }
  });

test("each guide has commands, and says what they print", () => {
  for (const { name, blocks } of all)
    for (const language of ["sh", "text"])
      assert.ok(
        blocks.some((block) => block.language === language),
        `${name} has no ${language} block`,
      );
});

function pattern(line: string): RegExp {
  const words = line.trim().split(/\s*…\s*/);
  return new RegExp(words.map((text) => text.split(/\s+/).map(RegExp.escape).join("[ \\t]+")).join(".*"));
}

/** Standard output and errors of a script that ends with 0. */
function shell(script: string, cwd: string, wanted: Need[]): Promise<string> {
  const venvs = [...(wanted.includes("consumers") ? [consumersPlace()] : []), ...(wanted.includes("vllm") ? [vllmPlace()] : [])];
  const path = [bin(), ...venvs.map((place) => join(place, "venv/bin")), process.env.PATH];
  const env = {
    ...process.env,
    PATH: path.join(":"),
    PYTHONPATH: join(root, "clients/python"),
    MODEL: taughtModel(),
    TRL_EXPERIMENTAL_SILENCE: "1",
  };
  return new Promise((resolve, reject) => {
    execFile("bash", ["-euo", "pipefail", "-c", script], { cwd, env, maxBuffer: 2 ** 26 }, (error, stdout, stderr) => {
      if (error) reject(new Error(`${script}\nended with ${error.code}:\n${stdout}${stderr}`));
      else resolve(`${stdout}\n${stderr}`);
    });
  });
}

/** A folder with `alidade`, as an installation puts it on the PATH. */
function bin(): string {
  return join(scratch, "bin");
}
