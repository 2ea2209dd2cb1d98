/** Package managers inside: for the tests of a task, and for its agent. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { realpath } from "node:fs/promises";
import { createServer } from "node:http";
import { dirname } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import type { TreeFile } from "../../base/files/file-tree.ts";
import { currentOwner } from "../../base/host/owner.ts";
import type { Task } from "../../base/schema/task.ts";
import { checkTask } from "../../graders/check.ts";
import { docker } from "../../sandboxes/docker.ts";
import { plainRules } from "../../sandboxes/network/open-network.ts";
import { nodeInside, nodeMount } from "../../sandboxes/node-mount.ts";
import { specOf } from "../../sandboxes/task-spec.ts";
import { loadTasks } from "../../tasks/load-tasks.ts";
import type { LoadOptions } from "../../tasks/task-format.ts";
import { harborFolder } from "../fakes/harbor-tasks.ts";
import { type Need, need } from "../needs.ts";
import { packagesImage } from "./packages-image.ts";

const signal = AbortSignal.timeout(900_000);
const owner = { run_id: "packages", owner: await currentOwner() };
const run = promisify(execFile);

const name = "packages.example.org";

type Manager = {
  needs: Need[];
  /** Folders of this machine: the manager itself, where the image has none. */
  mounts: () => Promise<Record<string, string>>;
  /** Installs the package from a place, then asks its program. */
  script: (place: string) => string;
  /** How a server at an address answers. */
  answers: (path: string, at: string, files: TreeFile[]) => string | Buffer | undefined;
};

const contentOf = (files: TreeFile[], path: string) => files.find((file) => `/${file.path}` === path)?.content;

const managers: Record<string, Manager> = {
  apt: {
    needs: [],
    mounts: async () => ({}),
    script: (place) => `echo "deb [trusted=yes] ${place} ./" > /etc/apt/sources.list
apt-get update && apt-get install -y teller
[ "$(stat -c %U:%G:%a /var/lib/teller)" = teller:teller:2750 ] && teller`,
    answers: (path, _at, files) => contentOf(files, path),
  },
  pip: {
    needs: ["pip"],
    mounts: async () => {
      const { stdout } = await run("python3", ["-c", "import pip; print(pip.__path__[0])"]);
      return { "/opt/tools/pip": stdout.trim() };
    },
    script: (place) => `export PYTHONPATH=/opt/tools
index="--no-index --find-links ${place}"
case ${place} in http*) index="--index-url ${place}/simple --trusted-host ${name}";; esac
python3 -m pip install --break-system-packages $index teller
env -u PYTHONPATH python3 -m teller`,
    answers: (path, _at, files) =>
      path === "/simple/teller/" ? '<a href="/teller-1.0-py3-none-any.whl">teller-1.0-py3-none-any.whl</a>' : contentOf(files, path),
  },
  npm: {
    needs: [],
    mounts: async () => ({
      [nodeInside]: await nodeMount(),
      "/opt/tools/npm": await npmFolder(),
    }),
    script: (place) => `export PATH=$PATH:${nodeInside}/bin
case ${place} in http*) from="--registry ${place} teller";; *) from=${place}/teller-1.0.0.tgz;; esac
node /opt/tools/npm/bin/npm-cli.js install --no-audit --no-fund --prefix /usr/local -g $from
teller`,
    answers: (path, at, files) => {
      const version = { name: "teller", version: "1.0.0", bin: { teller: "teller.js" }, dist: { tarball: `${at}/teller-1.0.0.tgz` } };
      return path === "/teller"
        ? JSON.stringify({ name: "teller", "dist-tags": { latest: "1.0.0" }, versions: { "1.0.0": version } })
        : contentOf(files, path);
    },
  },
};

