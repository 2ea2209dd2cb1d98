import assert from "node:assert/strict";
import { isAbsolute, normalize } from "node:path";
import { test } from "node:test";
import { AlidadeError } from "../../base/errors.ts";
import { commandHarness } from "../../harnesses/command.ts";
import { triedContext as context } from "../../harnesses/contract.ts";
import type { HarnessLaunch } from "../../harnesses/harness.ts";
import { packPlatforms } from "../../harnesses/harness.ts";
import { harnesses, harnessFor, harnessNamed } from "../../harnesses/registry.ts";

for (const harness of harnesses) {
  test(`${harness.name} pins every package to one version, its own among them`, () => {
    const versions = Object.values(harness.packages);
    assert.ok(versions.length > 0);
    for (const version of versions) assert.match(version, /^\d+\.\d+\.\d+(-[\w.]+)?$/);
    assert.ok(harness.version !== null && versions.includes(harness.version));
  });

  test(`${harness.name} names its program below its own packages on every platform`, () => {
    for (const platform of packPlatforms) {
      const paths = [harness.program?.(platform) ?? "", ...(harness.unneeded?.(platform) ?? [])];
      for (const path of paths) {
        assertRelative(path);
        assert.ok(
          // Or a package for this platform alone, named after its command.
          [...Object.keys(harness.packages), `${harness.commands[0]}-${platform}`].some((name) => path.startsWith(`node_modules/${name}`)),
          path,
        );
      }
    }
  });

  test(`${harness.name} starts from its pack, with the instruction as its last argument, its input or its command`, () => {
    const { argv, env, files } = harness.launch(context);
    assert.ok(argv[0]?.startsWith(`${context.pack}/`));
    // Each way nothing in an instruction is taken for an option.
    const argument = argv.at(-2) === "--" ? argv.at(-1) : argv.at(-1)?.replace(/^--[a-z]+=/, "");
    const prompts = Object.values(files).flatMap((text) => /^prompt = (".*")$/m.exec(text)?.[1] ?? []);
    const told = prompts.length === 1 ? JSON.parse(prompts[0] ?? "") : harness.input === undefined ? argument : files[harness.input];
    assert.equal(told, context.instruction);
    assert.equal(env.HOME, context.home);
  });

  const ways = { launch: harness.launch(context), configure: { argv: [], ...harness.configure(context) } } satisfies Record<
    string,
    HarnessLaunch
  >;
  for (const [way, { argv, env, files }] of Object.entries(ways)) {
    test(`${harness.name}'s ${way} carries address, key, model and window to it`, () => {
      const all = JSON.stringify([argv, env, files]).replaceAll("\\", "");
      assert.ok(all.includes(context.baseUrl));
      assert.ok(all.includes(context.apiKey));
      assert.ok(all.includes(context.model));
      if (harness.fixedWindow === undefined) assert.ok(all.includes("32768"));
    });

    test(`${harness.name}'s ${way} names its base URL without a double slash or a double /v1`, () => {
      for (const [found] of JSON.stringify([argv, env, files]).matchAll(/http:[^"\\]*/g))
        assert.match(found, /^http:\/\/127\.0\.0\.1:4000(\/v1|\/mcp\/[\w-]+)?$/);
    });
  }

  test(`${harness.name} knows no window where none is known`, () => {
    const { env, files } = harness.launch({ ...context, contextWindow: null });
    assert.doesNotMatch(JSON.stringify([env, files]), /contextWindow|model_context_window|MAX_CONTEXT_TOKENS/);
  });

  test(`${harness.name} refuses an instruction that no command line can carry, with a code`, () => {
    for (const instruction of ["x".repeat(200_000), "a\0b"]) {
      assert.throws(
        () => harness.launch({ ...context, instruction }),
        (error) => error instanceof AlidadeError && error.code === "task_invalid" && error.param === "instruction",
      );
    }
  });

  test(`${harness.name} failed when its exit code says so or when nothing tells how it ended`, () => {
    assert.deepEqual(harness.end({ exit_code: 0, stdout: "All done.\n", stderr: "" }), { failed: false, message: null });
    assert.deepEqual(harness.end({ exit_code: 1, stdout: "", stderr: "warning\nno key\n" }), { failed: true, message: "no key" });
    assert.equal(harness.end({ exit_code: null, stdout: "{{{\n", stderr: "" }).failed, true);
  });

  test(`${harness.name} is known by its command however it is called`, () => {
    const [command = ""] = harness.commands;
    const [name = ""] = Object.keys(harness.packages);
    for (const line of [
      [command],
      [`/usr/bin/${command}`],
      [`C:\\npm\\${command}.cmd`],
      ["env", "A=b", command, "x"],
      ["npx", "-y", `${name}@1.2.3`],
      ["npx", name],
    ]) {
      assert.equal(harnessFor(line)?.name, harness.name, line.join(" "));
    }
    assert.equal(harnessNamed(harness.name), harness);
  });
}

test("harness names and commands are distinct", () => {
  for (const names of [harnesses.map((harness) => harness.name), harnesses.flatMap((harness) => harness.commands)]) {
    assert.equal(new Set(names).size, names.length);
  }
});

test("a program that is no harness is not taken for one", () => {
  for (const line of [[], [""], ["env"], ["npx"], ["python3", "codex"], ["codexx"], ["git", "commit"]])
    assert.equal(harnessFor(line), null, line.join(" "));
});

test("an unknown harness is refused with the names that there are", () => {
  assert.throws(
    () => harnessNamed("cody"),
    /There is no harness "cody"; there are: pi, codex, claude-code, gemini-cli, qwen-code, opencode\./,
  );
});

test("Pi's JSON mode is believed over its exit code", () => {
  const event = { type: "message_end", message: { role: "assistant", stopReason: "error", errorMessage: "502: engine gone" } };
  const stdout = `${JSON.stringify(event)}\n${JSON.stringify({ type: "agent_end" })}\nbroken {"stopReason" "message_end"\n`;
  assert.deepEqual(harnessNamed("pi").end({ exit_code: 0, stdout, stderr: "" }), { failed: true, message: "502: engine gone" });
});

test("Claude Code's own verdict is believed over its exit code", () => {
  const stdout = '{"type":"result","is_error":true,"result":"API Error: 400"}\n';
  assert.deepEqual(harnessNamed("claude-code").end({ exit_code: 0, stdout, stderr: "" }), { failed: true, message: "API Error: 400" });
});

test("Gemini CLI's last word is believed over its exit code", () => {
  const end = (stderr: string) => harnessNamed("gemini-cli").end({ exit_code: 0, stdout: "", stderr });
  const message = "[ERROR] Model stream ended without a finish reason.";
  assert.deepEqual(end(`YOLO mode is enabled.\n${message}\n`), { failed: true, message });
  assert.deepEqual(end("YOLO mode is enabled.\nRipgrep is not available.\n"), { failed: false, message: null });
});

test("one's own command gets its placeholders filled once and every API shape's variables", () => {
  const harness = commandHarness({
    argv: ["agent", "--url={base_url}", "{instruction}", "{other}"],
    env: { MODEL: "{model}", CACHE: "{home}/c" },
  });
  const { argv, env, files } = harness.launch({ ...context, instruction: "say {model}" });
  assert.deepEqual(argv, ["agent", "--url=http://127.0.0.1:4000", "say {model}", "{other}"]);
  assert.equal(env.OPENAI_BASE_URL, "http://127.0.0.1:4000/v1");
  assert.equal(env.ANTHROPIC_BASE_URL, "http://127.0.0.1:4000");
  assert.equal(env.GOOGLE_GEMINI_BASE_URL, "http://127.0.0.1:4000");
  assert.equal(env.MODEL, context.model);
  assert.equal(env.CACHE, "/home/agent/c");
  for (const name of ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"]) assert.equal(env[name], context.apiKey);
  assert.deepEqual(files, {});
});

function assertRelative(path: string) {
  assert.ok(path !== "" && !isAbsolute(path) && normalize(path) === path && !path.startsWith(".."), path);
}
