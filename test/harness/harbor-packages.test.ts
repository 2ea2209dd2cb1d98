/**
 * A task as Harbor's documentation writes one: a plain Debian, an agent that installs what it needs, and tests that install
 * what they need. Two real harnesses solve it by their own shell tools, and one that does nothing earns nothing.
 */
import assert from "node:assert/strict";
import { glob } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { readRollouts } from "../../rollouts/index.ts";
import { baseImage, ensureBaseImage } from "../../sandboxes/docker/images/made/base-image.ts";
import { ScriptedEngine, type ScriptedReply } from "../fakes/engines/scripted-engine.ts";
import { harborFolder } from "../fakes/harbor-tasks.ts";
import { scratchFolder } from "../fakes/machine/scratch-folder.ts";
import { cli } from "../fakes/processes/cli.ts";
import { need } from "../needs.ts";
import { persistent } from "./with-retries.ts";

const scratch = scratchFolder("harbor-packages");

/** Two packages in a repository of the image: what a mirror is elsewhere. One has a user of its own, as servers have. */
const repository = `#!/bin/bash
set -e
mkdir -p /repo && cd /repo
pack() {
  mkdir -p /t/DEBIAN /t/usr/bin
  printf 'Package: %s\\nVersion: 1.0\\nArchitecture: all\\nMaintainer: test <test@example.org>\\nDescription: %s\\n' "$1" "$1" > /t/DEBIAN/control
  printf '#!/bin/sh\\nset -e\\nuseradd --system %s\\ninstall -d -o %s -m 750 /var/lib/%s\\n' "$1" "$1" "$1" > /t/DEBIAN/postinst
  printf '#!/bin/sh\\n%s\\n' "$2" > "/t/usr/bin/$1"
  chmod 755 /t/DEBIAN/postinst "/t/usr/bin/$1"
  dpkg-deb --root-owner-group -b /t "$1.deb"
  { dpkg-deb -f "$1.deb"; echo "Filename: ./$1.deb"; echo "Size: $(stat -c %s "$1.deb")"; echo "SHA256: $(sha256sum "$1.deb" | cut -d' ' -f1)"; echo; } >> Packages
  rm -r /t
}
pack greeter 'echo hello from greeter'
pack checker 'grep -qx "hello from greeter" "$1"'
rm -f /etc/apt/sources.list.d/* && echo 'deb [trusted=yes] file:/repo ./' > /etc/apt/sources.list
`;

const task = {
  "task.toml": `schema_version = "1.4"
[task]
name = "alidade/install-greeter"
[agent]
timeout_sec = 300.0
[verifier]
timeout_sec = 120.0
[environment]
cpus = 1
memory_mb = 1024
storage_mb = 1024
`,
  "instruction.md": "Install the package `greeter`, run it, and write what it prints into `/app/greeting.txt`.\n",
  "environment/Dockerfile": `FROM ${baseImage}\nCOPY repository.sh /tmp/\nRUN bash /tmp/repository.sh && rm /tmp/repository.sh\nWORKDIR /app\n`,
  "environment/repository.sh": repository,
  "solution/solve.sh": "#!/bin/bash\napt-get update\napt-get install -y greeter\ngreeter > /app/greeting.txt\n",
  "tests/test.sh": `#!/bin/bash
apt-get update
apt-get install -y checker
if checker /app/greeting.txt && [ "$(stat -c %U /var/lib/greeter)" = greeter ]; then
  echo 1 > /logs/verifier/reward.txt
else
  echo 0 > /logs/verifier/reward.txt
fi
`,
};

async function rewardOf(harness: string, reply: (isFirst: boolean) => ScriptedReply): Promise<unknown[]> {
  await using engine = await ScriptedEngine.start(({ messages }) => reply(!messages.some(({ role }) => role === "tool")));
  const [folder, out] = [await harborFolder({ greeter: task }), join(scratch, `${harness}-${Math.random()}`)];
  const { code, stderr } = await cli(["run", folder, "--harness", harness, "--engine", engine.url, "-n", "1", "-o", out]);
  const [file] = await Array.fromAsync(glob(join(out, "*/rollouts.jsonl")));
  const last = (await readRollouts(join(file ?? assert.fail(stderr), ".."))).at(-1);
  return [code, last?.verdict?.reward, last?.verdict?.status, ...(code === 0 ? [] : [stderr])];
}

for (const name of ["pi", "codex"] as const)
  test(`${name} installs a package by its own shell, and tests that install theirs pay it`, { timeout: 400_000 }, async (t) => {
    if (!(await need(t, "docker")) || !(await need(t, `harness:${name}`))) return;
    await ensureBaseImage({ signal: t.signal });
    const solve = "apt-get update && apt-get install -y greeter && greeter > /app/greeting.txt";
    const { name: tool, arguments: given } = persistent[name].shell(solve);
    const solves = (isFirst: boolean) => (isFirst ? { tool_calls: [{ name: tool, arguments: JSON.stringify(given) }] } : { text: "Done." });
    assert.deepEqual(await rewardOf(name, solves), [0, 1, "graded"]);
    assert.deepEqual(await rewardOf(name, () => ({ text: "Done." })), [0, 0, "graded"]);
  });
