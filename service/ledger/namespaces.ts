/** Sets belong to a namespace: that of the token which made them. Keys are of a namespace, and so is what its sets may hold. */
import { AlidadeError } from "../../base/errors.ts";

/** The empty namespace is the operator's own. */
export type SetName = { namespace: string; key: string };

/**
 * Characters of the specifications of a namespace's sets, labels above all. A set stays for ever, and a list of sets reads all of
 * it. So many are 300 000 sets without labels, or 50 000 of five kilobytes.
 */
const mostSpecChars = 256 * 1024 * 1024;

/** `chars`: with the set that is being made. Throws `request_invalid` (413). */
export function assertSpecsFit(chars: number): void {
  if (chars <= mostSpecChars) return;
  throw new AlidadeError(
    "request_invalid",
    `the sets of this namespace would hold ${chars} characters of labels and other fields, and ${mostSpecChars} are kept: put groups into sets that are there, or begin another ledger`,
    { param: "labels", status: 413 },
  );
}
