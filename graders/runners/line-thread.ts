/**
 * The thread that reads and writes the socket between tests and work, line by line: the main thread of either side may
 * stand still in a call to the other, and is woken by a count in shared memory.
 */
import { connect, createServer, type Socket } from "node:net";
import { type MessagePort, workerData } from "node:worker_threads";

type Start = { path: string; role: "tests" | "work"; port: MessagePort; count: Int32Array };
const { path, role, port, count } = workerData as Start;

/** The other process is being started: until then no connection is taken. */
const waitMs = 25;
const startMs = 60_000;

function serve(socket: Socket): void {
  let rest = "";
  socket.setEncoding("utf8");
  socket.on("data", (text: string) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) hand(line);
  });
  socket.on("error", () => {});
  socket.on("close", () => hand(null));
  port.on("message", (line: string) => socket.write(`${line}\n`));
}

function hand(line: string | null): void {
  port.postMessage(line);
  Atomics.add(count, 0, 1);
  Atomics.notify(count, 0);
}

function dial(until: number): void {
  const socket = connect(path);
  socket.once("connect", () => {
    socket.removeAllListeners("error");
    serve(socket);
  });
  socket.once("error", () => {
    if (Date.now() > until) hand(null);
    else setTimeout(dial, waitMs, until);
  });
}

if (role === "tests") dial(Date.now() + startMs);
else {
  // The first to come are the tests: nothing of the work has run yet that could come before them.
  const server = createServer((socket) => {
    server.close();
    serve(socket);
  }).listen({ path, readableAll: true, writableAll: true });
}
