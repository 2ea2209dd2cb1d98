/** One of the ways of names.js. */
export const style = "plain";
