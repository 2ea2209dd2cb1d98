/** A real sshd on loopback. Its key and its host's are known to the `ssh` of `env` alone; no user's own settings are read. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { quietPort } from "../../quiet-port.ts";
import { until } from "./until.ts";

const program = "/usr/sbin/sshd";

/** What is missing for it, in a few words; null: it can be started here. */
export function sshServerMissing(): string | null {
  if (!existsSync(program)) return `there is no ${program}`;
  try {
    execFileSync("sh", ["-c", "command -v ssh && command -v ssh-keygen"], { stdio: "ignore" });
    return null;
  } catch {
    return "ssh or ssh-keygen is not on the path";
  }
}

export class SshServer implements AsyncDisposable {
  readonly #folder: string;
  readonly #port: number;
  readonly #server: ChildProcess;

  private constructor(folder: string, port: number) {
    this.#folder = folder;
    this.#port = port;
    this.#server = spawn(program, ["-D", "-e", "-f", join(folder, "sshd_config")], { stdio: "ignore" });
  }

  static async start(): Promise<SshServer> {
    const folder = mkdtempSync(join(tmpdir(), "alidade-ssh-"));
    const port = await quietPort();
    for (const name of ["host", "mine", "other"])
      execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", join(folder, name)], { stdio: "ignore" });
    const write = (name: string, lines: string[], mode = 0o600) => writeFileSync(join(folder, name), `${lines.join("\n")}\n`, { mode });
    write("sshd_config", [
      `Port ${port}`,
      "ListenAddress 127.0.0.1",
      `HostKey ${folder}/host`,
      `AuthorizedKeysFile ${folder}/mine.pub`,
      "StrictModes no",
      "PidFile none",
      "MaxStartups 8", // each one more that logs in at once is refused; the usual setting refuses some of more than ten
      "PasswordAuthentication no",
      "KbdInteractiveAuthentication no",
      "SetEnv SHLVL=2", // a shell below another one reads no .bashrc
    ]);
    write("known", [`[127.0.0.1]:${port} ${readFileSync(join(folder, "host.pub"), "utf8").trim()}`]);
    for (const name of ["mine", "other"]) {
      write(`config-${name}`, [`IdentityFile ${folder}/${name}`, "IdentitiesOnly yes", `UserKnownHostsFile ${folder}/known`]);
      mkdirSync(join(folder, `bin-${name}`));
      write(`bin-${name}/ssh`, ["#!/bin/sh", `PATH=${process.env.PATH} exec ssh -F ${folder}/config-${name} "$@"`], 0o700);
    }
    // Where sshd runs as root it wants this folder, which systems make when they start.
    if (process.getuid?.() === 0) mkdirSync("/run/sshd", { recursive: true });
    const server = new SshServer(folder, port);
    await until(() => server.#answers());
    return server;
  }

  /** `ssh://user@127.0.0.1:port`. */
  get host(): string {
    return `ssh://${userInfo().username}@127.0.0.1:${this.#port}`;
  }

  /** A PATH whose `ssh` has the key that the server knows, or another one. */
  path(key: "mine" | "other" = "mine"): string {
    return `${this.#folder}/bin-${key}:${process.env.PATH}`;
  }

  /** Ends the connections that there are; new ones are taken. */
  cut(): void {
    for (const pid of childrenOf(this.#server.pid ?? 0)) killWithChildren(pid);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = new Promise((resolve) => this.#server.once("close", resolve));
    this.cut();
    if (this.#server.exitCode === null && this.#server.kill("SIGKILL")) await closed;
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #answers(): Promise<boolean> {
    if (this.#server.exitCode !== null) throw new Error(`sshd ended with ${this.#server.exitCode}`);
    return new Promise((resolve) => {
      const socket = connect(this.#port, "127.0.0.1", () => resolve(true)).on("error", () => resolve(false));
      socket.unref().once("connect", () => socket.destroy());
    });
  }
}

function childrenOf(pid: number): number[] {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").filter(Boolean).map(Number);
  } catch {
    return []; // gone
  }
}

/** The children are looked for first: another process has them when their parent is gone. */
function killWithChildren(pid: number): void {
  const children = childrenOf(pid);
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // gone
  }
  children.forEach(killWithChildren);
}
