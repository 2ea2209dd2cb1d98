/** A connection to an engine over the user's own `ssh`, as the docker command makes it: keys, agents and known hosts are theirs. */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { Duplex } from "node:stream";
import { BoundedOutput } from "../../../base/host/bounded-output.ts";
import { Limiter } from "../../../base/host/limiter.ts";

/** An sshd refuses some of more than ten that log in at once (its `MaxStartups`); others log in there too. */
const logins = new Limiter(6);
/** A login is over when the first answer comes; an answer may take longer than any login. */
const loginMs = 30_000;

/** `url`: `ssh://user@host:port`. The other machine needs the docker command (18.09 or newer). */
export function sshConnection({ username, hostname, port }: URL): Duplex {
  const where = [...(username ? ["-l", decodeURIComponent(username)] : []), ...(port ? ["-p", port] : [])];
  const argv = ["-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=30", ...where, "--", hostname, "docker", "system", "dial-stdio"];
  const complaints = new BoundedOutput(2_000, "end");
  let child: ChildProcessWithoutNullStreams | null = null;
  const login = async (done: () => void) => {
    const leave = await logins.enter();
    const ssh = spawn("ssh", argv);
    child = ssh;
    complaints.follow(ssh.stderr);
    ssh.stdout.on("data", (chunk: Buffer) => {
      leave();
      if (!stream.push(chunk)) ssh.stdout.pause();
    });
    for (const pipe of [ssh.stdin, ssh.stdout]) pipe.on("error", () => {}); // told by the end of the process
    ssh.once("error", (error: NodeJS.ErrnoException) =>
      stream.destroy(error.code === "ENOENT" ? new Error("the program ssh is not on the path") : error),
    );
    ssh.once("close", (code) => {
      leave();
      if (code === 0) stream.push(null);
      else stream.destroy(new Error(whyEnded(["ssh", ...where, hostname].join(" "), code, complaints.toString())));
    });
    setTimeout(leave, loginMs).unref();
    done();
  };
  const stream: Duplex = new Duplex({
    construct: (done) => void login(done),
    read: () => void child?.stdout.resume(),
    // What cannot be written has a reason that only the end of the process tells.
    write: (chunk, _encoding, done) => void child?.stdin.write(chunk, (error) => error ?? done()),
    final: (done) => void child?.stdin.end(done),
    destroy: (error, done) => {
      child?.kill();
      done(error);
    },
  });
  const keepsAwake = (awake: boolean) => {
    const parts = [child, child?.stdin, child?.stdout, child?.stderr] as unknown as ({ ref(): void; unref(): void } | undefined)[];
    for (const part of parts) awake ? part?.ref() : part?.unref();
    return stream;
  };
  // What an HTTP client asks of a socket.
  const socket = { setNoDelay: () => stream, setKeepAlive: () => stream, setTimeout: () => stream };
  return Object.assign(stream, socket, { ref: () => keepsAwake(true), unref: () => keepsAwake(false) });
}

/** One sentence. The reason is ssh's last line: above it stand greetings and warnings. */
function whyEnded(command: string, code: number | null, said: string): string {
  const reason = said.trim().split(/\r?\n/).at(-1)?.replace(/\.$/, "") || "it said nothing";
  return `ssh ended with ${code ?? "a signal"} (${reason}); "${command} docker version" must work without a question`;
}
