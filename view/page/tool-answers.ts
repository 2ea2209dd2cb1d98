/** Finds where the results of a turn's tool calls are shown, and which turns have an error to show. */
import type { TurnView } from "../session-view.ts";

export type ToolAnswers = {
  /** The turn whose request brought the results of this turn's calls. They are shown below this turn, not below that one. */
  answersOf: (turn: TurnView) => TurnView | null;
  /** Why the turn is marked; null: it shows no error. */
  errorOf: (turn: TurnView) => TurnError | null;
};

export type TurnError = "call" | "tool";

export function toolAnswers(turns: readonly TurnView[]): ToolAnswers {
  const byParent = new Map<number, TurnView>();
  for (const turn of turns)
    if (turn.parent !== null && turn.added.length > 0 && !byParent.has(turn.parent)) byParent.set(turn.parent, turn);
  const answersOf = ({ number }: TurnView) => byParent.get(number) ?? null;
  const hasError = (turn: TurnView | null) => turn?.added.some(({ error }) => error) === true;
  const isShownAbove = (turn: TurnView) => turn.parent !== null && byParent.get(turn.parent) === turn;
  const errorOf = (turn: TurnView): TurnError | null => {
    if (turn.call.error !== null) return "call";
    return hasError(answersOf(turn)) || (!isShownAbove(turn) && hasError(turn)) ? "tool" : null;
  };
  return { answersOf, errorOf };
}
