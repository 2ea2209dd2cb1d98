/** What this process takes of its machine, under the names that Prometheus's own clients use. */
import { monitorEventLoopDelay } from "node:perf_hooks";
import { gauge, type MetricFamily } from "../../base/wire/prometheus-text.ts";

/** Looks at the event loop until it is disposed; the lag is the worst since the last look of a monitor. */
export class ProcessMetrics implements Disposable {
  /** One timer each 20 ms, which costs a tenth of a percent of a core. */
  readonly #delay = monitorEventLoopDelay({ resolution: 20 });
  readonly #began = Date.now() / 1000 - process.uptime();

  constructor() {
    this.#delay.enable();
  }

  families(): MetricFamily[] {
    const { user, system } = process.cpuUsage();
    const { rss, heapUsed } = process.memoryUsage();
    const cpu = { labels: {}, value: (user + system) / 1e6 };
    const lag = this.#delay.max / 1e9;
    this.#delay.reset();
    return [
      { name: "process_cpu_seconds_total", type: "counter", help: "CPU time of this process.", samples: [cpu] },
      gauge("process_resident_memory_bytes", "Resident memory of this process.", rss),
      gauge("process_start_time_seconds", "When this process began, in Unix seconds.", this.#began),
      gauge("nodejs_heap_size_used_bytes", "Memory that objects of JavaScript take.", heapUsed),
      gauge("nodejs_eventloop_lag_max_seconds", "The longest that the event loop was held up since the last look.", lag),
    ];
  }

  [Symbol.dispose](): void {
    this.#delay.disable();
  }
}
