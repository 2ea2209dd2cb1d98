/** Files as the agent left them, from its work and from a sandbox as it was delivered. */
import { posix } from "node:path";
import { AlidadeError } from "../../base/errors.ts";
import type { Change } from "../../base/files/layer.ts";
import type { Sandbox } from "../../sandboxes/index.ts";
import type { GradeContext } from "../grader.ts";
import { contentsOf, databaseFiles, type FileContent } from "./layer-contents.ts";

/** Reads changed files from the work, and all others from a fresh sandbox, which is made only if one is read. */
export class LeftFiles implements AsyncDisposable {
  readonly #context: GradeContext;
  readonly #changes: Map<string, Change>;
  readonly #changed: Map<string, FileContent>;
  #delivered: Sandbox | undefined;

  private constructor(context: GradeContext, changes: Map<string, Change>, changed: Map<string, FileContent>) {
    this.#context = context;
    this.#changes = changes;
    this.#changed = changed;
  }

  /** Reads those of `paths` that the work changed, and what SQLite keeps beside them. A path is absolute or from the workdir. */
  static async open(paths: readonly string[], context: GradeContext): Promise<LeftFiles> {
    const changes = new Map(context.work.changes.map((change) => [change.path, change]));
    const wanted = new Set(paths.flatMap(databaseFiles).map((path) => absolutePath(path, context)));
    const changed = [...wanted].filter((path) => changes.get(path)?.type === "file");
    return new LeftFiles(context, changes, changed.length === 0 ? new Map() : await contentsOf(context.work, new Set(changed)));
  }

  /** Returns null if there is no file. Follows no link. */
  async read(path: string): Promise<FileContent> {
    const absolute = absolutePath(path, this.#context);
    for (let above = posix.dirname(absolute); above !== "/"; above = posix.dirname(above))
      if ((this.#changes.get(above)?.type ?? "folder") !== "folder") return null;
    return this.#changes.has(absolute) ? (this.#changed.get(absolute) ?? null) : this.#readDelivered(absolute);
  }

  async #readDelivered(absolute: string): Promise<Buffer | null> {
    this.#delivered ??= await this.#context.fresh();
    const [folder, name] = [posix.dirname(absolute), posix.basename(absolute)];
    try {
      return (await this.#delivered.readFiles(folder)).find(({ path }) => path === name)?.content ?? null;
    } catch (error) {
      if (error instanceof AlidadeError && error.code === "not_found") return null;
      // It is as it was delivered, so its size is not the agent's doing.
      if (error instanceof AlidadeError && error.owner === "policy")
        throw new AlidadeError("grader_error", `${folder} cannot be read as it was delivered: ${error.message}`, { cause: error });
      throw error;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#delivered?.[Symbol.asyncDispose]();
  }
}

function absolutePath(path: string, { task }: GradeContext): string {
  return posix.isAbsolute(path) ? path : `${task.environment.workdir}/${path}`;
}
