/** Which paths share a row, and in which order their tokens stand in it. */
import type { Path, RowPiece } from "../selection/selection.ts";

export type Plan = {
  /** The paths that this row trains; a packed tree has several. */
  paths: Set<Path>;
  pieces: RowPiece[];
  /** Only in a packed tree, one number per piece: the preceding piece on its path, or -1. null: pieces follow each other. */
  parents: number[] | null;
};

/** A row for each path. */
export function planRows(paths: Path[]): Plan[] {
  return paths.map((path) => ({ paths: new Set([path]), pieces: path.pieces, parents: null }));
}

/** As many paths a row as its limit allows, in their order; what they share is there once. */
export function planPacked(paths: Path[], maxTokens: number | null): Plan[] {
  const packs: RowPack[] = [];
  for (const path of paths) {
    let pack = packs.at(-1);
    if (pack === undefined || (maxTokens !== null && pack.lengthWith(path) > maxTokens)) {
      pack = new RowPack();
      packs.push(pack);
    }
    pack.add(path);
  }
  return packs.map(({ paths: inside, pieces, parents }) => ({ paths: inside, pieces, parents }));
}

class RowPack {
  readonly paths = new Set<Path>();
  readonly pieces: RowPiece[] = [];
  readonly parents: number[] = [];
  readonly #places = new Map<string, number>();
  #length = 0;

  lengthWith(path: Path): number {
    return path.pieces.reduce((sum, { node, from, to }) => sum + (this.#places.has(node.node_id) ? 0 : to - from), this.#length);
  }

  add(path: Path): void {
    this.paths.add(path);
    let parent = -1;
    for (const piece of path.pieces) {
      const known = this.#places.get(piece.node.node_id);
      if (known === undefined) {
        this.parents.push(parent);
        parent = this.pieces.push(piece) - 1;
        this.#places.set(piece.node.node_id, parent);
        this.#length += piece.to - piece.from;
      } else parent = known;
    }
  }
}
