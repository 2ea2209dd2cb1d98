/** What `npm publish` would send: packed, installed into an empty folder, and used there. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { copyFile, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { delimiter, dirname, join } from "node:path";
import { test } from "node:test";
import { scratchFolder } from "./fakes/machine/scratch-folder.ts";
import { need } from "./needs.ts";

const root = join(import.meta.dirname, "..");
const scratch = scratchFolder("package");

test("the published package shows its help and records a program from an empty folder", async (t) => {
  if (!(await need(t, "npm-registry"))) return;
  const folder = await installPacked();
  const alidade = join(folder, "node_modules/.bin/alidade");

  const help = await run(alidade, ["--help"], { cwd: folder });
  assert.equal(help.code, 0, help.output);
  for (const verb of ["serve", "record", "run"]) assert.match(help.output, new RegExp(`\\b${verb}\\b`));

  const runners = await readdir(join(root, "graders/runners/python"), { withFileTypes: true });
  for (const { name } of runners.filter((entry) => entry.isFile()))
    assert.ok(existsSync(join(folder, "node_modules/alidade/dist/graders/runners/python", name)), `${name} is published`);

  await writeFile(
    join(folder, "my-exporter.ts"),
    `import type { ExporterPlugIn } from "alidade";
export default { name: "mine", title: "mine", objective: "any", extension: "jsonl", async *write() {} } satisfies ExporterPlugIn;\n`,
  );
  const checked = await run(alidade, ["plugin", "check", "./my-exporter.ts"], { cwd: folder });
  assert.equal(checked.code, 0, checked.output);
  assert.match(checked.output, /export format\n {2}holds: /);

  await using engine = await fixedEngine();
  const out = join(folder, "recorded");
  const recorded = await run(alidade, ["record", "--engine", engine.url, "--out", out, "--", process.execPath, "-e", oneCall], {
    cwd: folder,
  });
  assert.equal(recorded.code, 7, `the program's exit code is passed on\n${recorded.output}`);
  const [trajectory] = (await readFile(join(out, "trajectories.jsonl"), "utf8"))
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  const sampled = trajectory.nodes.filter((node: { kind: string }) => node.kind === "sampled");
  assert.deepEqual(
    sampled.map(({ token_ids, logprobs }: { token_ids: number[]; logprobs: number[] }) => ({ token_ids, logprobs })),
    [{ token_ids: [11, 12], logprobs: [-0.5, -0.25] }],
  );
});

test("the published package holds what it needs and nothing else", async () => {
  const listed = await run("npm", ["pack", "--dry-run", "--json", "--ignore-scripts", "--loglevel=error"], { cwd: root });
  const parsed: unknown = JSON.parse(listed.stdout);
  const paths = filesOf(parsed);
  for (const file of [
    "package.json",
    "LICENSE",
    "bin/alidade.js",
    "docs/tasks.md",
    "deploy/compose.yaml",
    "deploy/helm/templates/node.yaml",
    "deploy/ray/alidade_nodes.py",
    "deploy/slurm/alidade.sbatch",
    "exporters/README.md",
    "clients/python/alidade/loaders/verl.py",
    "clients/python/pyproject.toml",
  ])
    assert.ok(paths.includes(file), `${file} is in the package`);
  const strangers = paths.filter(
    (path) =>
      !/^(dist\/|bin\/|docs\/|deploy\/|clients\/python\/|(?:exporters|proxy\/dialects)\/README\.md$|ARCHITECTURE\.md$|package\.json$|README\.md$|LICENSE$|CHANGELOG\.md$)/.test(
        path,
      ),
  );
  assert.deepEqual(strangers, []);
  // TypeScript in a package is only readable, not runnable: Node strips no types below node_modules.
  assert.deepEqual(
    paths.filter((path) => path.endsWith(".ts") && !path.endsWith(".d.ts")),
    [],
  );
});

test("an old Node gets one clear line", async () => {
  const folder = join(scratch, "old");
  await mkdir(join(folder, "bin"), { recursive: true });
  for (const file of ["package.json", "bin/alidade.js", "bin/require-node.mjs"]) await copyFile(join(root, file), join(folder, file));
  // A Node that says that it is 14, since none can be assumed here; the syntax is checked by the last test.
  const pretend = join(folder, "pretend.cjs");
  await writeFile(pretend, `Object.defineProperty(process.versions, "node", { value: "14.21.3" });`);
  // Where it is called, and where it is installed.
  for (const script of ["bin/alidade.js", "bin/require-node.mjs"]) {
    const { code, output } = await run(process.execPath, ["--require", pretend, join(folder, script), "--help"]);
    assert.equal(code, 1);
    assert.match(output, /^alidade needs Node 24 or newer, and this is Node 14\.21\.3\. .+\n$/);
  }
  const inCheckout = await run(process.execPath, ["--require", pretend, join(root, "bin/require-node.mjs")]);
  assert.deepEqual([inCheckout.code, inCheckout.output], [0, ""]);
  const { scripts } = JSON.parse(await readFile(join(root, "package.json"), "utf8"));
  assert.equal(scripts.preinstall, "node bin/require-node.mjs");
});

test("the version is told without the program", async () => {
  const folder = join(scratch, "version");
  await mkdir(join(folder, "bin"), { recursive: true });
  for (const file of ["package.json", "bin/alidade.js"]) await copyFile(join(root, file), join(folder, file));
  const { version } = JSON.parse(await readFile(join(root, "package.json"), "utf8"));
  for (const flag of ["--version", "-V"]) {
    const told = await run(process.execPath, [join(folder, "bin/alidade.js"), flag]);
    assert.deepEqual([told.code, told.output], [0, `${version}\n`]);
  }
});

test("what runs before Node's version is known is plain JavaScript of 2020", async () => {
  for (const file of ["bin/alidade.js", "bin/bootstrap.mjs", "bin/require-node.mjs"]) {
    const source = await readFile(join(root, file), "utf8");
    const newer = source.match(/\?\.|\?\?=|\|\|=|&&=|#\w+\s*[=(;]|\bawait\b|\.at\(|\.replaceAll\(|import\.meta\.dirname|with \{ type/g);
    assert.equal(newer, null, `${file} uses ${newer?.join(" ")}`);
  }
});

/** Packs (which builds), installs the tarball into an empty folder, and returns that. */
async function installPacked(): Promise<string> {
  const packed = await run("npm", ["pack", "--json", "--pack-destination", scratch, "--loglevel=error"], { cwd: root });
  assert.equal(packed.code, 0, packed.output);
  const tarball = /[\w.-]+\.tgz/.exec(packed.stdout)?.[0];
  assert.ok(tarball !== undefined && existsSync(join(scratch, tarball)), packed.output);
  const folder = join(scratch, "empty");
  await mkdir(folder);
  await writeFile(join(folder, "package.json"), "{}");
  const installed = await run(
    "npm",
    ["install", "--no-audit", "--no-fund", "--prefer-offline", "--loglevel=error", join(scratch, tarball)],
    { cwd: folder },
  );
  assert.equal(installed.code, 0, installed.output);
  return folder;
}

