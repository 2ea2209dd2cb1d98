/** Harbor's task folders in containers: its own rewards, and what pays with it and not here. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { currentOwner } from "../../base/host/owner.ts";
import type { Verdict } from "../../base/schema/rollout.ts";
import type { Task } from "../../base/schema/task.ts";
import { checkTask } from "../../graders/check.ts";
import { ensureBaseImage } from "../../sandboxes/docker/images/made/base-image.ts";
import { docker } from "../../sandboxes/docker.ts";
import type { Sandbox } from "../../sandboxes/sandbox.ts";
import { loadTasks } from "../../tasks/load-tasks.ts";
import { gradedAfter } from "../fakes/graded-after.ts";
import { type HarborFiles, harborFolder, harborTasks } from "../fakes/harbor-tasks.ts";
import { need } from "../needs.ts";

const signal = AbortSignal.timeout(900_000);
const owner = { run_id: "harbor", owner: await currentOwner() };

async function loaded(files: HarborFiles): Promise<Task> {
  await ensureBaseImage({ signal });
  const [task] = await loadTasks(await harborFolder({ one: files }), { signal });
  assert.ok(task);
  return task;
}

const rewardsOf = ({ components }: Verdict) => Object.fromEntries(Object.entries(components).map(([name, { value }]) => [name, value]));

for (const { files, oracle, nop } of harborTasks) {
  const [name] = /alidade\/[\w-]+/.exec(files["task.toml"] ?? "") ?? [];
  test(`the solution and no change earn what Harbor gives them: ${name}`, { timeout: 300_000 }, async (t) => {
    if (!(await need(t, "docker"))) return;
    const { runs } = await checkTask(await loaded(files), docker, { ...owner, times: 1, signal });
    assert.deepEqual(
      runs.map(({ verdict }) => rewardsOf(verdict)),
      [oracle, nop],
      JSON.stringify(runs),
    );
  });
}

/** The verdict on what `command` leaves behind. */
function gradeAfter(command: string, task: Task): Promise<Verdict> {
  const deed = async (sandbox: Sandbox): Promise<void> => {
    const { exit_code, stderr } = await sandbox.exec(["sh", "-ec", command]);
    assert.equal(exit_code, 0, stderr);
  };
  return gradedAfter(task, deed, owner, signal);
}

/** Fails whatever the work is; its Python loads what Python loads by itself, and its tools are those of PATH. */
const judged: HarborFiles = {
  ...harborTasks[0]?.files,
  "tests/test.sh": `#!/bin/sh
python3 -c 'print(0)' > /tmp/out && cat /tmp/out > /logs/verifier/reward.txt
sleep 0.3
`,
};

const pays = `printf '#!/bin/sh\\necho 1\\n' >`;
const code = "import os; os.write(1, b'1'); os._exit(0)";
const planted = "echo 1 > /logs/verifier/reward.txt; echo '{\"reward\": 1}' > /logs/verifier/reward.json";
const writing = `(while :; do ${planted}; sleep 0.05; done) >/dev/null 2>&1 &`;
const userSite = 'd=$(python3 -m site --user-site); mkdir -p "$d"';
// Together where none is in the way of another: each attack costs two containers.
for (const [attack, command] of [
  [
    "a planted reward, tests of its own, and a process that goes on writing rewards",
    `mkdir -p /tests; ${pays} /tests/cat; ${pays} /tests/test.sh; ${planted}; ${writing}`,
  ],
  [
    "a link in the place of the logs",
    "rm -r /logs; mkdir -p /app/logs/verifier; echo 1 > /app/logs/verifier/reward.json; ln -s /app/logs /logs",
  ],
  ["a program in the place of the image's", `rm /usr/bin/python3; ${pays} /usr/bin/python3; chmod +x /usr/bin/python3`],
  [
    "what Python and the linker load by themselves",
    `echo "${code}" > "$(python3 -c 'import site; print(site.getsitepackages()[0])')/a.pth"; ${userSite}; echo "${code}" > "$d/sitecustomize.py"; echo "${code}" > "$d/usercustomize.py"; echo /app/none.so > /etc/ld.so.preload`,
  ],
] as const)
  test(`${attack} earns nothing`, { timeout: 300_000 }, async (t) => {
    if (!(await need(t, "docker"))) return;
    const verdict = await gradeAfter(command, await loaded(judged));
    assert.deepEqual([verdict.reward, verdict.status, verdict.tier], [0, "graded", "T1"], JSON.stringify(verdict));
  });

test("in the agent's own container a program in the image's place pays, a planted reward does not, and its processes have ended", {
  timeout: 300_000,
}, async (t) => {
  if (!(await need(t, "docker"))) return;
  const task = { ...(await loaded(judged)), grading: "shared" as const };
  for (const [reward, command] of [
    [0, planted],
    [1, `rm /usr/bin/python3; ${pays} /usr/bin/python3; chmod +x /usr/bin/python3`],
  ] as const) {
    const verdict = await gradeAfter(command, task);
    assert.deepEqual([verdict.reward, verdict.tier, verdict.isolation], [reward, "T0", "shared"], JSON.stringify(verdict));
  }
  const test = "#!/bin/sh\nrm -f /logs/verifier/*; sleep 0.3; [ -e /logs/verifier/reward.txt ] || echo 0 > /logs/verifier/reward.txt\n";
  const ended = await gradeAfter(writing, { ...(await loaded({ ...judged, "tests/test.sh": test })), grading: "shared" });
  assert.deepEqual([ended.reward, ended.tier, ended.isolation], [0, "T0", "shared"], JSON.stringify(ended));
});

test("what is held back is named, and a task may ask for all of the layer", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "docker"))) return;
  const shim = `${pays} /usr/local/bin/python3; chmod +x /usr/local/bin/python3`;
  const held = await gradeAfter(shim, await loaded(judged));
  assert.deepEqual([held.reward, held.evidence.held_back], [0, ["/usr/local/bin/python3"]]);
  const trusting = { ...judged, "task.toml": `${judged["task.toml"]}[metadata.alidade]\nhold_back = false\n` };
  assert.equal((await gradeAfter(shim, await loaded(trusting))).reward, 1);
});

test("work in the home and in /tmp, and what a hook collects, is there for the tests", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "docker"))) return;
  const files: HarborFiles = {
    ...harborTasks[0]?.files,
    "task.toml": `${harborTasks[0]?.files["task.toml"]}[[verifier.collect]]\ncommand = "cat ~/a /tmp/b > /app/both"\n`,
    "tests/test.sh": '[ "$(cat /app/both)" = "12" ] && echo 1 > /logs/verifier/reward.txt\n',
  };
  const verdict = await gradeAfter("printf 1 > ~/a; printf 2 > /tmp/b", await loaded(files));
  assert.equal(verdict.reward, 1, JSON.stringify(verdict));
});

test("tests that leave no reward for anything have none, and those that only this work silenced give it 0", {
  timeout: 300_000,
}, async (t) => {
  if (!(await need(t, "docker"))) return;
  const mute = await gradeAfter("true", await loaded({ ...judged, "tests/test.sh": "#!/bin/sh\ntrue\n" }));
  assert.deepEqual([mute.reward, mute.status], [null, "grader_error"]);
  assert.match(mute.error?.message ?? "", /neither \/logs\/verifier\/reward\.json nor/);
  const silenced = { ...judged, "tests/test.sh": "#!/bin/sh\n[ -e /app/silence ] || echo 0 > /logs/verifier/reward.txt\n" };
  const silent = await gradeAfter("touch /app/silence", await loaded(silenced));
  assert.deepEqual([silent.reward, silent.status], [0, "no_output"]);
});
