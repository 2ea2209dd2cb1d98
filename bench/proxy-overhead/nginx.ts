/** nginx as people put it in front of engines: one process, nothing buffered, connections to the engine kept. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

export type Nginx = AsyncDisposable & { pid: number; url: string };

/** Null where it is not installed (Debian: `apt-get install nginx-light`). */
export async function startNginx(upstream: string): Promise<Nginx | null> {
  const binary = installed();
  if (binary === null) return null;
  const folder = await mkdtemp(join(tmpdir(), "alidade-bench-nginx-"));
  const port = await freePort();
  await writeFile(join(folder, "nginx.conf"), configuration(folder, port, new URL(upstream).host));
  const child = spawn(binary, ["-p", folder, "-c", join(folder, "nginx.conf")], { stdio: ["ignore", "ignore", "inherit"] });
  await answers(child, port);
  return {
    pid: child.pid!,
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      const ended = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGTERM");
      await ended;
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function installed(): string | null {
  for (const path of ["nginx", "/usr/sbin/nginx"])
    try {
      execFileSync(path, ["-v"], { stdio: "ignore" });
      return path;
    } catch {
      // The next one.
    }
  return null;
}

/** One process and no master, so that its CPU is the process's own. */
function configuration(folder: string, port: number, upstream: string): string {
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((name) => `${name}_temp_path ${folder}/${name};`).join(" ");
  return `daemon off; master_process off; worker_processes 1; error_log stderr crit; pid ${folder}/pid;
events { worker_connections 8192; }
http {
  access_log off; ${temporary} client_max_body_size 64m; client_body_buffer_size 4m; tcp_nodelay on;
  upstream engine { server ${upstream}; keepalive 64; }
  server {
    listen 127.0.0.1:${port};
    keepalive_requests 1000000;
    location / {
      proxy_pass http://engine; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_buffering off; proxy_request_buffering off;
    }
  }
}
`;
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function answers(child: ChildProcess, port: number): Promise<void> {
  for (let left = 100; left > 0; left--) {
    if (child.exitCode !== null) throw new Error(`nginx ended with ${child.exitCode}`);
    const isOpen = await new Promise<boolean>((resolve) => {
      const socket = connect(port, "127.0.0.1", () => resolve(true)).once("error", () => resolve(false));
      socket.once("connect", () => socket.destroy());
    });
    if (isOpen) return;
    await sleep(50);
  }
  throw new Error("nginx does not answer");
}
