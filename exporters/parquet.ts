/** Parquet: the flat rows (`reconstruct/rows/flat-row.ts`) as columns, for tools that read tables. */
import { ByteWriter, ParquetWriter } from "hyparquet-writer";
import { z } from "zod";
import type { FlatRow } from "../reconstruct/index.ts";
import { defineExporter } from "./exporter.ts";
import { aggregation } from "./rows/aggregation.ts";
import { rowsOf } from "./rows/rows.ts";
import { cellOf, columns, schema } from "./shapes/parquet-columns.ts";

/** What a row group may hold: columns are built in memory, about 60 bytes a token; readers load a group at a time. */
const tokensOfGroup = 500_000;

export const parquet = defineExporter({
  name: "parquet",
  title: "the flat rows in a Parquet file: lists of token_ids, loss_mask, logprobs, segments",
  objective: "rl",
  extension: "parquet",
  saysPackedRows: true,
  namesPictures: true,
  saysPictures: true,
  docs: {
    alignment: "B",
    rows: "One row for each branch of a rollout with trained tokens, or one dummy row (mask 0, `dummy: true`) if no row fits. Rows are not padded. Missing logprobs are null.",
    teacher: "`teacher_logprobs`",
    experts: "`alidade.routing.experts` returns them as an array",
    loader: null,
    proof: { how: "trainer", by: "pyarrow 26.0.1" },
  },
  options: z.strictObject({ aggregation }),
  async *write(source, options, report) {
    const file = new RowGroups();
    for await (const trajectory of source.trajectories()) {
      for (const row of rowsOf(trajectory, options, report, options.own)) {
        report.rows++;
        if (row.dummy) report.dummy_rows++;
        file.add(row);
        if (file.isFull) yield file.takeGroup();
      }
    }
    yield file.finish();
  },
});

class RowGroups {
  readonly #bytes = new ByteWriter();
  readonly #writer = new ParquetWriter({ writer: this.#bytes, schema, createdBy: "alidade" });
  #rows: FlatRow[] = [];
  #tokens = 0;

  get isFull(): boolean {
    return this.#tokens >= tokensOfGroup;
  }

  add(row: FlatRow): void {
    this.#rows.push(row);
    this.#tokens += row.token_ids.length;
  }

  takeGroup(): Uint8Array {
    const rows = this.#rows;
    const columnData = columns.map((name) => ({ name, data: rows.map((row) => cellOf(row, name)) }));
    // Statistics of token ids are useless.
    this.#writer.write({ columnData, rowGroupSize: rows.length });
    this.#rows = [];
    this.#tokens = 0;
    return this.#take();
  }

  finish(): Uint8Array {
    const last = this.#rows.length > 0 ? this.takeGroup() : new Uint8Array();
    this.#writer.finish();
    return Buffer.concat([last, this.#take()]);
  }

  /** The library counts offsets on its own, so that its buffer may start anew. */
  #take(): Uint8Array {
    const taken = this.#bytes.getBytes().slice();
    this.#bytes.index = 0;
    return taken;
  }
}
