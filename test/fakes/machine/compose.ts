/** deploy/compose.yaml in the Docker engine of this machine, with an image that needs no registry. */
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdir, realpath, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
/** What the command line imports is no part of what tests need. */
const root = join(import.meta.dirname, "../../..");

/** The plugin of Docker, else the program. */
async function composeCommand(): Promise<string[] | null> {
  for (const command of [["docker", "compose"], ["docker-compose"]])
    if (await run(command[0] ?? "", [...command.slice(1), "version"]).catch(() => null)) return command;
  return null;
}

export async function composeMissing(): Promise<string | null> {
  return (await composeCommand()) === null ? "neither `docker compose` nor docker-compose is on the path" : null;
}

export class Compose implements AsyncDisposable {
  readonly #command: readonly string[];
  readonly #project = `alidade-test-${randomBytes(4).toString("hex")}`;
  readonly #image: string;
  readonly #files: string[];
  readonly #env: Record<string, string>;

  private constructor(command: readonly string[], folder: string, env: Record<string, string>) {
    this.#command = command;
    this.#image = `alidade/${this.#project}:1`;
    this.#files = ["-f", join(root, "deploy/compose.yaml"), "-f", join(folder, "compose.test.yaml")];
    this.#env = { ...(process.env as Record<string, string>), ...env, ALIDADE_IMAGE: this.#image, POSTGRES_IMAGE: this.#image };
  }

  /** Everything is up when it returns; what is in it may still start. `folder` is made. */
  static async up(folder: string, env: Record<string, string>): Promise<Compose> {
    const compose = new Compose((await composeCommand()) ?? [], folder, env);
    try {
      await makeImage(join(folder, "image"), compose.#image);
      await writeFile(join(folder, "compose.test.yaml"), await overrides());
      await compose.run("up", "--detach");
      return compose;
    } catch (error) {
      await compose[Symbol.asyncDispose]();
      throw error;
    }
  }

  async run(...args: string[]): Promise<string> {
    const [program = "", ...words] = [...this.#command, ...this.#files, "-p", this.#project, ...args];
    const { stdout } = await run(program, words, { env: this.#env, maxBuffer: 64 * 1024 * 1024 });
    return stdout;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.run("down", "--volumes", "--timeout", "1").catch(() => undefined);
    await run("docker", ["image", "rm", "-f", this.#image]).catch(() => undefined);
  }
}

/** Empty but for links: programs and libraries are those of this machine, which `overrides` mounts. */
async function makeImage(folder: string, image: string): Promise<void> {
  await mkdir(join(folder, "opt/bin"), { recursive: true });
  await writeFile(join(folder, "opt/bin/alidade"), '#!/bin/sh\nexec /opt/node /opt/alidade/bin/alidade.js "$@"\n', { mode: 0o755 });
  const script = `cd "$1"
    for name in bin sbin lib lib64; do ln -s usr/$name $name; done
    mkdir -p usr tmp proc sys dev etc/alternatives etc/ssl run root && chmod 1777 tmp
    cp /etc/passwd /etc/group /etc/nsswitch.conf /etc/ld.so.cache etc/
    tar -c . | docker import -c 'ENV PATH=/opt/bin:/usr/local/bin:/usr/bin:/bin' -c 'ENV HOME=/root' - "$2"`;
  await run("sh", ["-ec", script, "sh", folder, image]);
}

/** What a registry would have brought: programs of this machine, this checkout, and a Postgres of Debian's. */
async function overrides(): Promise<string> {
  const modules = await realpath(join(root, "node_modules"));
  const usual = ["/usr:/usr:ro", "/etc/alternatives:/etc/alternatives:ro", "/etc/ssl:/etc/ssl:ro"];
  const own = [...usual, `${root}:/opt/alidade:ro`, `${modules}:${modules}:ro`, `${process.execPath}:/opt/node:ro`];
  const cluster = `cd /tmp && PATH=$$(ls -d /usr/lib/postgresql/*/bin | tail -1):$$PATH
    echo "$$POSTGRES_PASSWORD" >word && initdb -D data -U "$$POSTGRES_USER" --pwfile=word -A scram-sha-256 --no-sync
    echo "host all all all scram-sha-256" >>data/pg_hba.conf
    echo "CREATE DATABASE $$POSTGRES_DB" | postgres --single -D data postgres
    exec postgres -D data -c listen_addresses='*' -c unix_socket_directories=/tmp -c fsync=off`;
  const postgres = { user: "65534:65534", volumes: usual, command: ["sh", "-ec", cluster] };
  return JSON.stringify({ services: { postgres, service: { volumes: own }, node: { volumes: own } } });
}
