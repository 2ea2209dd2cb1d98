import { z } from "zod";

/** Unix time in milliseconds. */
export const Time = z.number();
