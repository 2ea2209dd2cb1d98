/**
 * Checks what the agent of a Harbor task finds in its container. The skills of the image are there. The services of MCP servers are
 * not.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { currentOwner } from "../../base/host/owner.ts";
import { deliverSkills } from "../../rollouts/deliver-skills.ts";
import { baseImage, ensureBaseImage } from "../../sandboxes/docker/images/made/base-image.ts";
import { docker } from "../../sandboxes/docker.ts";
import { setUp } from "../../sandboxes/index.ts";
import { plainRules } from "../../sandboxes/network/index.ts";
import { specOf } from "../../sandboxes/task-spec.ts";
import { loadTasks } from "../../tasks/load-tasks.ts";
import { type HarborFiles, harborFolder, harborTasks } from "../fakes/harbor-tasks.ts";
import { need } from "../needs.ts";

const timeout = 280_000;

/** The agent's sandbox of the first task with these files. */
async function agentOf(files: HarborFiles, signal: AbortSignal) {
  await ensureBaseImage({ signal });
  const [task] = await loadTasks(await harborFolder({ one: { ...harborTasks[0]?.files, ...files } }), { signal });
  assert.ok(task);
  const spec = specOf(task, { run_id: `agents${process.pid}`, owner: await currentOwner() });
  const sandbox = await docker.create(spec, signal);
  await setUp(sandbox, task, plainRules(), signal);
  return { task, sandbox, [Symbol.asyncDispose]: () => sandbox[Symbol.asyncDispose]() };
}

test("the skills of an image arrive in the harness's folder, and no link of it", { timeout }, async (t) => {
  if (!(await need(t, "docker"))) return;
  const dockerfile = `FROM ${baseImage}
WORKDIR /app
COPY skills /opt/skills
RUN ln -s /etc/passwd /opt/skills/fold/passwd && ln -s / /opt/skills/root && chmod 700 /opt/skills
`;
  const files = {
    "task.toml": '[environment]\nmemory_mb = 256\nstorage_mb = 256\nskills_dir = "/opt/skills"\n',
    "environment/Dockerfile": dockerfile,
    "environment/skills/fold/SKILL.md": "---\nname: fold\ndescription: Folds.\n---\nFold it.\n",
  };
  await using agent = await agentOf(files, t.signal);
  const { sandbox, task } = agent;
  await deliverSkills(sandbox, task, { skills: ".claude/skills" }, "/home/agent", t.signal);
  const found = await sandbox.exec([
    "sh",
    "-ec",
    "cd /home/agent/.claude; find . ! -type d; tail -n 1 skills/fold/SKILL.md; touch skills/fold/mine",
  ]);
  assert.deepEqual([found.exit_code, found.stdout], [0, "./skills/fold/SKILL.md\nFold it.\n"], found.stderr);
});

test("the service of an MCP server is out of the agent's reach, and the host's way in leads to it", { timeout }, async (t) => {
  if (!(await need(t, "docker"))) return;
  const files = {
    "task.toml": `[environment]
memory_mb = 256
storage_mb = 256
[[environment.mcp_servers]]
name = "shop"
transport = "streamable-http"
url = "http://shop:8123/mcp"
`,
    "environment/docker-compose.yaml": `services:
  shop:
    build: ./shop
    mem_limit: 64m
    command: [python3, -m, http.server, "8123"]
    healthcheck: { test: [CMD, python3, -c, "import socket; socket.create_connection(('127.0.0.1', 8123))"], interval: 1s, retries: 60 }
`,
    "environment/shop/Dockerfile": `FROM ${baseImage}\n`,
  };
  await using agent = await agentOf(files, t.signal);
  const { sandbox, task } = agent;
  assert.equal(task.environment.services?.shop?.network, "apart");
  const socket = await sandbox.connect("shop", 8123, t.signal);
  socket.write("GET / HTTP/1.0\r\n\r\n");
  const [answer] = await socket.take(1).toArray();
  assert.match(String(answer), /^HTTP\/1\.0 200/);
  const scan =
    "import socket,sys\nfor host in ('127.0.0.1', 'shop'):\n  try: socket.create_connection((host, 8123), 3); sys.exit(3)\n  except OSError as e: print(host, type(e).__name__)\n";
  const { exit_code, stdout, stderr } = await sandbox.exec(["python3", "-c", scan]);
  assert.deepEqual([exit_code, stdout], [0, "127.0.0.1 ConnectionRefusedError\nshop gaierror\n"], stderr);
});
