/** A connection to an engine over the user's own `ssh`, as the docker command makes it: keys, agents and known hosts are theirs. */
import { spawn } from "node:child_process";
import { Duplex } from "node:stream";
import { BoundedOutput } from "../../host/bounded-output.ts";

/** `url`: `ssh://user@host:port`. The other machine needs the docker command (18.09 or newer). */
export function sshConnection({ username, hostname, port }: URL): Duplex {
  const where = [...(username ? ["-l", decodeURIComponent(username)] : []), ...(port ? ["-p", port] : [])];
  const argv = ["-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=30", ...where, "--", hostname, "docker", "system", "dial-stdio"];
  const child = spawn("ssh", argv, { stdio: ["pipe", "pipe", "pipe"] });
  const complaints = new BoundedOutput(2_000, "end");
  child.stderr.on("data", (chunk: Buffer) => complaints.push(chunk));
  const stream = new Duplex({
    read: () => child.stdout.resume(),
    // What cannot be written has a reason that only the end of the process tells.
    write: (chunk, _encoding, done) => child.stdin.write(chunk, (error) => error ?? done()),
    final: (done) => child.stdin.end(done),
    destroy: (error, done) => {
      child.kill();
      done(error);
    },
  });
  child.stdout.on("data", (chunk: Buffer) => {
    if (!stream.push(chunk)) child.stdout.pause();
  });
  child.stdin.on("error", () => {}); // told by the end of the process
  child.once("error", (error: NodeJS.ErrnoException) =>
    stream.destroy(error.code === "ENOENT" ? new Error("the program ssh is not on the path") : error),
  );
  child.once("close", (code) => {
    if (code === 0) stream.push(null);
    else stream.destroy(new Error(whyEnded(["ssh", ...where, hostname].join(" "), code, complaints.toString())));
  });
  const keepsAwake = (awake: boolean) => {
    for (const part of [child, child.stdin, child.stdout, child.stderr] as unknown as { ref(): void; unref(): void }[])
      awake ? part.ref() : part.unref();
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
