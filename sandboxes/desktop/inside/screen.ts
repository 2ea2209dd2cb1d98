/**
 * The main program of the service that shows a desktop: the screen's server, a window manager, and one program on it.
 *
 *     node screen.ts 1280x800 page http://desk:8080/      a browser that shows the page, on the whole screen
 *     node screen.ts 1280x800 program gnumeric book.xls   another program
 *     node screen.ts 1280x800 empty                       nothing: what shows something is started by others
 *
 * A program that ends is started again, so that an agent cannot close its only window for good.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { type Frame, Frames } from "./frames.ts";
import { openboxConfig } from "./openbox-config.ts";
import { desktopHome, display, frameFile, readyFile, screenFolder, xSocket } from "./places.ts";
import { areProgramsAtWork } from "./programs-at-work.ts";
import { XClient } from "./x-client.ts";

const lookMs = 30;
/**
 * The whole screen is the page, without a place for an address. The service has no capabilities and no user namespaces, so the
 * browser's own sandbox cannot be: the container is the wall.
 */
const browserFlags = [
  "--kiosk",
  "--no-sandbox",
  "--test-type", // no bar that warns of the line above
  "--no-first-run",
  "--no-default-browser-check",
  "--noerrdialogs",
  "--disable-gpu",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--disable-breakpad",
  "--disable-smooth-scrolling",
  "--password-store=basic",
  "--force-device-scale-factor=1",
];

/** The first picture of a page may lack its letters. It must rest for this long. */
const restMs = 150;
/** A program first shows an empty window, which rests while it computes what belongs there. One that always computes is shown after this time. */
const longestWorkMs = 10_000;
/** A program that cannot start must not take the whole processor. */
const againMs = 300;

const [size = "", kind = "empty", ...argv] = process.argv.slice(2);

// The first process of a container gets no signal that it does not ask for.
for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => process.exit(0));

await mkdir(screenFolder, { recursive: true });
await mkdir(`${desktopHome}/.config/gtk-3.0`, { recursive: true });
// Still screens are equal byte for byte only if no caret blinks.
await writeFile(`${desktopHome}/.config/gtk-3.0/settings.ini`, "[Settings]\ngtk-cursor-blink=0\ngtk-enable-animations=0\n");

const server = run("Xvfb", [display, "-screen", "0", `${size}x24`, "-fbdir", screenFolder, "-nocursor", "-noreset", ...unreachable()]);
server.once("exit", (code) => end(`Xvfb ended with ${code}`));
const client = await patiently(() => XClient.connect(xSocket));
await writeFile(`${desktopHome}/openbox.xml`, openboxConfig(kind === "page"));
run("openbox", ["--config-file", `${desktopHome}/openbox.xml`]);
if (kind !== "empty") void keepRunning();
await untilShown();
await writeFile(readyFile, "");

/** Neither TCP nor an abstract socket: services apart share a network namespace. */
function unreachable(): string[] {
  return ["-nolisten", "tcp", "-nolisten", "local"];
}

async function keepRunning(): Promise<void> {
  for (;;) {
    await ended(kind === "page" ? await browse(argv[0] ?? "about:blank") : run(argv[0] ?? "", argv.slice(1)));
    await sleep(againMs);
  }
}

async function browse(page: string): Promise<ChildProcess> {
  const profile = `${desktopHome}/profile`;
  // The same browser each time: no word about a crash, and nothing that an earlier one kept.
  await rm(profile, { recursive: true, force: true });
  const [width, height] = size.split("x");
  const flags = [`--user-data-dir=${profile}`, `--window-size=${width},${height}`, "--window-position=0,0", ...browserFlags, page];
  return run("chromium", flags);
}

async function untilShown(): Promise<void> {
  const frames = await patiently(() => Frames.open(frameFile));
  if (kind !== "empty") {
    while ((await client.windows()).length === 0) await sleep(lookMs);
    await untilAtRest(frames);
  }
  await frames.close();
}

async function untilAtRest(frames: Frames): Promise<void> {
  let last = await frames.now();
  let changed = performance.now();
  let worked = changed;
  const rests = (now: number): boolean => now - changed >= restMs && (now - worked >= restMs || now - changed >= longestWorkMs);
  while (isBlank(last) || !rests(performance.now())) {
    await sleep(lookMs);
    const next = await frames.now();
    if (!next.pixels.equals(last.pixels)) changed = performance.now();
    if (kind === "program" && (await areProgramsAtWork())) worked = performance.now();
    last = next;
  }
}

/** One colour everywhere. */
function isBlank({ pixels }: Frame): boolean {
  return pixels.subarray(4).equals(pixels.subarray(0, -4));
}

function run(command: string, args: string[]): ChildProcess {
  return spawn(command, args, { stdio: ["ignore", "ignore", "inherit"] }).on("error", (error) => end(error.message));
}

function ended(child: ChildProcess): Promise<unknown> {
  return new Promise((resolve) => child.once("exit", resolve));
}

/** `limits.init_seconds` of the task ends it. */
async function patiently<T>(attempt: () => Promise<T>): Promise<T> {
  for (;;) {
    const done = await attempt().catch(() => null);
    if (done !== null) return done;
    await sleep(lookMs);
  }
}

function end(why: string): never {
  process.stderr.write(`${why}\n`);
  process.exit(1);
}
