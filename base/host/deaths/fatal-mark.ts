/**
 * A mark that V8 ended the process. V8 then has no memory left, so none of our code runs. Node writes a report of such an end.
 * The report holds all environment variables, which may be secrets. So it goes into a named pipe. A child process keeps its
 * first words, which say what happened, and drops the rest. A system without named pipes has no mark.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { closeSync, constants, openSync, rmSync } from "node:fs";
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

const pipeName = "fatal.pipe";
const markName = "fatal.mark";
/** Up to the time of the report: the command line and its arguments come later. */
const keptBytes = 160;
/** Ends with its input: when the last writer is gone. */
const keepStart = 'said=$(head -c "$1"); [ -n "$said" ] && printf %s "$said" > "$2.new" && mv "$2.new" "$2"; exec cat > /dev/null';

/** What the last process in the folder was ended by; null: not by V8. Read once. */
export async function takeFatalMark(folder: string): Promise<string | null> {
  const said = await readFile(join(folder, markName), "utf8").catch(() => null);
  await rm(join(folder, markName), { force: true });
  return said === null ? null : (/"event":"([^"]+)"/.exec(said)?.[1] ?? "a fatal error of V8");
}

export async function openFatalMark(folder: string): Promise<Disposable> {
  const path = join(folder, pipeName);
  await rm(path, { force: true });
  try {
    await promisify(execFile)("mkfifo", ["-m", "600", path]);
  } catch {
    return { [Symbol.dispose]: () => undefined };
  }
  // Read and written by this process too: its opening waits for no other, and the child's input ends with this process.
  const own = openSync(path, constants.O_RDWR);
  const child = reader(path, join(folder, markName));
  child.once("error", stopReports).once("exit", stopReports);
  Object.assign(process.report, { reportOnFatalError: true, directory: folder, filename: pipeName, compact: true });
  return {
    [Symbol.dispose]: () => {
      child.off("exit", stopReports);
      stopReports();
      closeSync(own);
      // A thread may have left a mark without an end of the process.
      for (const name of [pipeName, markName]) rmSync(join(folder, name), { force: true });
    },
  };
}

/** A session of its own: a Ctrl-C is for this process. */
function reader(path: string, mark: string): ChildProcess {
  const input = openSync(path, constants.O_RDONLY);
  try {
    const child = spawn("sh", ["-c", keepStart, "sh", String(keptBytes), mark], {
      stdio: [input, "ignore", "ignore"],
      detached: true,
      env: { PATH: process.env.PATH, LC_ALL: "C" },
    });
    child.unref();
    return child;
  } finally {
    closeSync(input);
  }
}

/** Without a reader the writing of a long report would wait for ever. */
function stopReports(): void {
  process.report.reportOnFatalError = false;
}
