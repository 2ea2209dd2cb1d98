/** `alidade run --service` and its `--resume`, from the set to what is said at the end. */
import { terminal } from "../terminal.ts";
import { openWatching } from "../watch/open-watching.ts";
import { type LiveProgressEvent, liveProgress } from "./live-progress.ts";
import { endRun } from "./report-run.ts";
import { type RunAtService, runAtService } from "./run-at-service.ts";
import type { RunFlags } from "./run-flags.ts";

/** A stop ends the following alone: the service goes on. */
export async function followRun(run: RunAtService, { json = false, cancel = false }: RunFlags): Promise<void> {
  const { path, config } = run;
  const signal = terminal().stopSignal();
  await using watching = await openWatching(config);
  const show = json && config.log_format === "text" ? () => undefined : liveProgress();
  const onProgress = (event: LiveProgressEvent): void => {
    show(event);
    if (event.type === "done") watching.watcher?.attempt({ set_id: run.runId, record: event.record, stored: Date.now() });
  };
  const { records, leftOut, unbegun } = await runAtService(run, cancel, { signal, onProgress });
  const more = [
    ...(unbegun > 0 ? [`${unbegun} rollouts were cancelled before they began: they have no record`] : []),
    "session logs and works stay at the service's nodes: what grades or shows a work again wants its blobs/",
  ];
  const stopped = signal.aborted
    ? `stopped, and the service goes on: \`alidade run --resume ${path}\` takes what comes, with --cancel the rest is cancelled`
    : null;
  await endRun({ path, records, leftOut, unbegun, more, stopped }, json);
}
