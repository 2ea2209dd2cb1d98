/** The way out. Commands open connections with bash, so that the image needs no other program. */
import assert from "node:assert/strict";
import type { Duplex } from "node:stream";
import type { Sandbox } from "../sandbox.ts";
import { ofSandbox, type SandboxCheck } from "./in-sandbox.ts";

export const doorChecks: readonly SandboxCheck[] = [
  ofSandbox("a connection to the door's URL arrives here, and bytes go both ways", async (sandbox) => {
    await using door = await sandbox.openDoor(answer("heard "));
    assert.equal(await ask(sandbox, door.url, "hello"), "heard hello\n");
    assert.equal(await ask(sandbox, door.url, "again"), "heard again\n");
  }),
  ofSandbox("a megabyte comes through a door whole", async (sandbox) => {
    const content = Buffer.alloc(2 ** 20, "0123456789abcdef");
    await using door = await sandbox.openDoor((socket) => {
      socket.on("error", () => undefined);
      socket.end(content);
    });
    const { stdout } = await sandbox.exec(["bash", "-c", `exec 3<>/dev/tcp/${placeOf(door.url)}; cat <&3 | cksum`], { timeout_ms: 30_000 });
    const { stdout: own } = await sandbox.exec(["sh", "-c", "yes 0123456789abcdef | tr -d '\\n' | head -c 1048576 | cksum"]);
    assert.equal(stdout, own);
  }),
  ofSandbox("a sandbox has several doors, each of its own", async (sandbox) => {
    await using first = await sandbox.openDoor(answer("first "), 4101);
    await using second = await sandbox.openDoor(answer("second "), 4102);
    assert.deepEqual([await ask(sandbox, first.url, "a"), await ask(sandbox, second.url, "b")], ["first a\n", "second b\n"]);
  }),
  ofSandbox("a door that is closed takes no more connections, and the sandbox goes on", async (sandbox) => {
    const door = await sandbox.openDoor(answer("heard "));
    await door[Symbol.asyncDispose]();
    assert.equal(await ask(sandbox, door.url, "hello"), null);
    assert.equal((await sandbox.exec(["true"])).exit_code, 0);
  }),
  ofSandbox("beside its doors a sandbox reaches what its capabilities say", async (sandbox, { capabilities }) => {
    if (capabilities.network === "host") return;
    const { stdout } = await sandbox.exec(["sh", "-c", "cut -d: -f1 -s /proc/net/dev | grep -v '|' | tr -d ' '"]);
    assert.deepEqual(
      stdout.split("\n").filter((name) => name !== "" && name !== "lo"),
      [],
      "it has network devices",
    );
  }),
];

/** Says `before` and the line that came, and ends. */
function answer(before: string): (socket: Duplex) => void {
  return (socket) => {
    socket.on("error", () => undefined);
    socket.once("data", (line: Buffer) => socket.end(`${before}${line.toString()}`));
  };
}

function placeOf(url: string): string {
  const { hostname, port } = new URL(url);
  return `${hostname}/${port}`;
}

/** What is answered to a line; null where no connection is made, or it brings nothing. */
async function ask(sandbox: Sandbox, url: string, line: string): Promise<string | null> {
  const script = 'exec 3<>"/dev/tcp/$1" && echo "$2" >&3 && cat <&3';
  const { stdout } = await sandbox.exec(["bash", "-c", script, "bash", placeOf(url), line], { timeout_ms: 30_000 });
  return stdout === "" ? null : stdout;
}
