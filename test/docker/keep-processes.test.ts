/** Tasks whose outcome is a server that runs: graded in the agent's own sandbox while its processes live, where the task or a run says so. */
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import type { AdmissionRecord } from "../../base/schema/admission.ts";
import type { RolloutRecord } from "../../base/schema/rollout.ts";
import { baseImage, ensureBaseImage } from "../../sandboxes/docker/images/made/base-image.ts";
import { ScriptedEngine, type ScriptedReply, type WireRequest } from "../fakes/engines/scripted-engine.ts";
import { type HarborFiles, harborFolder } from "../fakes/harbor-tasks.ts";
import { ownCache } from "../fakes/machine/own-cache.ts";
import { scratchFolder } from "../fakes/machine/scratch-folder.ts";
import { cli, jsonOf } from "../fakes/processes/cli.ts";
import { chatHarness, runFile } from "../fakes/rollouts/small-task.ts";
import { need } from "../needs.ts";

const scratch = scratchFolder("keep-processes");
const cache = ownCache("keep-processes");
const signal = AbortSignal.timeout(900_000);

/** Python's own web server, as a person would leave it running. */
const serve = `printf 'served\\n' > /app/index.html
setsid python3 -m http.server 8123 --bind 127.0.0.1 --directory /app > /app/log 2>&1 < /dev/null &
i=0; while [ $i -lt 100 ]; do python3 -c "import urllib.request as u; u.urlopen('http://127.0.0.1:8123/')" 2>/dev/null && break; i=$((i + 1)); sleep 0.1; done`;

const ask = `import urllib.request
try:
    print(int(urllib.request.urlopen("http://127.0.0.1:8123/", timeout=10).read() == b"served\\n"))
except OSError:
    print(0)`;

const server: HarborFiles = {
  "task.toml": `[task]
name = "alidade/web-server"
[agent]
timeout_sec = 60.0
[verifier]
timeout_sec = 60.0
[environment]
cpus = 1
memory_mb = 512
storage_mb = 256
`,
  "instruction.md": "Serve `/app/index.html` with the line `served` at 127.0.0.1:8123, and leave the server running.\n",
  "environment/Dockerfile": `FROM ${baseImage}\nWORKDIR /app\nCOPY chat-harness.ts /opt/\n`,
  "solution/solve.sh": `#!/bin/bash\n${serve}\n`,
  "tests/ask.py": ask,
  "tests/test.sh": "#!/bin/bash\npython3 /tests/ask.py > /logs/verifier/reward.txt\n",
};

const kept = { ...server, "task.toml": `${server["task.toml"]}[metadata.alidade]\nkeep_processes = true\n` };

async function folderWith(files: HarborFiles): Promise<string> {
  return harborFolder({ one: { ...files, "environment/chat-harness.ts": await readFile(chatHarness, "utf8") } });
}

type Checked = { checks: { outcome: string; record: AdmissionRecord | null }[]; left_out: string[] };

async function checked(folder: string, ...more: string[]) {
  const result = await cli(["check", folder, "--times", "1", "--sandbox", "docker", "--json", ...more], { env: { ALIDADE_CACHE: cache } });
  const { checks, left_out } = jsonOf<Checked>(result);
  const record = checks[0]?.record ?? assert.fail(result.stderr + left_out.join());
  const rewards = (work: string) => record.gradings.filter((one) => one.work === work).map(({ reward, tier }) => [reward, tier]);
  return { codes: record.reasons.map(({ code }) => code), reasons: record.reasons, rewards, outcome: checks[0]?.outcome };
}

test("check names a solution that fails because its server is gone, by having it graded while that lives", {
  timeout: 300_000,
}, async (t) => {
  if (!(await need(t, "docker"))) return;
  await ensureBaseImage({ signal });
  const { codes, reasons, rewards } = await checked(await folderWith(server));
  assert.deepEqual([rewards("gold"), rewards("no-op"), codes], [[[0, "T1"]], [[0, "T1"]], ["gold_not_full", "needs_processes"]]);
  assert.match(
    reasons[1]?.message ?? "",
    /earns 1 while the processes that it leaves live, and 0 where they have ended: .*keep_processes = true/,
  );
  const broken = { ...server, "solution/solve.sh": "#!/bin/bash\ntrue\n" };
  assert.deepEqual((await checked(await folderWith(broken))).codes, ["gold_not_full"], "a solution that is wrong is not excused");
});

