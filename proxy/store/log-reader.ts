import { AlidadeError } from "../../base/errors.ts";
import { LogEntry } from "../../base/schema/session-log.ts";
import { asOfNow, statedVersion, type Versions, whyNewer } from "../../base/schema/versions/record-versions.ts";

/**
 * Returns a function that reads the entries of one log, in order. The first entry states the version of the others. A log
 * that states none is of today: an entry is lost, or a test wrote it.
 */
export function logReader(versions: Versions): (value: unknown) => LogEntry {
  let stated: number | null | undefined;
  return (value) => {
    if (stated === undefined) stated = statedVersion(value);
    const newer = whyNewer(stated, versions);
    if (newer !== null) throw new AlidadeError("store_error", `schema_version of its log is ${stated}, and ${newer}`);
    return LogEntry.parse(asOfNow(value, stated, versions));
  };
}
