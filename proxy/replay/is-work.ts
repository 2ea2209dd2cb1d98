/** Which requests are an agent's own turns, and not questions about the run (a title, a topic). */
import { type RequestClass, workClasses } from "../../base/schema/session-spec.ts";

export function isWork(requestClass: RequestClass): boolean {
  return workClasses.includes(requestClass);
}
