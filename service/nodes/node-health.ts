/** How a node is, and a listener that says so: for what starts nodes and looks whether they live, and for a monitor. */
import { createServer } from "node:http";
import { messageOf } from "../../base/errors.ts";
import { untilAborted } from "../../base/host/until-aborted.ts";
import { type MetricFamily, prometheusText, prometheusType } from "../../base/wire/prometheus-text.ts";
import { type Fault, faultsOfProxy, type Health, healthOf, statusCodeOf } from "../../proxy/control/index.ts";
import { closeListener, listenOn } from "../../proxy/http/index.ts";
import type { RunSetup } from "../../rollouts/index.ts";

/** A monitor waits a few seconds for an answer; a container engine may hang. */
const roomMs = 3_000;

/** What of this machine keeps rollouts from being made. */
export async function faultsOfMachine({ proxy, disk }: Pick<RunSetup, "proxy" | "disk">, signal: AbortSignal): Promise<Fault[]> {
  const late = AbortSignal.any([signal, AbortSignal.timeout(roomMs)]);
  const full = disk && (await untilAborted(disk.assertFree(late), late).then(() => null, messageOf));
  return [...(full == null ? [] : [{ status: "down" as const, reason: full }]), ...faultsOfProxy(proxy)];
}

/** `host`: an address of this machine; the default is loopback. `port`: 0 takes a free one. */
export type HealthPlace = { host?: string | undefined; port: number };

/**
 * Answers `GET /health` with `{status, reason}` and `GET /metrics` in Prometheus's text format: names and numbers alone, so it
 * needs no token. Throws `config_invalid` where the address or the port cannot be had.
 */
export async function listenForHealth(
  { host = "127.0.0.1", port }: HealthPlace,
  faults: () => Promise<Fault[]>,
  families: () => MetricFamily[],
): Promise<AsyncDisposable & { url: string }> {
  const server = createServer((request, response) => {
    const answer = (status: number, body: object): void => {
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    };
    const [path] = (request.url ?? "").split("?");
    if (path === "/metrics") return void response.writeHead(200, { "content-type": prometheusType }).end(prometheusText(families()));
    if (path !== "/health")
      return answer(404, { error: { code: "not_found", message: "this listener answers GET /health and GET /metrics alone" } });
    const say = (health: Health): void => answer(statusCodeOf(health), health);
    faults().then(
      (all) => say(healthOf(all)),
      (error: unknown) => say({ status: "down", reason: messageOf(error) }),
    );
  });
  const url = await listenOn(server, host, port);
  return { url: `${url}/health`, [Symbol.asyncDispose]: () => closeListener(server) };
}
