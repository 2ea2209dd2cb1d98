/** `alidade serve`: the proxy for users who set its URL themselves, and for trainers over the control listener. */
import { join } from "node:path";
import type { Command } from "commander";
import { version } from "../../../base/version.ts";
import { HarnessProxy, readTlsFiles, strayRoutes } from "../../../proxy/index.ts";
import { DiskStore, vocabularyFolder } from "../../../proxy/store/index.ts";
import { lockFolder } from "../../../rollouts/records/index.ts";
import { sessionOptionsOf } from "../../config.ts";
import { print, say, toNumber } from "../command-line.ts";
import { commandConfig } from "../flags/command-config.ts";
import { addEngineFlags, type EngineFlags, enginesOf } from "../flags/engine-flags.ts";
import { addSessionFlags, type SessionFlags, sessionOptionsGiven } from "../flags/session-flags.ts";
import { addTlsFlags, type TlsFlags, tlsOf } from "../flags/tls-flags.ts";
import { policyNotes } from "../run/policy-notes.ts";
import { terminal } from "../terminal.ts";
import { openWatching } from "../watch/open-watching.ts";
import { addWatchFlags, type WatchFlags, watchOf } from "../watch/watch-flags.ts";
import { openEngines } from "./open-engine.ts";
import { controlTokenOf } from "./tell-control.ts";

/** A person's program keeps its own parameters, unless flags force others. */
const defaults = { purpose: "live" } as const;

export function serve(program: Command): void {
  addSessionFlags(addTlsFlags(addWatchFlags(addEngineFlags(program.command("serve")))), { defaults })
    .description(
      "Runs the proxy in front of an inference server, opens a default session and prints the variables that point an SDK or harness at it.\nEvery call is recorded below --out; `alidade export` turns it into trajectories.",
    )
    .option("-c, --config <file>", "YAML file with any of the keys of `alidade config --schema`")
    .option("--host <address>", "address to listen on")
    .option("-p, --port <number>", "port to listen on; 0 takes a free one", toNumber)
    .option("--control-port <number>", "port of the control listener; 0 takes a free one", toNumber)
    .option("-o, --out <folder>", "folder for what is recorded")
    .option("--json", "print one JSON object with url, key, env and control_url")
    .addHelpText(
      "after",
      "\nExample:\n  alidade serve --engine http://127.0.0.1:8000\n  export OPENAI_BASE_URL=http://127.0.0.1:4000/v1 OPENAI_API_KEY=<the key it printed>\n\nTrainers mint sessions over the control listener: POST /sessions with `Authorization: Bearer <token>`.",
    )
    .action(async (flags: ServeFlags) => {
      const signal = terminal().stopSignal();
      const config = await commandConfig(flags.config, {
        defaults,
        overrides: {
          ...enginesOf(flags),
          host: flags.host,
          port: flags.port,
          control_port: flags.controlPort,
          ...tlsOf(flags),
          ...watchOf(flags),
          out: flags.out,
          ...sessionOptionsGiven(flags),
        },
      });
      const tls = await readTlsFiles(config.tls);
      await using watching = await openWatching(config, { isMonitored: true });
      const folder = join(config.out, "serve");
      await using _lock = await lockFolder(folder);
      await using opened = await openEngines(config, signal);
      const { token, made } = controlTokenOf(config);
      await using proxy = await HarnessProxy.start({
        engines: opened.engines,
        routes: config.routes,
        pauseWaitSeconds: config.pause_wait_seconds,
        bounds: config.bounds,
        store: new DiskStore(join(folder, "sessions")),
        vocabulary: join(folder, vocabularyFolder),
        version,
        host: config.host,
        port: config.port,
        tls,
        controlToken: token,
        controlPort: config.control_port,
        rebuild: true,
        watcher: watching.watcher,
        families: watching.families,
        ...(watching.onError && { onError: watching.onError }),
        signal,
      });
      for (const { facts } of proxy.pool.slots)
        if (facts.missing !== null) say(`alidade: recording text only, nothing of it can be trained: ${facts.missing}`);
      for (const { message } of strayRoutes(proxy.pool.slots, config.routes))
        say(`alidade: ${message}: calls that the rule leads there are refused until POST /engines adds it`);
      for (const note of policyNotes(config, proxy)) say(`alidade: ${note}`);
      const { session, key } = await proxy.openSession({
        ...sessionOptionsOf(config),
        relay: config.purpose === "live" ? "live" : "buffered",
        harness: null,
      });
      const env = proxy.envOf(key);
      if (flags.json) {
        print(
          JSON.stringify({
            url: proxy.url,
            control_url: proxy.controlUrl,
            control_token: made,
            session_id: session.id,
            key,
            env,
          }),
        );
      } else {
        const served = proxy.pool.slots.map(({ facts }) => `engine ${facts.base_url} (${facts.models.join(", ")})`);
        say(`alidade: listening on ${proxy.url}, ${served.join(", ") || "no engine yet: add one with POST /engines"}`);
        say(`alidade: control listener on ${proxy.controlUrl}${made === null ? "" : `, token ${made}`}`);
        say(`alidade: recording session ${session.id} to ${folder}\n`);
        for (const [name, value] of Object.entries(env)) print(`export ${name}=${value}`);
      }
      if (!signal.aborted) await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    });
}

type ServeFlags = SessionFlags &
  WatchFlags &
  EngineFlags &
  TlsFlags & {
    config?: string;
    host?: string;
    port?: number;
    controlPort?: number;
    out?: string;
    json?: boolean;
  };
