/** What holds for every harness, built in or a user's own: `alidade plugin check` and the contract tests run it. */
import assert from "node:assert/strict";
import { isAbsolute, normalize } from "node:path";
import type { ContractCheck } from "../base/host/plug-ins.ts";
import type { Harness, HarnessLaunch } from "./harness.ts";
import type { HarnessContext } from "./harness-context.ts";

/** What a harness is started with when it is tried: words and marks that a shell or a config file could take apart. */
export const triedContext: HarnessContext = {
  instruction: '--fix @the bug; it\'s "here"\nsecond line',
  baseUrl: "http://127.0.0.1:4000",
  apiKey: "sk-local-7f3a",
  model: 'org/model "7b":free',
  home: "/home/agent",
  workdir: "/work",
  pack: "/opt/alidade/pack",
  contextWindow: 32768,
  tools: ["shop", "front-desk"].map((name) => ({ name, url: `http://127.0.0.1:4000/mcp/${name}` })),
};

export const harnessContract: readonly ContractCheck<Harness>[] = [
  {
    says: "it pins every package to one version",
    check({ packages }) {
      for (const version of Object.values(packages)) assert.match(version, /^\d+\.\d+\.\d+(-[\w.]+)?$/);
    },
  },
  {
    says: "its start carries address, key, model and instruction to it",
    check(harness) {
      const all = textOf(harness.launch(triedContext));
      for (const value of [triedContext.baseUrl, triedContext.apiKey, triedContext.model, ...triedContext.instruction.split("\n")])
        assert.ok(all.includes(plain(value)), `${value} is nowhere in what it is started with`);
    },
  },
  {
    says: "it gets the address of each server of tools, if it takes any",
    check(harness) {
      const all = textOf(harness.launch(triedContext));
      for (const { url } of triedContext.tools ?? [])
        assert.equal(all.includes(url), harness.tools === true, `${url} in what it is started with`);
    },
  },
  {
    says: "it looks for skills below its home, if at all",
    check({ skills = "skills" }) {
      assert.ok(!isAbsolute(skills) && normalize(skills) === skills && !skills.startsWith(".."), skills);
    },
  },
  {
    says: "if it goes on with a conversation, it is started otherwise for a later message, and gets that",
    check(harness) {
      if (!harness.resumes) return;
      const [begins, goesOn] = (["begins", "goes_on"] as const).map((dialogue) => harness.launch({ ...triedContext, dialogue }));
      assert.notDeepEqual(goesOn, begins);
      for (const line of triedContext.instruction.split("\n")) assert.ok(goesOn && textOf(goesOn).includes(plain(line)), line);
    },
  },
  {
    says: "it writes below its home only",
    check(harness) {
      for (const { files } of waysOf(harness))
        for (const path of Object.keys(files)) assert.ok(!isAbsolute(path) && normalize(path) === path && !path.startsWith(".."), path);
    },
  },
  {
    says: "it is handed no secret but the given key",
    check(harness) {
      for (const way of waysOf(harness)) {
        const all = JSON.stringify(way).replaceAll(triedContext.apiKey, "");
        for (const [name, value] of Object.entries(process.env))
          if (/KEY|TOKEN|SECRET|PASSWORD/.test(name) && value)
            assert.ok(!all.includes(value), `the value of ${name} is in what it is started with`);
      }
    },
  },
  {
    says: "it names its base URL without a double slash or a double /v1",
    check(harness) {
      for (const way of waysOf(harness))
        for (const [found] of JSON.stringify(way).matchAll(/http:[^"\\]*/g))
          assert.doesNotMatch(found.slice("http://".length), /\/\/|\/v1\/v1/);
    },
  },
  {
    says: "it says of an exit code of 0 that it did not fail, and of none that it did",
    check(harness) {
      assert.equal(harness.end({ exit_code: 0, stdout: "All done.\n", stderr: "" }).failed, false);
      assert.equal(harness.end({ exit_code: null, stdout: "{{{\n", stderr: "" }).failed, true);
    },
  },
];

function waysOf(harness: Harness): HarnessLaunch[] {
  return [harness.launch(triedContext), { argv: [], ...harness.configure(triedContext) }];
}

/** In a file of JSON or TOML a text is written in another way: backslashes say nothing here. */
function textOf(way: HarnessLaunch): string {
  return plain([...way.argv, ...Object.values(way.env), ...Object.values(way.files)].join("\n").replaceAll("\\n", "\n"));
}

function plain(text: string): string {
  return text.replaceAll("\\", "");
}
