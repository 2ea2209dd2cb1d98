/**
 * The golden session's rows, written by hand in the three ways in which trainers line them up. Words are numbered in the
 * order in which they are first met, from 10; 2 ends a turn. Rows: the sub-agent's turn, the main agent up to its
 * summary, the turn after the compaction; and the sibling's one turn.
 */
export const helper = {
  prompt: [10, 23, 2, 13, 24, 2, 16],
  response: [25, 2],
  mask: [1, 1],
  logprobs: [-2, -2.125],
};

export const main = {
  prompt: [10, 11, 12, 2, 13, 14, 15, 2, 16],
  // Reasoning and a tool call; the tool's result; "found"; the request for a summary; the summary.
  response: [17, 18, 19, 20, 21, 22, 2, 26, 27, 2, 16, 28, 2, 13, 29, 2, 16, 30, 31, 2],
  mask: [1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 1, 1, 1],
  logprobs: [-1, -1.125, -1.25, -1.375, -1.5, -1.625, -1.75, 0, 0, 0, 0, -3, -3.125, 0, 0, 0, 0, -4, -4.125, -4.25],
};

export const after = {
  prompt: [10, 11, 12, 2, 13, 30, 31, 2, 13, 32, 33, 2, 16],
  response: [34, 2],
  mask: [1, 1],
  logprobs: [-5, -5.125],
};

export const sibling = {
  prompt: [10, 11, 12, 2, 13, 14, 15, 2, 16],
  response: [17, 2],
  mask: [1, 1],
  logprobs: [-7, -7.125],
};

/** B: full length. Entry `i` belongs to token `i`. */
export const full = {
  helper: {
    ids: [10, 23, 2, 13, 24, 2, 16, 25, 2],
    mask: [0, 0, 0, 0, 0, 0, 0, 1, 1],
    logprobs: [0, 0, 0, 0, 0, 0, 0, -2, -2.125],
  },
  main: {
    ids: [10, 11, 12, 2, 13, 14, 15, 2, 16, 17, 18, 19, 20, 21, 22, 2, 26, 27, 2, 16, 28, 2, 13, 29, 2, 16, 30, 31, 2],
    mask: [0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 1, 1, 1],
    logprobs: [
      ...[0, 0, 0, 0, 0, 0, 0, 0, 0, -1, -1.125, -1.25, -1.375, -1.5, -1.625, -1.75],
      ...[0, 0, 0, 0, -3, -3.125, 0, 0, 0, 0, -4, -4.125, -4.25],
    ],
  },
  after: {
    ids: [10, 11, 12, 2, 13, 30, 31, 2, 13, 32, 33, 2, 16, 34, 2],
    mask: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1],
    logprobs: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -5, -5.125],
  },
  sibling: {
    ids: [10, 11, 12, 2, 13, 14, 15, 2, 16, 17, 2],
    mask: [0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1],
    logprobs: [0, 0, 0, 0, 0, 0, 0, 0, 0, -7, -7.125],
  },
};

/** D: turn by turn, the main row's three. */
export const mainTurns = [
  {
    prompt: [10, 11, 12, 2, 13, 14, 15, 2, 16],
    completion: [17, 18, 19, 20, 21, 22, 2],
    logprobs: [-1, -1.125, -1.25, -1.375, -1.5, -1.625, -1.75],
  },
  {
    prompt: [10, 11, 12, 2, 13, 14, 15, 2, 16, 17, 18, 19, 20, 21, 22, 2, 26, 27, 2, 16],
    completion: [28, 2],
    logprobs: [-3, -3.125],
  },
  {
    prompt: [10, 11, 12, 2, 13, 14, 15, 2, 16, 17, 18, 19, 20, 21, 22, 2, 26, 27, 2, 16, 28, 2, 13, 29, 2, 16],
    completion: [30, 31, 2],
    logprobs: [-4, -4.125, -4.25],
  },
];
