/** How a node is, and a listener that says so: for what starts nodes and looks whether they live. */
import { createServer } from "node:http";
import { messageOf } from "../errors.ts";
import { untilAborted } from "../host/until-aborted.ts";
import { type Fault, faultsOfProxy, type Health, healthOf, statusCodeOf } from "../proxy/control/health.ts";
import { closeListener, listenOn } from "../proxy/http/listen.ts";
import type { RunSetup } from "../rollouts/index.ts";

/** A monitor waits a few seconds for an answer; a container engine may hang. */
const roomMs = 3_000;

/** What of this machine keeps rollouts from being made. */
export async function faultsOfMachine({ proxy, disk }: Pick<RunSetup, "proxy" | "disk">, signal: AbortSignal): Promise<Fault[]> {
  const late = AbortSignal.any([signal, AbortSignal.timeout(roomMs)]);
  const full = disk && (await untilAborted(disk.assertFree(late), late).then(() => null, messageOf));
  return [...(full == null ? [] : [{ status: "down" as const, reason: full }]), ...faultsOfProxy(proxy)];
}

/** Answers `GET /health` on loopback with `{status, reason}` alone, so it needs no token. Throws `config_invalid` where the port cannot be had. */
export async function listenForHealth(port: number, faults: () => Promise<Fault[]>): Promise<AsyncDisposable & { url: string }> {
  const server = createServer((request, response) => {
    const answer = (status: number, body: object): void => {
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    };
    if (request.url !== "/health") return answer(404, { error: { code: "not_found", message: "this listener answers GET /health alone" } });
    const say = (health: Health): void => answer(statusCodeOf(health), health);
    faults().then(
      (all) => say(healthOf(all)),
      (error: unknown) => say({ status: "down", reason: messageOf(error) }),
    );
  });
  const url = await listenOn(server, "127.0.0.1", port);
  return { url: `${url}/health`, [Symbol.asyncDispose]: () => closeListener(server) };
}
