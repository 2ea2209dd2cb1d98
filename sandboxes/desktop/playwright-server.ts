/** The server of tools that drives the browser by the page's elements: @playwright/mcp as it is published, behind a list of its tools. */

import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { text } from "node:stream/consumers";
import { AlidadeError } from "../../base/errors.ts";
import { cached } from "../../base/host/cache-folder.ts";
import type { Display } from "../../base/schema/environment/display.ts";
import type { ToolServer } from "../../base/schema/environment/tool-servers.ts";

export const playwrightInside = "/opt/alidade/playwright";
const packages = ["@playwright/mcp@0.0.83"];

/** Those that look, click and type. Requests of the page and files of the screen are offered by name alone (`display.allow`). */
const usual = [
  "browser_click",
  "browser_close",
  "browser_console_messages",
  "browser_drag",
  "browser_fill_form",
  "browser_handle_dialog",
  "browser_hover",
  "browser_navigate",
  "browser_navigate_back",
  "browser_press_key",
  "browser_resize",
  "browser_select_option",
  "browser_snapshot",
  "browser_tabs",
  "browser_take_screenshot",
  "browser_type",
  "browser_wait_for",
];

/** The service has no capabilities, so the container is the browser's wall. */
const flags = ["--browser", "chromium", "--executable-path", "/usr/bin/chromium", "--no-sandbox", "--isolated", "--caps", "vision"];

export function playwrightServer({ service, size, allow = usual }: Display, node: string): ToolServer {
  const program = `${playwrightInside}/node_modules/@playwright/mcp/cli.js`;
  const command = [node, program, ...flags, "--image-responses", "allow", "--viewport-size", size.replace("x", ",")];
  return { name: "playwright", service, command, allow, timeout_seconds: 120, max_result_bytes: 4 * 1024 * 1024 };
}

/** A folder of this machine with the package. Throws `sandbox_unavailable`. */
export async function playwrightPack(): Promise<string> {
  const hash = createHash("sha256").update(packages.join(" ")).digest("hex").slice(0, 16);
  return cached(`playwright/${hash}`, async (folder) => {
    const npm = ["install", "--prefix", folder, "--no-save", "--ignore-scripts", "--no-audit", "--no-fund", "--omit=optional", ...packages];
    const child = spawn("npm", npm, {
      stdio: ["ignore", "ignore", "pipe"],
      env: { ...process.env, PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD: "1" },
    });
    const problems = text(child.stderr);
    const code = await new Promise((resolve, reject) => child.once("error", reject).once("close", resolve));
    if (code === 0) return;
    const message = `npm could not install ${packages.join(" ")} for environment.display: ${(await problems).trim().slice(-500)}`;
    throw new AlidadeError("sandbox_unavailable", message, { param: "environment.display.tools" });
  });
}
