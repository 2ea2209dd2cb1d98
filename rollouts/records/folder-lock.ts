/** A folder of records has one owner process at a time: two would cut each other's lines. */
import { join } from "node:path";
import { AlidadeError } from "../../base/errors.ts";
import { lockFile } from "../../base/host/lock-file.ts";
import { makePrivateFolder, toStoreError } from "../../proxy/store/index.ts";

/**
 * Makes the folder and locks it until the scope ends; the lock of a dead process is taken over. Throws `config_invalid`
 * naming the process that works there, at once or after `waitMs`.
 */
export async function lockFolder(folder: string, { waitMs = 0 }: { waitMs?: number } = {}): Promise<AsyncDisposable> {
  const path = join(folder, "lock");
  const until = Date.now() + waitMs;
  try {
    await makePrivateFolder(folder);
    return await lockFile(path, {
      onBusy: (holder) => {
        if (Date.now() < until) return;
        throw new AlidadeError("config_invalid", `${holder} is at work in ${folder}: wait for it, or name another folder`, {
          param: "out",
        });
      },
    });
  } catch (error) {
    throw toStoreError(path, error);
  }
}