/** npm 12 names the packages in an object, earlier ones list them. */
function filesOf(listed: unknown): string[] {
  const [first] = Object.values(listed as Record<string, { files: { path: string }[] }>);
  return (first?.files ?? []).map(({ path }) => path);
}

/** A program that asks once and ends with 7. */
const oneCall = `
  const response = await fetch(process.env.OPENAI_BASE_URL + "/chat/completions", {
    method: "POST",
    headers: { "content-type": "application/json", authorization: "Bearer " + process.env.OPENAI_API_KEY },
    body: JSON.stringify({ model: "fixed", messages: [{ role: "user", content: "hello" }] }),
  });
  const reply = await response.json();
  if (reply.choices?.[0]?.message?.content !== "Hello.") throw new Error(JSON.stringify(reply));
  process.exit(7);
`;

/** vLLM's wire, always with the same answer of two tokens. */
async function fixedEngine(): Promise<AsyncDisposable & { url: string }> {
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    if (request.method === "GET" && request.url === "/v1/models")
      return json(response, { object: "list", data: [{ id: "fixed", max_model_len: 4096 }] });
    if (request.url !== "/v1/chat/completions") return json(response, { error: { message: "not found" } }, 404);
    const body = JSON.parse(Buffer.concat(chunks).toString());
    if (body.stream) return streamed(response);
    const content = fixed.map(({ token, logprob }) => ({ token, logprob, top_logprobs: [{ token, logprob }] }));
    return json(response, {
      model: "fixed",
      prompt_token_ids: [1, 2, 3],
      choices: [
        {
          index: 0,
          message: { role: "assistant", content: "Hello." },
          logprobs: { content },
          token_ids: fixed.map(({ id }) => id),
          finish_reason: "stop",
        },
      ],
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const fixed = [
  { id: 11, token: "Hello", logprob: -0.5 },
  { id: 12, token: ".", logprob: -0.25 },
];

function streamed(response: ServerResponse): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
  const send = (choice: object, rest: object = {}) =>
    response.write(`data: ${JSON.stringify({ model: "fixed", choices: [{ index: 0, finish_reason: null, ...choice }], ...rest })}\n\n`);
  send({ delta: { role: "assistant", content: "" } }, { prompt_token_ids: [1, 2, 3] });
  for (const { id, token, logprob } of fixed)
    send({ delta: { content: token }, token_ids: [id], logprobs: { content: [{ token, logprob }] } });
  send({ delta: {}, finish_reason: "stop", stop_reason: null });
  response.end("data: [DONE]\n\n");
}

function json(response: ServerResponse, body: unknown, status = 200): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

/** Under the Node of this test: the shell that called it may find another one first. */
function run(command: string, args: string[], options: { cwd?: string } = {}): Promise<{ code: number; stdout: string; output: string }> {
  const env = { ...process.env, PATH: [dirname(process.execPath), process.env.PATH].join(delimiter) };
  return new Promise((resolve) => {
    execFile(command, args, { ...options, env, timeout: 5 * 60_000, maxBuffer: 1 << 26 }, (error, stdout, stderr) => {
      const code = error === null ? 0 : typeof error.code === "number" ? error.code : -1;
      resolve({ code, stdout, output: stdout + stderr });
    });
  });
}
