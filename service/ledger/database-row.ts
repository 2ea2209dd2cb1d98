/** A row as a database gives it, by its columns' names. sqlite says 0 and 1 where Postgres says false and true. */
export type DatabaseRow = Record<string, string | number | boolean | null>;