test("check grades a task that keeps processes with them, and says what a process that is left behind earns there", {
  timeout: 300_000,
}, async (t) => {
  if (!(await need(t, "docker"))) return;
  await ensureBaseImage({ signal });
  for (const [files, flags] of [
    [kept, []],
    [server, ["--keep-processes"]],
  ] as const) {
    const { codes, reasons, rewards, outcome } = await checked(await folderWith(files), ...flags);
    assert.deepEqual([rewards("gold"), rewards("no-op"), rewards("random-edit")], [[[1, "T0"]], [[0, "T0"]], [[0, "T0"]]]);
    assert.deepEqual([codes.at(-1), outcome], ["shared_grading", "quarantined"]);
    assert.deepEqual(rewards("surviving-daemon"), [[1, "T0"]]);
    const hack = reasons.find(({ message }) => message.startsWith("surviving-daemon"));
    assert.match(hack?.message ?? "", /leaves a process behind that goes on writing rewards earns 1 at tier T0, and no change 0/);
  }
});

const playing =
  (command: string) =>
  ({ messages }: WireRequest): ScriptedReply =>
    messages.some(({ role }) => role === "assistant")
      ? { text: "done" }
      : { tool_calls: [{ name: "bash", arguments: JSON.stringify({ command }) }] };

async function ran(name: string, files: HarborFiles, command: string, ...more: string[]) {
  await using engine = await ScriptedEngine.start(playing(command));
  const file = join(scratch, `${name}.yaml`);
  const harness = ["/opt/alidade/node/bin/node", "/opt/chat-harness.ts", "{instruction}"];
  const text = runFile({ engine: engine.url, tasks: [await folderWith(files)], command: harness });
  await writeFile(file, text.replace("sandbox: process\nunsafe_host: true", "sandbox: docker"));
  const result = await cli(["run", "-c", file, "-n", "1", "-o", join(scratch, name), ...more, "--json"], { env: { ALIDADE_CACHE: cache } });
  return { result, path: result.code === 2 ? "" : jsonOf<{ run: string }>(result).run };
}

const recordIn = ({ result }: { result: { stdout: string; code: number | null; stderr: string } }): RolloutRecord =>
  jsonOf<{ rollouts: RolloutRecord[] }>(result).rollouts[0] ?? assert.fail(result.stderr);

test("a run pays a server that an agent leaves running where the task or the run keeps it, at tier T0, and says so", {
  timeout: 300_000,
}, async (t) => {
  if (!(await need(t, "docker"))) return;
  await ensureBaseImage({ signal });
  const solved = await ran("kept", kept, serve);
  const { verdict } = recordIn(solved);
  assert.deepEqual(
    [verdict?.reward, verdict?.tier, verdict?.isolation, verdict?.evidence.kept_processes],
    [1, "T0", "shared", true],
    JSON.stringify(verdict),
  );
  const shown = await cli(["show", "--run", solved.path]);
  assert.match(shown.stdout, /processes +those of the agent lived while its work was graded/, shown.stdout + shown.stderr);
  assert.equal(recordIn(await ran("idle", kept, "true")).verdict?.reward, 0);
  assert.deepEqual([recordIn(await ran("flag", server, serve, "--keep-processes")).verdict?.reward], [1]);
  const ended = recordIn(await ran("ended", kept, serve, "--grading", "fresh")).verdict;
  assert.deepEqual([ended?.reward, ended?.tier, ended?.evidence.kept_processes], [0, "T1", undefined]);
  for (const [flags, said] of [
    [["--min-tier", "T1"], /min_tier is T1, and the task .*web-server is graded below it \(harbor: T0\)/],
    [["--admitted-only"], /task .*web-server: keep_processes is true, and no such task is admitted/],
    [["--keep-processes", "--grading", "fresh"], /keep_processes is true beside grading fresh/],
  ] as const) {
    const { result } = await ran(`refused-${flags[0].slice(2)}`, kept, serve, ...flags);
    assert.deepEqual([result.code, said.test(result.stdout + result.stderr)], [2, true], result.stdout + result.stderr);
  }
});

test("an agent whose processes kill the tests earns nothing, and is not left without a reward", {
  timeout: 300_000,
}, async (t) => {
  if (!(await need(t, "docker"))) return;
  await ensureBaseImage({ signal });
  const ends = "for p in /proc/[0-9]*; do p=$(basename $p); [ $p = $$ ] || kill -9 $p; done";
  const kill = `setsid sh -c 'while [ ! -e /tests/test.sh ]; do sleep 0.1; done; while :; do ${ends}; done' > /dev/null 2>&1 < /dev/null &`;
  const { verdict } = recordIn(await ran("killer", kept, kill));
  assert.deepEqual([verdict?.reward, verdict?.status], [0, "no_output"], JSON.stringify(verdict));
});