/** `solve`, `judge`: lines of scripts; the second one's end is the reward. */
async function taskOf(solve: string, judge: string, { mounts }: Manager, options: LoadOptions = {}): Promise<Task> {
  const files = {
    "task.toml": `[environment]\ndocker_image = "${await packagesImage()}"\nworkdir = "/app"\nmemory_mb = 512\nstorage_mb = 256\n`,
    "instruction.md": "Write the answer into answer.txt.\n",
    "solution/solve.sh": `#!/bin/bash\n${solve}\n`,
    "tests/test.sh": `#!/bin/bash\n(\n${judge}\n)\nif [ $? -eq 0 ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt\n`,
  };
  const [task] = await loadTasks(await harborFolder({ one: files }), { ...options, signal });
  assert.ok(task);
  return { ...task, environment: { ...task.environment, mounts: await mounts() } };
}

async function served({ answers }: Manager, files: TreeFile[]) {
  const server = createServer(({ url = "", headers }, response) => {
    const { pathname } = new URL(url, "http://any");
    const answer = answers(pathname, `http://${headers.host}`, files);
    response.writeHead(answer === undefined ? 404 : 200, { "content-type": /^[{]/.test(`${answer}`) ? "application/json" : "text/html" });
    response.end(answer);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  return Object.assign(server, { port: typeof address === "object" && address !== null ? address.port : 0 });
}

const rules = () => ({
  ...plainRules(),
  network: { resolve: async (host: string) => (host === name ? ["127.0.0.1"] : []), mayConnect: () => true },
});

async function rewards(task: Task): Promise<unknown[]> {
  const { runs } = await checkTask(task, docker, { ...owner, times: 1, rules: rules(), signal });
  return runs.map(({ attempt, verdict }) => {
    const { reward, evidence, error } = verdict;
    return reward === (attempt === "gold" ? 1 : 0) ? reward : { attempt, reward, error, evidence };
  });
}

for (const [named, manager] of Object.entries(managers)) {
  test(`tests that install by ${named}, from the image and from a server, pay the solution and no change nothing`, {
    timeout: 300_000,
  }, async (t) => {
    for (const one of ["docker", ...manager.needs] as const) if (!(await need(t, one))) return;
    const fromImage = await taskOf("echo 42 > answer.txt", manager.script(named === "apt" ? "file:/repo" : "/repo"), manager);
    assert.deepEqual(await rewards(fromImage), [1, 0]);
    await using sandbox = await docker.create(specOf(fromImage, owner), signal);
    await using server = await served(manager, await sandbox.readFiles("/repo"));
    const host = `${name}:${server.port}`;
    // The agent has none of it.
    const solve = "env | grep -qi _proxy || echo 42 > answer.txt";
    const options = { verifierNetwork: { allow: [host] } };
    assert.deepEqual(await rewards(await taskOf(solve, manager.script(`http://${host}`), manager, options)), [1, 0]);
  });
}

test("what an agent installs as root crosses to the tests, with its users and whose its files are", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "docker"))) return;
  const { apt } = managers as { apt: Manager };
  const solve = `echo 42 > answer.txt\n${apt.script("file:/repo")}`;
  const judge = '[ "$(stat -c %U:%G:%a /var/lib/teller)" = teller:teller:2750 ] && su -s /bin/sh teller -c teller';
  assert.deepEqual(await rewards(await taskOf(solve, judge, apt)), [1, 0]);
});

test("a folder of the image in which an agent leaves something stays whose it is", { timeout: 300_000 }, async (t) => {
  if (!(await need(t, "docker"))) return;
  const { apt } = managers as { apt: Manager };
  const [owned, shared] = ["/var/cache/apt/archives/partial", "/var/mail"];
  const solve = `echo 42 > answer.txt; touch ${owned}/left ${shared}/left`;
  const judge = `[ -e ${owned}/left ] && [ "$(stat -c %U:%G ${owned} ${shared} | xargs)" = "_apt:root root:mail" ]`;
  assert.deepEqual(await rewards(await taskOf(solve, judge, apt)), [1, 0]);
});

/** Where npm is that runs these tests, else the one of PATH. */
async function npmFolder(): Promise<string> {
  const program = process.env.npm_execpath ?? (await run("sh", ["-c", "command -v npm"])).stdout.trim();
  return dirname(dirname(await realpath(program)));
}
