/** `alidade run --service` and its `--resume`, from the set to what is said at the end. */
import { openIndex } from "../../../rollouts/records/index.ts";
import { say } from "../command-line.ts";
import { terminal } from "../terminal.ts";
import { openWatching } from "../watch/open-watching.ts";
import { type LiveProgressEvent, liveProgress } from "./live-progress.ts";
import { reportRun } from "./report-run.ts";
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
  await openIndex(path);
  await reportRun({ path, records, leftOut }, json);
  if (!json && unbegun > 0) say(`${unbegun} rollouts were cancelled before they began: they have no record`);
  if (!json) say("session logs and works stay at the service's nodes: what grades or shows a work again wants its blobs/");
  if (signal.aborted) {
    if (!json)
      say(`stopped, and the service goes on: \`alidade run --resume ${path}\` takes what comes, with --cancel the rest is cancelled`);
    terminal().exitCode = 130;
  } else if (leftOut.length > 0 || unbegun > 0 || records.some((record) => record.verdict?.reward == null)) terminal().exitCode = 1;
}
