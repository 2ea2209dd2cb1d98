/** `docker-compose.yaml` of Harbor tasks: what becomes a service, and what is refused by file, service and key. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { AlidadeError } from "../../base/errors.ts";
import type { Environment } from "../../base/schema/task.ts";
import { loadTasks } from "../../tasks/load-tasks.ts";
import type { LoadOptions } from "../../tasks/task-format.ts";
import { harborFolder, harborTasks } from "../fakes/harbor-tasks.ts";

async function environmentOf(compose: string, files: Record<string, string> = {}, options: LoadOptions = {}): Promise<Environment> {
  const image = "FROM x\nWORKDIR /app\nUSER root\n";
  const all = { ...harborTasks[0]?.files, "environment/Dockerfile": image, "environment/docker-compose.yaml": compose, ...files };
  const [task] = await loadTasks(await harborFolder({ one: all }), { onLeftOut: undefined, ...options });
  assert.ok(task);
  return task.environment;
}

async function refusal(loading: Promise<unknown>): Promise<AlidadeError> {
  const error = await loading.then(
    () => assert.fail("it was loaded"),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof AlidadeError);
  return error;
}

const whole = `
version: "3.8"
services:
  main:
    build: { context: "\${CONTEXT_DIR}" }
    image: \${MAIN_IMAGE_NAME}
    command: ["sh", "-c", "sleep infinity"]
    environment: [DB=db:5432, "PRICE=5$$", "WHO=\${WHO:-them}"]
    depends_on: { db: { condition: service_healthy }, load: { condition: service_completed_successfully } }
    volumes: ["\${HOST_VERIFIER_LOGS_PATH}:\${ENV_VERIFIER_LOGS_PATH}"]
    healthcheck: { test: curl db, interval: 1m30s }
    deploy: { resources: { limits: { cpus: "\${CPUS}", memory: "\${MEMORY}" } } }
  db:
    image: postgres:16
    user: 999
    command: postgres -c 'max_connections = 9' "-d" 1
    environment: { POSTGRES_DB: a, PORT: 5432 }
    volumes: [data:/var/lib/data]
    networks: { default: { aliases: [database] } }
    container_name: the-db
    restart: always
    expose: [5432]
    mem_limit: 1g
    healthcheck: { test: [CMD, pg_isready], interval: 500ms, retries: 9, start_period: 2s }
  load:
    build: ./load
    depends_on: [db]
    deploy: { resources: { limits: { memory: 64mb, cpus: "0.5", pids: 9 } } }
volumes: { data: }
networks: { default: { driver: bridge } }
`;

test("MCP servers of a task become servers of tools: in the service that their address names, or in the agent's own container", async () => {
  const compose = "services:\n  shop: { image: acme/shop, networks: { default: { aliases: [store] } } }\n";
  const config = [
    '[[environment.mcp_servers]]\nname = "The Shop"\nurl = "http://shop:8000/mcp/"\ntransport = "streamable-http"',
    '[[environment.mcp_servers]]\nname = "store"\nurl = "http://store/"\ntransport = "http"',
    '[[environment.mcp_servers]]\nname = "own"\nurl = "http://127.0.0.1:9000/mcp"\ntransport = "streamable-http"',
    '[[environment.mcp_servers]]\nname = "files"\ncommand = "serve"\nargs = ["--root", "/app"]\ntransport = "stdio"',
  ].join("\n");
  const { tools } = await environmentOf(compose, { "task.toml": config });
  assert.deepEqual(
    tools?.map(({ name, service, port, path, command }) => ({ name, service, ...(port && { port, path }), ...(command && { command }) })),
    [
      { name: "the-shop", service: "shop", port: 8000, path: "/mcp" },
      { name: "store", service: "shop", port: 80, path: "/" },
      { name: "own", service: "main", port: 9000, path: "/mcp" },
      { name: "files", service: "main", command: ["serve", "--root", "/app"] },
    ],
  );
});

const shop = `services:
  main: { depends_on: [shop] }
  shop:
    build: ./shop
    environment: { DB: "redis://db:6379" }
    healthcheck: { test: curl http://localhost:8000/health }
  db: { image: redis, networks: { default: { aliases: [store] } } }
`;
const shopTools = '[[environment.mcp_servers]]\nname = "shop"\nurl = "http://shop:8000/mcp"\ntransport = "streamable-http"\n';
const shopFiles = {
  "task.toml": shopTools,
  "environment/shop/Dockerfile": "FROM scratch\nEXPOSE 8000\n",
  "environment/shop/serve.py": "serve(host='shop', port=8000)\n",
};

async function networksOf(files: Record<string, string>): Promise<{ networks: string[]; lines: string[] }> {
  const lines: string[] = [];
  const { services } = await environmentOf(
    shop,
    { ...shopFiles, ...files },
    {
      progress: (line) => {
        if (line.includes("mcp_servers")) lines.push(line);
      },
    },
  );
  return { networks: Object.values(services ?? {}).map(({ network }) => network), lines };
}

test("services of MCP servers stand apart, and those that they may speak to with them", async () => {
  assert.deepEqual(await networksOf({}), { networks: ["apart", "apart"], lines: [] });
});

for (const [title, files] of [
  ["words that are no host and no port", { "tests/shop.py": "open('/app/shop/file'); 'workshop'; shop_list; 18000; 1.8000; 8000.5\n" }],
  ["an instruction that tells the address of the tools", { "instruction.md": "Ask the shop at http://shop:8000/mcp for lamps.\n" }],
  ["a file that is no text", { "tests/data.bin": "\0 shop 8000 \0" }],
] as const)
  test(`services of MCP servers stand apart despite ${title}`, async () => {
    assert.deepEqual((await networksOf(files)).networks, ["apart", "apart"]);
  });

for (const [place, service, files] of [
  ["tests/helper.py", "shop", { "tests/helper.py": 'connect(("shop", n))\n' }],
  ["tests/helper.py", "shop", { "tests/helper.py": "get('http://localhost:8000/')\n" }],
  ["solution/solve.sh", "db", { "solution/solve.sh": "redis-cli -h STORE get a\n" }],
  ["environment/Dockerfile", "db", { "environment/Dockerfile": "FROM x\nWORKDIR /app\nUSER root\nENV URL=redis://u@db:6379\n" }],
  ["environment/app.js", "shop", { "environment/app.js": "fetch('http://shop/')\n" }],
  ["task.toml", "shop", { "task.toml": `[environment.healthcheck]\ncommand = "curl shop:8000"\n${shopTools}` }],
  ["task.toml", "db", { "task.toml": `[verifier.env]\nDB_HOST = "db"\n[environment]\n${shopTools}` }],
  ["instruction.md", "db", { "instruction.md": "The shop at http://shop:8000/mcp keeps its orders in the redis at db.\n\nUse `db` too." }],
  ["instruction.md", "shop", { "instruction.md": "See http://shop:9000/.\n" }],
  [
    "steps/one/tests/test.sh",
    "shop",
    {
      "task.toml": `${shopTools}[[steps]]\nname = "one"\n`,
      "steps/one/instruction.md": "Go.",
      "steps/one/tests/test.sh": "curl shop:8000\n",
    },
  ],
] as const)
  test(`services of MCP servers stay in the agent's network where ${place} speaks to ${service}: ${JSON.stringify(files).slice(0, 70)}`, async () => {
    const { networks, lines } = await networksOf(files);
    assert.deepEqual(networks, ["agent", "agent"]);
    assert.match(
      lines.join(),
      new RegExp(`task\\.toml: environment\\.mcp_servers: ${place} speaks to the service ${service}, so all services stay`),
    );
  });

test("services of MCP servers stay where main's own healthcheck asks one", async () => {
  const compose = shop.replace("depends_on: [shop]", 'healthcheck: { test: "curl shop:8000" }');
  const { services } = await environmentOf(compose, shopFiles);
  assert.deepEqual([services?.shop?.network, services?.db?.network], ["agent", "agent"]);
});

test("services stay in the agent's network where no MCP server is in one", async () => {
  const own = '[[environment.mcp_servers]]\nname = "own"\nurl = "http://127.0.0.1:9000/mcp"\ntransport = "streamable-http"\n';
  assert.deepEqual((await networksOf({ "task.toml": own })).networks, ["agent", "agent"]);
});

test("services of a compose file become the task's own, and main's words its sandbox's", async () => {
  const { services, env, healthcheck } = await environmentOf(
    whole,
    { "environment/load/Dockerfile": "FROM scratch\n" },
    { env: { WHO: "us" } },
  );
  assert.deepEqual(env, { DB: "db:5432", PRICE: "5$", WHO: "us" });
  assert.deepEqual(healthcheck, { command: "curl db", interval_seconds: 90, timeout_seconds: 30, retries: 3, start_period_seconds: 0 });
  assert.deepEqual(Object.keys(services ?? {}), ["db", "load"]);
  const { db, load } = services ?? {};
  assert.deepEqual(db, {
    image: "postgres:16",
    build: null,
    entrypoint: null,
    command: ["postgres", "-c", "max_connections = 9", "-d", "1"],
    env: { POSTGRES_DB: "a", PORT: "5432" },
    user: "999",
    workdir: null,
    healthcheck: { command: ["pg_isready"], interval_seconds: 0.5, timeout_seconds: 30, retries: 9, start_period_seconds: 2 },
    depends_on: {},
    aliases: ["the-db", "database"],
    network: "agent",
    expose: [],
    files: null,
    state: [],
    folders: ["/var/lib/data"],
    memory_mb: 1024,
    cpus: 1,
    pids: 256,
    disk_mb: 1024,
  });
  assert.match(load?.build?.context ?? "", /environment\/load$/);
  assert.deepEqual([load?.healthcheck, load?.depends_on], ["completed", { db: "started" }]);
  assert.deepEqual([load?.memory_mb, load?.cpus, load?.pids], [64, 0.5, 9]);
});

test("a task without services, or with main alone, is the task that it was", async () => {
  assert.equal((await environmentOf("services:\n  main: { environment: { A: 1 } }\n")).services, undefined);
});

const db = (line: string) => `services:\n  db:\n    image: postgres\n    ${line}\n`;

for (const [line, param, said] of [
  ["privileged: true", "services.db.privileged", /docker-compose\.yaml: services\.db\.privileged: is true: services have no capabilities/],
  ["cap_add: [NET_ADMIN]", "services.db.cap_add", /\["NET_ADMIN"\]: services have no capabilities/],
  ["security_opt: [seccomp=unconfined]", "services.db.security_opt", /profile/],
  ["network_mode: host", "services.db.network_mode", /is "host"/],
  ["pid: host", "services.db.pid", /is "host"/],
  ["ipc: host", "services.db.ipc", /is "host"/],
  ["devices: [/dev/kvm]", "services.db.devices", /no device/],
  ["ports: ['8080:80']", "services.db.ports", /nothing is published/],
  ["extends: { file: /etc/passwd, service: a }", "services.db.extends", /write the service out/],
  ["env_file: /etc/passwd", "services.db.env_file", /write environment/],
  ["sysctls: { a: 1 }", "services.db.sysctls", /a service may have .*healthcheck/],
  ["constructor: 1", "services.db.constructor", /remove it/],
  ["volumes: ['/:/host']", "services.db.volumes.0", /host's files are not given/],
  ["volumes: [./init:/init]", "services.db.volumes.0", /host's files are not given/],
  ["volumes: [{ type: bind, source: /, target: /host }]", "services.db.volumes.0", /host's files are not given/],
  ["build: { context: ../.. }", "services.db.build.context", /leaves the task's own folder/],
  ["build: { context: ., target: a }", "services.db.build", /target/],
  [`command: '$\{HOME:?none}'`, "services.db.command", /holds \$\{HOME:\?none\}: \$NAME, .* are read/],
  ["command: $HOME", "services.db.command", /holds \$HOME.*--task-env HOME/],
  ["environment: [HOME]", "services.db.environment", /NAME=value/],
  ["depends_on: [nothing]", "services.db.depends_on.nothing", /is no service: there are db/],
  ["depends_on: [db]", "services", /in a circle/],
  ["networks: [back]", "services.db.networks", /are back: main is in default/],
  ["mem_limit: lots", "services.db.mem_limit", /512m/],
  ["user: 'a b'", "services.db.user", /a user of the image/],
  ["hostname: localhost", "services.db", /localhost is taken/],
] as const)
  test(`a service with ${line} is refused`, async () => {
    const error = await refusal(environmentOf(db(line), { "environment/a": "" }));
    assert.equal(error.param, param, error.message);
    assert.match(error.message, said);
    assert.match(error.message, /docker-compose\.yaml/);
  });

for (const [title, compose, param] of [
  ["another file that is included", "include: [/etc/other.yaml]\nservices: {}\n", "include"],
  ["a network from outside", "services: {}\nnetworks: { default: { external: true } }\n", "networks.default.external"],
  ["a volume of a driver", "services: {}\nvolumes: { a: { driver_opts: { device: / } } }\n", "volumes.a.driver_opts"],
  ["another user of main", "services: { main: { user: root } }\n", "services.main.user"],
  ["a command of main's own", "services: { main: { command: serve } }\n", "services.main.command"],
  ["a folder of the host in main", "services: { main: { volumes: ['/:/host'] } }\n", "services.main.volumes"],
  [
    "a volume of two services",
    "services: { a: { image: x, volumes: ['v:/a'] }, b: { image: x, volumes: ['v:/b'] } }\n",
    "services.b.volumes.0",
  ],
  ["a service without an image", "services: { a: {} }\n", "services.a.image"],
  ["nine services", `services: { ${Array.from("abcdefghi", (name) => `${name}: { image: x }`).join(", ")} }\n`, "services"],
] as const)
  test(`${title} is refused`, async () => {
    const error = await refusal(environmentOf(compose));
    assert.equal(error.param, param, error.message);
  });
