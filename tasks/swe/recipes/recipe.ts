/** How the image of an instance is made. */
export type Recipe = {
  /** The Dockerfile's first lines, before the repository is copied. They begin with FROM, and hold no unchecked text of a row. */
  base: string[];
  repo: string;
  commit: string;
  /** A bash script that runs in the repository with the public network. It comes from strangers, as every task's Dockerfile does. */
  install: string;
};
