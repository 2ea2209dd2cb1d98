/** What one hostile sandbox does to the proxy, in a process of its own and behind all others for the CPU. */
import { connect, type Socket } from "node:net";
import { setPriority } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { answerParent } from "../../../bench/child.ts";

// Its CPU is not the proxy's: in a sandbox it has a limit of its own.
setPriority(10);

type Attack = (door: Door) => Promise<unknown>;

/** Connections to one door, for as long as an attack lasts. */
class Door {
  readonly port: number;
  readonly over = new AbortController();
  readonly sockets = new Set<Socket>();
  /** First lines of answers, counted. */
  readonly heard = new Map<string, number>();

  constructor(port: number) {
    this.port = port;
  }

  get isOver(): boolean {
    return this.over.signal.aborted;
  }

  /** Resolves when it is open, or closed. */
  connect(isReading = true): Promise<Socket> {
    const socket = connect({ port: this.port, host: "127.0.0.1", noDelay: true });
    this.sockets.add(socket);
    // Each write that waits listens for the end.
    socket.setMaxListeners(0);
    socket.on("error", () => undefined);
    socket.on("close", () => this.sockets.delete(socket));
    if (isReading)
      socket.on("data", (bytes) => {
        for (const [line] of bytes.toString("latin1").matchAll(/HTTP\/1\.1 \d+/g)) this.heard.set(line, (this.heard.get(line) ?? 0) + 1);
      });
    else socket.pause();
    return new Promise((resolve) => {
      socket.once("connect", () => resolve(socket));
      socket.once("close", () => resolve(socket));
    });
  }

  /** Resolves when the bytes are on their way, or never will be. */
  write(socket: Socket, bytes: Buffer | string): Promise<void> {
    if (socket.destroyed || socket.write(bytes)) return Promise.resolve();
    return new Promise((resolve) => {
      socket.once("drain", resolve);
      socket.once("close", resolve);
    });
  }

  /** Sends one request on a connection of its own, and waits until an answer is there. */
  async ask(request: Buffer | string): Promise<void> {
    const socket = await this.connect();
    // Closed before it was open: nothing more is heard of it.
    if (socket.destroyed) return;
    const answered = new Promise((resolve) => {
      socket.once("data", resolve);
      socket.once("close", resolve);
    });
    await this.write(socket, request);
    await answered;
    socket.destroy();
  }

  /** Does it again and again, in so many lines at once. */
  async repeat(lines: number, body: (line: number) => Promise<unknown>): Promise<void> {
    const line = async (index: number): Promise<void> => {
      while (!this.isOver) {
        await body(index);
        await sleep(1);
      }
    };
    await Promise.all(Array.from({ length: lines }, (_, index) => line(index)));
  }

  end(): void {
    this.over.abort();
    for (const socket of this.sockets) socket.destroy();
  }
}

const mebibyte = 1024 * 1024;

function post(body: string | Buffer, path = "/v1/chat/completions"): Buffer {
  const bytes = Buffer.from(body as string);
  const head = `POST ${path} HTTP/1.1\r\nhost: x\r\nx-api-key: x\r\ncontent-type: application/json\r\ncontent-length: ${bytes.length}\r\n\r\n`;
  return Buffer.concat([Buffer.from(head), bytes]);
}

const chat = (messages: unknown, more: object = {}): string => JSON.stringify({ model: "model", messages, ...more });
const user = (content: unknown) => ({ role: "user", content });
const many = <T>(count: number, make: (index: number) => T): T[] => Array.from({ length: count }, (_, index) => make(index));
const hello = chat([user("hi")]);

let counter = 0;

