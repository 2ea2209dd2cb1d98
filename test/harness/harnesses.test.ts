/** The real CLIs, on the host, against a scripted API: what the configuration really does. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { type PlayedHarness, playsFor } from "../../examples/demo/plays.ts";
import type { Harness, HarnessLaunch } from "../../harnesses/harness.ts";
import type { HarnessContext } from "../../harnesses/harness-context.ts";
import { harnesses } from "../../harnesses/registry.ts";
import { hermesTurn } from "../fakes/engines/hermes-turn.ts";
import { type ScriptedTurn, scriptedHarnessApi } from "../fakes/proxies/scripted-harness-api.ts";
import { addFiles, addScript } from "../fakes/rollouts/add-script.ts";
import { installedPack } from "./installed-pack.ts";
import { type Place, runCommand, temporaryPlace, writeBelow } from "./run-harness.ts";

/** A CLI starts in about a second; on a loaded machine in ten times that. */
const timeout = 300_000;

/** What a person types, without a word of where the model is. */
const personally: Record<string, string[]> = {
  pi: ["-p", "Repair add."],
  codex: ["exec", "--dangerously-bypass-approvals-and-sandbox", "Repair add."],
  "claude-code": ["-p", "--dangerously-skip-permissions", "Repair add."],
  "gemini-cli": ["--yolo", "-p", "Repair add."],
  "qwen-code": ["--yolo", "-p", "Repair add."],
  opencode: ["run", "Repair add."],
};

/** No setting keeps these from asking again after a server's error, for minutes; the proxy knows a retry for what it is. */
const triesAgain: ReadonlySet<string> = new Set(["qwen-code", "opencode"]);

/** What a project's own folder may hold for the harness: another model at another address. */
const elsewhere = "http://127.0.0.1:1/v1";
const ownSettings: Record<string, Record<string, string>> = {
  pi: { ".pi/settings.json": JSON.stringify({ defaultProvider: "openai", defaultModel: "other" }) },
  codex: {
    ".codex/config.toml": `model = "other"\nmodel_provider = "openai"\n[model_providers.alidade]\nname = "x"\nbase_url = "${elsewhere}"\n`,
  },
  "claude-code": {
    ".claude/settings.json": JSON.stringify({ model: "opus", env: { ANTHROPIC_BASE_URL: elsewhere, ANTHROPIC_MODEL: "other" } }),
  },
  "gemini-cli": {
    ".gemini/settings.json": JSON.stringify({ model: { name: "other" } }),
    ".env": `GOOGLE_GEMINI_BASE_URL=${elsewhere}\nGEMINI_MODEL=other\n`,
  },
  "qwen-code": {
    ".qwen/settings.json": JSON.stringify({
      model: { name: "other" },
      modelProviders: { openai: [{ id: "org/practice:free", baseUrl: elsewhere, envKey: "OPENAI_API_KEY" }] },
    }),
    ".env": `OPENAI_BASE_URL=${elsewhere}\nOPENAI_MODEL=other\n`,
  },
  opencode: {
    "opencode.json": JSON.stringify({ model: "alidade/other", provider: { alidade: { options: { baseURL: elsewhere } } } }),
  },
};

