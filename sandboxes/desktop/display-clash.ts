/** Finds clashes between a display and the rest of its task. The schema cannot: a display adds its service and tools later. */
import { mostServices, namesOfServices } from "../../base/schema/environment/services.ts";
import { mostToolServers, plainToolName } from "../../base/schema/environment/tool-servers.ts";
import type { Environment } from "../../base/schema/task.ts";
import { isDisplayService } from "./with-display.ts";

/** `field`: its path below `environment`. null: there is no clash. */
export function displayClash({ display, services = {}, tools = [] }: Environment): { field: string; message: string } | null {
  if (display === undefined || isDisplayService(services[display.service])) return null;
  const { service } = display;
  if (!Object.hasOwn(services, service)) {
    if (namesOfServices(services).includes(service.toLowerCase()))
      return { field: "display.service", message: `is ${service}, a name that is taken: choose another` };
    const count = Object.keys(services).length;
    if (count >= mostServices)
      return { field: "services", message: `are ${count}, and display.service adds ${service}: a task has at most ${mostServices}` };
  }
  const own = services[service];
  if (display.packages !== undefined && (own?.image || own?.build))
    return { field: "display.packages", message: `are given, and the service ${service} has an image of its own: leave out one of them` };
  if (display.tools === "none") return null;
  const added = `the display's own server of tools (tools: ${display.tools})`;
  const index = tools.findIndex(({ name }) => plainToolName(name) === display.tools);
  if (index >= 0) return { field: `tools.${index}.name`, message: `is ${display.tools}, the name of ${added}: choose another` };
  if (tools.length >= mostToolServers)
    return { field: "tools", message: `are ${tools.length}, and ${added} comes to them: a task has at most ${mostToolServers}` };
  return null;
}
