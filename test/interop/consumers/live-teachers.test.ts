/** Checks that verl's own output and slime's fields have a service's teacher logprobs, each at its token. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { scratchFolder } from "../../fakes/machine/scratch-folder.ts";
import { root } from "../../fakes/processes/cli.ts";
import { serviceOf, taughtPlace } from "../../fakes/rollouts/taught-place.ts";
import { need } from "../../needs.ts";
import { consumerScripts, consumersPlace } from "./place.ts";

const scratch = scratchFolder("live-teachers");

type Live = { prompts: number[]; responses: number[]; mask: number[]; ids: number[][]; logprobs: number[][]; slime: number[] };
type Answer = { taught: Live[]; untaught: number };

test("a live rollout gives verl and slime the teacher's logprob of each trained token, and none where it was silent", {
  timeout: 300_000,
}, async (t) => {
  if (!(await need(t, "consumers"))) return;
  const { file, out, teacher } = await taughtPlace(t, scratch, { fails: (number) => (number === 2 ? 400 : null) });
  const more = `policy: { version: step-0, step: 0 }\nconcurrency: { run: 1 }\nteacher: { engine: "${teacher.url}", concurrency: 1 }\n`;
  await writeFile(file, `${await readFile(file, "utf8")}${more}`);
  const { url, token } = await serviceOf(t, { file, out });
  const python = join(consumersPlace(), "venv/bin/python");
  const script = join(consumerScripts, "live_teachers.py");
  const env = { ...process.env, PYTHONPATH: join(root, "clients/python"), PYTHONDONTWRITEBYTECODE: "1" };
  const { stdout } = await promisify(execFile)(python, ["-W", "ignore", script, url, token], { env, signal: t.signal });
  const { taught, untaught } = JSON.parse(stdout.trim().split("\n").at(-1) ?? "") as Answer;
  assert.deepEqual([taught.length, untaught], [1, 1]);
  for (const { prompts, responses, mask, ids, logprobs, slime } of taught) {
    const tokens = [...prompts, ...responses];
    const says = await scoredBy(teacher.url, tokens);
    assert.ok(mask.includes(1) && ids.length === tokens.length && slime.length === responses.length);
    for (const [at, trained] of mask.entries()) {
      const place = prompts.length + at;
      const expected = trained === 1 ? (says[place] ?? Number.NaN) : 0;
      assert.equal(ids[place - 1]?.[0], tokens[place]);
      // verl's tensor is float32.
      assert.ok(Math.abs((logprobs[place - 1]?.[0] ?? Number.NaN) - expected) < 1e-5, `token ${place}`);
      assert.equal(slime[at], expected);
    }
  }
});

async function scoredBy(url: string, prompt: number[]): Promise<(number | undefined)[]> {
  const response = await fetch(`${url}/v1/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "practice", prompt, max_tokens: 1, prompt_logprobs: 0 }),
  });
  const { choices } = (await response.json()) as { choices: { prompt_logprobs: (Record<string, { logprob: number }> | null)[] }[] };
  return prompt.map((id, at) => choices[0]?.prompt_logprobs[at]?.[String(id)]?.logprob);
}
