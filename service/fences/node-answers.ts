/** What the nodes say of an order, once each of them that is not dead has said something. */
import { AlidadeError, type ErrorCode, errorCodes } from "../../base/errors.ts";
import { type HeardNode, type Ledger, type NodeAnswer, ordersOf } from "../ledger/index.ts";
import { HeardAnswers } from "./heard-answers.ts";

export class NodeAnswers {
  readonly #ledger: Ledger;

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
  }

  /**
   * Throws what the first node refuses, with its name; `drain_timeout` naming the nodes that have not answered when the signal
   * fires, and when the order was taken back meanwhile.
   */
  async to(order: number, signal: AbortSignal): Promise<HeardAnswers> {
    const answerOf = ({ report }: HeardNode): NodeAnswer | undefined => report?.answers[order];
    const nodes = await this.#until(
      signal,
      (node) => answerOf(node) !== undefined,
      async (heard) => {
        for (const node of heard) assertWilling(node.node, answerOf(node));
        if (!ordersOf(await this.#ledger.control()).includes(order))
          throw new AlidadeError("drain_timeout", "the fence was resumed, or asked for again, while nodes drained: pause anew");
      },
    );
    return new HeardAnswers(nodes.map((node) => [node.node, answerOf(node) as NodeAnswer]));
  }

  /** Until all nodes have carried out what holds since this order. */
  async following(order: number, signal: AbortSignal): Promise<void> {
    await this.#until(signal, ({ report }) => report !== null && report.order >= order);
  }

  async #until(
    signal: AbortSignal,
    isHeard: (node: HeardNode) => boolean,
    look?: (nodes: HeardNode[]) => Promise<void>,
  ): Promise<HeardNode[]> {
    for (;;) {
      const seen = this.#ledger.answered.version;
      const nodes = await this.#ledger.reports();
      await look?.(nodes);
      if (nodes.every(isHeard)) return nodes;
      try {
        await this.#ledger.answered.after(seen, signal);
      } catch {
        const silent = nodes.filter((node) => !isHeard(node)).map(({ node }) => node);
        throw new AlidadeError("drain_timeout", `${silent.join(", ")} did not answer in time`);
      }
    }
  }
}

function assertWilling(node: string, answer: NodeAnswer | undefined): void {
  if (!answer?.error) return;
  const { code, status, message } = answer.error;
  throw new AlidadeError(Object.hasOwn(errorCodes, code) ? (code as ErrorCode) : "internal", `node ${node}: ${message}`, { status });
}
