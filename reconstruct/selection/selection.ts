/**
 * A selection chooses the paths of the token tree that become rows, and the tokens that each row may train.
 * `select-rows.ts` then decides what is too long, not trainable or already trained elsewhere.
 */
import type { TreeNode } from "../../base/schema/trajectory.ts";
import type { TreeIndex } from "../tree/tree-index.ts";

export interface Selection {
  readonly name: string;
  /** One line for help texts: what a row is, and its use. */
  readonly title: string;
  /** Paths that share a beginning are laid into one row, with a parent and a position for each token. */
  readonly packed?: true;
  paths(tree: TreeIndex): Path[];
}

/** Tokens `from` to `to` (exclusive) of a node. */
export type RowPiece = { node: TreeNode; from: number; to: number; context: "exact" | "same_text" };

export type Path = {
  trace_id: string;
  agent: string;
  pieces: RowPiece[];
  /** May this path train these sampled tokens? */
  trains: (node: TreeNode) => boolean;
  /** Paths that train different things never make each other needless. */
  scope: string;
  cut: boolean;
};

export const wholeNode = (node: TreeNode): RowPiece => ({ node, from: 0, to: node.token_ids.length, context: "exact" });

export const pieceLength = (pieces: RowPiece[]): number => pieces.reduce((length, { from, to }) => length + to - from, 0);
