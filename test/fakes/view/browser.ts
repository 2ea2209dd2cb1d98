/** Debian's Chromium, without a window. */
import { access } from "node:fs/promises";
import { type Browser, chromium } from "playwright-core";

const places = ["/usr/bin/chromium", "/usr/bin/chromium-browser"];

async function chromiumPath(): Promise<string | null> {
  for (const place of places)
    if (
      await access(place).then(
        () => true,
        () => false,
      )
    )
      return place;
  return null;
}

export async function chromiumMissing(): Promise<string | null> {
  return (await chromiumPath()) === null ? "Chromium is not installed" : null;
}

/** As root it has no sandbox of its own. */
export async function openBrowser(): Promise<Browser> {
  const executablePath = (await chromiumPath()) ?? "";
  return chromium.launch({ executablePath, args: process.getuid?.() === 0 ? ["--no-sandbox"] : [] });
}
