/** What a backend says of the images that its sandboxes are made from. */
import type { AlidadeError } from "../base/errors.ts";

/** One of these for each environment. */
export type PreparedImage =
  | { image: string; error: null; id: string; repo_digest: string | null; bytes: number }
  | { image: null; error: AlidadeError };

export type StoredImage = {
  /** The engine's content id; a volume's name. */
  id: string;
  names: string[];
  /** `base`, `built`: made by Alidade. `owned`: an image whose workdir was given to the agent. `snapshot`: a sandbox that was kept. `pulled`: by Alidade. `local`: was there, and a run used it. `mount`: no image but a volume with a folder of ours, on an engine that does not see this machine's. */
  kind: "base" | "desktop" | "built" | "owned" | "snapshot" | "pulled" | "local" | "mount";
  /** Layers that it shares with others included. */
  bytes: number;
  /** Milliseconds since 1970. */
  created: number;
  /** Milliseconds since 1970; null: no run is known to have used it. */
  last_used: number | null;
  runs: string[];
  /** The first twenty of each run. */
  tasks: string[];
  /** What keeps it from being removed, in words; null: nothing does. */
  in_use: string | null;
};

export type PruneOptions = {
  /** Images that may stay. null: any number. */
  keep: number | null;
  /** Bytes on disk that they may have together, layers that they share counted once. null: any number. */
  budget: number | null;
  /** Only says what would go. */
  dry_run: boolean;
};

export type Pruned = {
  removed: StoredImage[];
  failed: { image: StoredImage; message: string }[];
  /** Bytes on disk of what is left. */
  bytes_left: number;
  images_left: number;
};