for (const harness of harnesses) {
  for (const mix of ["right", "wrong"] as const) {
    test(`${harness.name} plays the ${mix} fix with its own tools, and the tests say so`, { timeout }, async (t) => {
      const plays = playsFor(harness.name as PlayedHarness, addScript, mix);
      for (const pick of [0.1, 0.9]) {
        const script = plays.map((sampling) => scripted((sampling.structured_outputs as { choice: string[] }).choice, pick));
        const run = await launched(t, harness, script);
        if (run === null) return;
        assert.equal(run.ended.exit_code, 0, run.ended.stderr);
        assert.deepEqual(harness.end(run.ended), { failed: false, message: null });
        assert.equal(run.requests.length, plays.length);
        const [request] = run.requests.slice(-1);
        assert.match(JSON.stringify(request?.body), mix === "right" ? /pass 1/ : /fail 1/, "it sees what its own tests say");
        assert.equal(run.added, mix === "right" ? 5 : run.added);
        if (mix === "wrong") assert.ok(run.added === 6 || run.added === 1, String(run.added));
        const words = script.at(-1);
        assert.ok(words !== undefined && "text" in words && words.text !== undefined && run.ended.stdout.includes(words.text));
      }
    });
  }

  test(`${harness.name} asks once when the engine fails, and its end says why`, { timeout }, async (t) => {
    for (const status of triesAgain.has(harness.name) ? [400] : [500, 400]) {
      const run = await launched(t, harness, [{ status }]);
      if (run === null) return;
      assert.equal(run.requests.length, 1);
      const end = harness.end(run.ended);
      assert.equal(end.failed, true);
      assert.ok(end.message !== null && end.message !== "");
    }
  });

  test(`${harness.name} gives up where nothing listens`, { timeout }, async (t) => {
    const run = await launched(t, harness, [{ text: "unheard" }], { baseUrl: "http://127.0.0.1:1" });
    if (run === null) return;
    assert.equal(harness.end(run.ended).failed, true);
  });

  // What looks like an option, a file, a command or a number.
  for (const instruction of [
    "--version",
    "@add.js is wrong",
    "mail me@example.com:\n@Test\n@dd of (@add.js) is 'wrong'",
    "/init is broken",
    "- a list\n- of 'two' \"lines\"  $HOME",
    "add -5 to 1.5",
  ])
    test(`${harness.name} takes the instruction ${JSON.stringify(instruction)} as words, asks with key, model and tools, and leaves no file`, {
      timeout,
    }, async (t) => {
      const pack = await installedPack(t, harness);
      if (pack === null) return;
      const before = await readdir(pack.folder, { recursive: true });
      const run = await launched(t, harness, [{ text: "I see." }], { instruction });
      assert.equal(run?.requests.length, 1, run?.ended.stderr);
      const { headers, body } = run.requests[0] ?? assert.fail("no request");
      assert.ok(JSON.stringify(body).includes(JSON.stringify(instruction).slice(1, -1)), instruction);
      assert.ok([headers.authorization, headers["x-api-key"], headers["x-goog-api-key"]].some((value) => value?.endsWith("sk-local")));
      assert.equal(body.model, "org/practice:free");
      const offered = JSON.stringify(body.tools);
      for (const tool of toolsOfPlays(harness)) assert.ok(offered.includes(`"name":"${tool}"`), `${tool} in ${offered}`);
      assert.deepEqual(run.left.sort(), Object.keys(addFiles).sort(), "nothing in the workdir");
      assert.deepEqual(await readdir(pack.folder, { recursive: true }), before, "nothing in its pack");
    });

  test(`${harness.name} calls us whatever model and address the task's own folder names`, { timeout }, async (t) => {
    const run = await launched(t, harness, [{ text: "I see." }], {}, ownSettings[harness.name] ?? assert.fail());
    if (run === null) return;
    assert.equal(run.requests.length, 1, run.ended.stderr);
    assert.equal(run.requests[0]?.body.model, "org/practice:free");
  });

  test(`a person's own ${harness.name} command reaches us without a flag of ours`, { timeout }, async (t) => {
    const pack = await installedPack(t, harness);
    if (pack === null) return;
    await using place = await gitPlace();
    await using api = await scriptedHarnessApi([{ text: "I see." }]);
    const { env, files } = harness.configure(contextOf(place, api.url, pack.folder));
    await writeBelow(place.home, files);
    const argv = [join(pack.folder, "bin", harness.name), ...(personally[harness.name] ?? assert.fail())];
    // HOME is the person's own: what points at us does not depend on it.
    const own = { PATH: process.env.PATH ?? "", HOME: place.workdir, IS_SANDBOX: "1", ...env };
    const ended = await runCommand(argv, { cwd: place.workdir, env: own, signal: t.signal });
    assert.equal(ended.exit_code, 0, ended.stderr);
    assert.match(ended.stdout, /I see\./);
    assert.equal(api.requests[0]?.body.model, "org/practice:free");
    assert.ok(JSON.stringify(api.requests[0]?.body).includes("Repair add."));
  });
}

/** The answer `pick` of the way through the choices, as the API that the harness speaks to would say it. */
function scripted(choices: string[], pick: number): ScriptedTurn {
  const { text, calls } = hermesTurn(choices[Math.floor(choices.length * pick)] ?? "");
  return { ...(text === "" ? {} : { text }), ...(calls.length > 0 ? { tools: calls } : {}) };
}

function toolsOfPlays(harness: Harness): Set<string> {
  const turns = playsFor(harness.name as PlayedHarness, addScript, "mixed");
  const choices = turns.flatMap((sampling) => (sampling.structured_outputs as { choice: string[] }).choice);
  return new Set(choices.flatMap((choice) => hermesTurn(choice).calls.map((call) => call.name)));
}

async function launched(
  t: TestContext,
  harness: Harness,
  script: ScriptedTurn[],
  changed: Partial<HarnessContext> = {},
  more: Record<string, string> = {},
) {
  const pack = await installedPack(t, harness);
  if (pack === null) return null;
  await using place = await gitPlace();
  await using api = await scriptedHarnessApi(script);
  const launch: HarnessLaunch = harness.launch({ ...contextOf(place, api.url, pack.folder), ...changed });
  await writeBelow(place.home, launch.files);
  await writeBelow(place.workdir, more);
  // No Node on this PATH: a harness and its commands find the pack's.
  const env = { PATH: "/usr/sbin:/usr/bin:/bin", ...launch.env };
  const ended = await runCommand(launch.argv, { cwd: place.workdir, env, signal: t.signal });
  const left = (await readdir(place.workdir)).filter((name) => name !== ".git");
  return { ended, requests: [...api.requests], added: await sumOf(place), left };
}

/** What the repaired `add` makes of 2 and 3. */
async function sumOf(place: Place): Promise<number> {
  const code = Buffer.from(await readFile(join(place.workdir, "add.js"))).toString("base64");
  const { add } = (await import(`data:text/javascript;base64,${code}`)) as { add: (a: number, b: number) => number };
  return add(2, 3);
}

function contextOf(place: Place, baseUrl: string, pack: string): HarnessContext {
  const { home, workdir } = place;
  return { instruction: "Repair add.", baseUrl, apiKey: "sk-local", model: "org/practice:free", home, workdir, pack, contextWindow: 32768 };
}

async function gitPlace(): Promise<Place> {
  const place = await temporaryPlace(addFiles);
  execFileSync("git", ["init", "-q", "."], { cwd: place.workdir });
  return place;
}
