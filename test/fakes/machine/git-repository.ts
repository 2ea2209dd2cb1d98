/** A repository that a test makes commit by commit, in a temporary folder. */
import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { TestContext } from "node:test";

export class GitRepository {
  readonly folder: string;

  constructor(folder: string) {
    this.folder = folder;
  }

  static async make(t: TestContext, name = "slug"): Promise<GitRepository> {
    const above = await mkdtemp(join(tmpdir(), "alidade-git-"));
    t.after(() => rm(above, { recursive: true }));
    const repository = new GitRepository(join(above, name));
    await mkdir(repository.folder);
    repository.git("init", "-q", "-b", "main");
    return repository;
  }

  git(...args: string[]): string {
    const own = { GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_NOSYSTEM: "1" };
    const who = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org"];
    return execFileSync("git", ["-C", this.folder, ...who, ...args], { encoding: "utf8", env: { PATH: process.env.PATH, ...own } }).trim();
  }

  /** null removes a file. Returns the commit's id. */
  async commit(message: string, files: Record<string, string | Buffer | null>): Promise<string> {
    for (const [path, content] of Object.entries(files)) {
      const file = join(this.folder, path);
      await mkdir(dirname(file), { recursive: true });
      await (content === null ? rm(file) : writeFile(file, content));
    }
    this.git("add", "-A", "-f");
    this.git("commit", "-q", "-m", message);
    return this.git("rev-parse", "HEAD");
  }
}
