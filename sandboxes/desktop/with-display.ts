/** Makes of `environment.display` what it stands for: a service apart that shows the screen, and a server of tools in it. */
import type { Display } from "../../base/schema/environment/display.ts";
import type { Service } from "../../base/schema/environment/services.ts";
import type { ToolServer } from "../../base/schema/environment/tool-servers.ts";
import type { Environment } from "../../base/schema/task.ts";
import { doorInside } from "../door/door-kind.ts";
import { computerProgram, screenProgram } from "./desktop-pack.ts";
import { desktopWord, desktopWordFor } from "./desktop-word.ts";
import { desktopHome, display as ownDisplay, readyFile } from "./inside/places.ts";
import { playwrightServer } from "./playwright-server.ts";

const node = `${doorInside}/node`;
/** Belongs to no user of an image. */
const desktopUser = "901";

/** A browser has 120 threads with one page. Its start takes two seconds of one core. */
const desktopLimits = { memory_mb: 1024, cpus: 2, pids: 512, disk_mb: 512 };

/** Where the display is already what it stands for, it stays so. */
export function withDisplay(environment: Environment): Environment {
  const { display, services = {}, tools = [] } = environment;
  if (display === undefined) return environment;
  const { service, size } = display;
  const own = services[service] ?? null;
  if (isDisplayService(own)) return environment;
  const shows = display.page !== undefined ? ["page", display.page] : own?.command ? ["program", ...own.command] : ["empty"];
  const others = Object.entries(services).filter(([name, { network }]) => name !== service && network === "apart");
  const screen: Service = {
    build: null,
    workdir: null,
    aliases: [],
    expose: [],
    files: null,
    state: [],
    ...desktopLimits,
    ...own,
    env: { DISPLAY: ownDisplay, HOME: desktopHome, LANG: "C.UTF-8", NO_AT_BRIDGE: "1", ...own?.env },
    image: own?.build ? null : (own?.image ?? ownImage(display)),
    entrypoint: [node, screenProgram],
    command: [size, ...shows],
    user: own?.user ?? desktopUser,
    folders: [...(own?.folders ?? []), desktopHome],
    network: "apart",
    // A page that is not there yet would be shown as an error.
    depends_on: own?.depends_on && Object.keys(own.depends_on).length > 0 ? own.depends_on : readyOnes(others),
    healthcheck: { command: ["test", "-e", readyFile], interval_seconds: 0.1, timeout_seconds: 30, retries: 3, start_period_seconds: 280 },
  };
  const server = serverOf(display);
  return {
    ...environment,
    services: { ...services, [service]: screen },
    ...((server !== null || tools.length > 0) && { tools: [...(server ? [server] : []), ...tools] }),
  };
}

function ownImage({ packages }: Display): string {
  return packages === undefined ? desktopWord : desktopWordFor(packages);
}

/** True if the service was made from a display already. */
export function isDisplayService(service: Service | null | undefined): boolean {
  return service?.entrypoint?.[1] === screenProgram;
}

function readyOnes(services: [string, Service][]): Service["depends_on"] {
  return Object.fromEntries(services.map(([name, { healthcheck }]) => [name, healthcheck === "none" ? "started" : "ready"] as const));
}

function serverOf(display: Display): ToolServer | null {
  const { service, tools } = display;
  if (tools === "none") return null;
  if (tools === "playwright") return playwrightServer(display, node);
  return { name: "computer", service, command: [node, computerProgram], timeout_seconds: 60, max_result_bytes: 4 * 1024 * 1024 };
}
