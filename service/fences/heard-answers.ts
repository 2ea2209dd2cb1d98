/** What all nodes said of one order, as one answer. */
import { AlidadeError } from "../../base/errors.ts";
import type { NodeAnswer } from "../ledger/index.ts";

export class HeardAnswers {
  readonly #answers: readonly (readonly [node: string, answer: NodeAnswer])[];

  constructor(answers: readonly (readonly [string, NodeAnswer])[]) {
    this.#answers = answers;
  }

  /** Names of the engines at all nodes. */
  get engines(): string[] {
    return [...new Set(this.#answers.flatMap(([, { engines }]) => engines))];
  }

  get nodes(): string[] {
    return this.#answers.map(([node]) => node);
  }

  sum(field: "running" | "held"): number {
    return this.#answers.reduce((sum, [, answer]) => sum + answer[field], 0);
  }

  /** By the node's name. */
  by<Field extends "checked" | "prefix_cache" | "interrupted">(field: Field): Record<string, NodeAnswer[Field]> {
    return Object.fromEntries(this.#answers.map(([node, answer]) => [node, answer[field]]));
  }

  /** Throws `not_found` for an engine that no node has. Without any node they are to come. */
  assertKnown(engines: readonly string[] = []): void {
    const unknown = engines.find((name) => !this.engines.includes(name));
    if (unknown === undefined || this.#answers.length === 0) return;
    throw new AlidadeError("not_found", `engines names "${unknown}": no node has an engine of this name; nodes: ${this.nodes.join(", ")}`, {
      param: "engines",
    });
  }
}
