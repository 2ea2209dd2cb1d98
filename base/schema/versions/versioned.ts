import { z } from "zod";
import { asOfNow, statedVersion, type Versions, whyNewer } from "./record-versions.ts";

/** Makes a schema read the version before too. It refuses a newer version by the field `schema_version`. */
export function versioned<T extends z.ZodType>(versions: Versions, schema: T) {
  return z.preprocess((record, context) => {
    const stated = statedVersion(record);
    const newer = whyNewer(stated, versions);
    if (newer === null) return asOfNow(record, stated, versions);
    context.addIssue({ code: "custom", message: newer, path: ["schema_version"] });
    return z.NEVER;
  }, schema);
}
