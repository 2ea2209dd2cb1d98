import type { Engine, SampleEvent } from "../../engines/engine.ts";

/** Milliseconds of one turn, and how often the tokenizer was asked. */
export type Watch = { asking: number; asked: number; first: number };

/** The engine, with a clock: how long its tokenizer is asked before it is asked to sample, and how long its first tokens take. */
export class WatchedEngine {
  readonly engine: Engine;
  #watch: Watch = { asking: 0, asked: 0, first: 0 };

  constructor(engine: Engine) {
    const timed =
      <A extends unknown[], R>(ask: (...args: A) => Promise<R>) =>
      async (...args: A): Promise<R> => {
        const [watch, began] = [this.#watch, performance.now()];
        try {
          return await ask(...args);
        } finally {
          // Once it samples, questions are about what has been: nothing waits for them.
          if (watch.first === 0) {
            watch.asked++;
            watch.asking += performance.now() - began;
          }
        }
      };
    this.engine = {
      name: engine.name,
      baseUrl: engine.baseUrl,
      probe: (signal) => engine.probe(signal),
      sample: (request, signal) => this.#sample(engine.sample(request, signal)),
      ...(engine.render && { render: timed(engine.render.bind(engine)) }),
      ...(engine.tokenize && { tokenize: timed(engine.tokenize.bind(engine)) }),
      ...(engine.detokenize && { detokenize: timed(engine.detokenize.bind(engine)) }),
      close: () => engine.close(),
    };
  }

  /** The clock of the next turn. Turns come one after the other. */
  start(): Watch {
    this.#watch = { asking: 0, asked: 0, first: 0 };
    return this.#watch;
  }

  async *#sample(events: AsyncIterable<SampleEvent>): AsyncGenerator<SampleEvent> {
    const [watch, began] = [this.#watch, performance.now()];
    for await (const event of events) {
      if (event.type === "tokens" && watch.first === 0) watch.first = performance.now() - began;
      yield event;
    }
  }
}
