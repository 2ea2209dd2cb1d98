/** One task of a set by its name, and what is said where there is none of that name. */
import { AlidadeError } from "../base/errors.ts";
import { nearestWords } from "../base/schema/complaints/nearest-word.ts";

/** More names than these are no help. */
const mostNamed = 5;
const longestName = 100;

/** `LoadOptions.only` of one task: a format asks it for each task that it meets, so it knows the names that there are. */
export class WantedTask extends Set<string> {
  readonly #id: string;
  readonly #met = new Set<string>();

  constructor(id: string) {
    super([id]);
    this.#id = id;
  }

  override has(id: string): boolean {
    if (id !== "") this.#met.add(id);
    return super.has(id);
  }

  /** `place`: where it was looked for. Closest names first. */
  missing(place: string): AlidadeError {
    const names = nearestWords(this.#id, this.#met).map((name) => name.slice(0, longestName));
    const such = names.length > mostNamed ? `${names.length} others, such as ` : "";
    const there = names.length === 0 ? "" : `: it holds ${such}${names.slice(0, mostNamed).join(", ")}`;
    return new AlidadeError("task_invalid", `${place} holds no task ${this.#id}${there}`, { param: "tasks" });
  }
}
