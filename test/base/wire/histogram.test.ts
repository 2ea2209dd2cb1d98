/** Histograms as Prometheus reads them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Histogram, secondsUpTo } from "../../../base/wire/histogram.ts";
import { prometheusText } from "../../../base/wire/prometheus-text.ts";

test("each bucket counts all values up to its bound, and the count is that of all", () => {
  fc.assert(
    fc.property(fc.array(fc.double({ min: 0, max: 10_000, noNaN: true })), (values) => {
      const histogram = new Histogram("a_seconds", "A test.");
      for (const value of values) histogram.observe(value, { stage: "run" });
      const { samples } = histogram.family();
      for (const { labels, value } of samples.filter(({ part }) => part === "_bucket")) {
        const bound = labels.le === "+Inf" ? Number.POSITIVE_INFINITY : Number(labels.le);
        assert.equal(value, values.filter((one) => one <= bound).length);
      }
      assert.equal(samples.at(-1)?.value, values.length === 0 ? undefined : values.length);
    }),
  );
});

test("a histogram is text in which each series has its buckets, its sum and its count", () => {
  const histogram = new Histogram("a_seconds", "A test.");
  histogram.observe(0.3, { engine: "one" });
  histogram.observe(-1, { engine: "one" });
  histogram.observe(Number.NaN, { engine: "two" });
  const lines = prometheusText([histogram.family()]).split("\n");
  assert.equal(lines[1], "# TYPE a_seconds histogram");
  assert.ok(lines.includes('a_seconds_bucket{engine="one",le="0.25"} 1'));
  assert.ok(lines.includes('a_seconds_bucket{engine="one",le="+Inf"} 2'));
  assert.deepEqual(lines.slice(-3), ['a_seconds_sum{engine="one"} 0.3', 'a_seconds_count{engine="one"} 2', ""]);
});

test("series are bounded: a name too many is not counted, and those that there are go on", () => {
  const histogram = new Histogram("a_seconds", "A test.");
  for (let at = 0; at < 1_000; at++) histogram.observe(1, { engine: String(at) });
  histogram.observe(1, { engine: "0" });
  const counts = histogram.family().samples.filter(({ part }) => part === "_count");
  assert.deepEqual([counts.length, counts[0]?.value, secondsUpTo.length > 10], [50, 2, true]);
});
