/** Sandboxes of one ledger, and the harnesses in them, as this machine shows them. */
import { execFile } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { promisify } from "node:util";

const run = promisify(execFile);

/** Ids of the containers whose run begins with the ledger's id. */
export async function containersOf(ledger: string, all: boolean): Promise<string[]> {
  return labelled(["ps", "--no-trunc", ...(all ? ["-a"] : []), "--format", '{{.ID}} {{.Label "alidade.run"}}'], ledger);
}

export async function volumesOf(ledger: string): Promise<string[]> {
  return labelled(["volume", "ls", "--format", '{{.Name}} {{.Label "alidade.run"}}'], ledger);
}

async function labelled(args: string[], ledger: string): Promise<string[]> {
  const { stdout } = await run("docker", args);
  const lines = stdout.split("\n").map((line) => line.split(" "));
  return lines.flatMap(([name = "", label = ""]) => (label.startsWith(ledger) ? [name] : []));
}

/** Returns false where it had ended. */
export async function killContainer(id: string): Promise<boolean> {
  return run("docker", ["kill", "-s", "KILL", id]).then(
    () => true,
    () => false,
  );
}

/** Pids on this machine of processes in containers whose command line has the mark. */
export async function harnessesOf(mark: string): Promise<number[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const found = await Promise.all(pids.map(async (pid) => ((await isInContainer(pid, mark)) ? [Number(pid)] : [])));
  return found.flat();
}

async function isInContainer(pid: string, mark: string): Promise<boolean> {
  const read = (name: string): Promise<string> => readFile(`/proc/${pid}/${name}`, "utf8").catch(() => "");
  return (await read("cmdline")).includes(mark) && /docker|[0-9a-f]{64}/.test(await read("cgroup"));
}
