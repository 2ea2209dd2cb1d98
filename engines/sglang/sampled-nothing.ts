/**
 * Which of SGLang's error answers prove that it sampled nothing. An answer comes in one piece behind the whole sample, so
 * a refusal can come there too: these are its own sentences for requests that it ended while they ran (0.5.23).
 */
import { type SampledNothing, sampledNothing } from "../http/sampled-nothing.ts";

const endedWhileRunning =
  /running timeout reached|retracted under decode memory pressure|out of memory even after retracting|invalid stop_regex|sampling support exceeds/i;

export const sglangSampledNothing: SampledNothing = (status, text) => sampledNothing(status, text) && !endedWhileRunning.test(text);
