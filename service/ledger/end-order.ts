/**
 * Rollouts that are to end as cancelled. What is submitted behind the order is not meant. `key`: those of one group; null: of the whole
 * set. `isRest`: those of the group alone that are made later, if at all.
 */
export type EndOrder = { set: string; key: string | null; isRest: boolean; reason: string };