const attacks: Record<string, Attack> = {
  "unfinished bodies": async (door) => {
    const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: ${30 * mebibyte}\r\n\r\n`;
    const piece = Buffer.alloc(mebibyte, 32);
    // Forty connections of 60 MB are enough to show it on a machine that others use too.
    await door.repeat(40, async () => {
      const socket = await door.connect();
      await door.write(socket, head);
      for (let sent = 0; sent < 29 && !socket.destroyed && !door.isOver; sent++) await door.write(socket, piece);
      while (!socket.destroyed && !door.isOver) await sleep(50);
    });
  },
  "refused calls of 40 MB": (door) => {
    const request = post(chat([{ role: "x".repeat(40 * mebibyte), content: "" }]));
    return door.repeat(1, () => door.ask(request));
  },
  "calls of 24 MB": (door) => {
    const request = post(chat([user("y".repeat(24 * mebibyte))]));
    return door.repeat(2, () => {
      request.write(String(counter++).padStart(9, "0"), request.indexOf("yyyy"));
      return door.ask(request);
    });
  },
  "calls of 7 MB": (door) => {
    const text = "y lorem".repeat(mebibyte);
    return door.repeat(2, () => door.ask(post(chat([user(`${counter++}${text}`)]))));
  },
  "calls of 900 kB": (door) => {
    const text = "é\\u00e9".repeat(100_000);
    return door.repeat(8, () => door.ask(post(`{"model":"model","messages":[{"role":"user","content":"${counter++}${text}"}]}`)));
  },
  "pipelined calls": (door) => {
    const one = post(chat([user("hi".padEnd(100))]));
    const all = Buffer.concat(many(2_000, () => one));
    return door.repeat(1, async () => {
      const socket = await door.connect();
      await door.write(socket, all);
      while (!socket.destroyed && !door.isOver) await sleep(20);
    });
  },
  "tiny calls": (door) => door.repeat(64, () => door.ask(post(chat([user(`hi ${counter++}`)])))),
  "requests of no route": (door) => door.repeat(64, () => door.ask("GET /nothing HTTP/1.1\r\nhost: x\r\n\r\n")),
  "connections that say nothing": (door) =>
    door.repeat(256, async () => {
      const socket = await door.connect();
      await door.write(socket, "POST /v1/chat/completions HTTP/1.1\r\n");
      for (let drips = 0; drips < 100 && !socket.destroyed && !door.isOver; drips++) {
        await sleep(100);
        await door.write(socket, "x-a: b\r\n");
      }
      socket.destroy();
    }),
  "ten thousand messages": (door) => {
    const messages = many(10_000, (index) => ({ role: index % 40 === 0 ? "user" : "assistant", content: "ok" }));
    return door.repeat(1, () => door.ask(post(chat([...messages, user(String(counter++))]))));
  },
  "a conversation that grows to thousands of messages": (door) => {
    const messages = many(40, () => user("x"));
    return door.repeat(1, () => {
      if (messages.length < 10_000) messages.push(...many(45, () => ({ role: "assistant", content: "ok" })));
      return door.ask(post(chat([...messages, user(String(counter++))])));
    });
  },
  "calls of 60 kB": (door) => {
    const text = "y lorem".repeat(8_500);
    return door.repeat(16, () => door.ask(post(chat([user(`${counter++}${text}`)]))));
  },
  "a hundred thousand calls of equal ids": (door) => {
    const call = { id: "a", type: "function", function: { name: "f", arguments: "{}" } };
    const body = (n: number): string =>
      chat([
        user(`${n}`),
        { role: "assistant", content: null, tool_calls: many(20_000, (index) => ({ ...call, id: `${index}` })) },
        ...many(20_000, (index) => ({ role: "tool", tool_call_id: `${19_999 - index}`, content: "" })),
      ]);
    return door.repeat(1, () => door.ask(post(body(counter++))));
  },
  "millions of values": (door) => {
    const request = post(`{"model":"model","messages":[{"role":"user","content":"x"}],"stop":[${"0,".repeat(10_000_000)}0]}`);
    return door.repeat(1, () => door.ask(request));
  },
  "bodies nested without end": (door) => {
    const request = post("[".repeat(30_000_000));
    return door.repeat(1, () => door.ask(request));
  },
  "new tools with every call": (door) => {
    const body = (n: number): string =>
      chat([user("hi")], {
        tools: many(500, (index) => ({
          type: "function",
          function: { name: `f${index}`, description: `${n}`.padEnd(1_000), parameters: { type: "object" } },
        })),
      });
    return door.repeat(4, () => door.ask(post(body(counter++))));
  },
  "answers that are not read": async (door) => {
    const content = "z".repeat(900_000);
    await door.ask(post(JSON.stringify({ items: [{ type: "message", role: "user", content }] }), "/v1/conversations"));
    await door.repeat(64, async () => {
      const socket = await door.connect(false);
      await door.write(socket, post(JSON.stringify({ model: "model", input: content }), "/v1/responses"));
      await sleep(1_000);
      socket.destroy();
    });
  },
  "counts of tokens": (door) => {
    const text = "y".repeat(4 * mebibyte);
    return door.repeat(4, () => door.ask(post(chat([user(`${counter++}${text}`)]), "/v1/messages/count_tokens")));
  },
  "conversations opened": (door) => {
    const content = "z".repeat(2 * mebibyte);
    return door.repeat(4, () =>
      door.ask(post(JSON.stringify({ items: [{ type: "message", role: "user", content }] }), "/v1/conversations")),
    );
  },
  "long addresses": (door) =>
    door.repeat(16, () => door.ask(`GET /v1/models?${"a=b&".repeat(3_500)} HTTP/1.1\r\nhost: x\r\nx-api-key: x\r\n\r\n`)),
};

let door: Door | null = null;
let running: Promise<unknown> = Promise.resolve();

answerParent({
  names: () => Object.keys(attacks),
  begin: ({ name, port }: { name: string; port: number }) => {
    door = new Door(port);
    running = attacks[name]!(door).catch(() => undefined);
  },
  /** What it was answered. */
  end: async () => {
    door?.end();
    await running;
    return Object.fromEntries(door?.heard ?? []);
  },
  hello: () => hello,
});
