/** Entries of the session log about the tool servers of a session and the runs of their tools. */
import { z } from "zod";
import { wordsOf } from "../reasons/meaning.ts";
import { toolFailures } from "../reasons/tools.ts";
import { Time } from "./time.ts";

/** A tool server and its list of tools. The list is read once and stays the same for the whole session. */
export const ToolServerSeen = z.strictObject({
  type: z.literal("tool_server"),
  time: Time,
  server: z.string(),
  /** Hash of the list as harnesses get it. */
  tools_sha256: z.string(),
  tools: z.array(z.string()),
  /** What the server calls itself; null if it does not say. */
  version: z.string().nullable(),
});

/** Written before the service is asked. Without a `tool_finished` it is unknown whether it ran. */
export const ToolBegun = z.strictObject({
  type: z.literal("tool_begun"),
  time: Time,
  run_id: z.string(),
  /** Order in which the session's tool runs began, from 0. */
  ordinal: z.number().int().nonnegative(),
  server: z.string(),
  tool: z.string(),
  /** The text, unchanged. */
  arguments: z.string(),
  /** The model's call that asked for this run, and the id of the tool call in it. null: a command of the agent asked. */
  call_id: z.string().nullable(),
  tool_call_id: z.string().nullable(),
});
export type ToolBegun = z.infer<typeof ToolBegun>;

export const ToolFailure = z.enum(wordsOf(toolFailures));
export type ToolFailure = z.infer<typeof ToolFailure>;

/** One part of a result's content. */
export const ResultPart = z.strictObject({
  type: z.string(),
  /** Size of its text, or of its picture before base64. */
  bytes: z.number().int().nonnegative(),
  media_type: z.string().optional(),
  /** Hash of the bytes of a picture or sound, before base64. */
  sha256: z.string().optional(),
});
export type ResultPart = z.infer<typeof ResultPart>;

/** Written before the answer is sent. */
export const ToolFinished = z.strictObject({
  type: z.literal("tool_finished"),
  time: Time,
  run_id: z.string(),
  /** true: the service reported an error, or did not answer. */
  is_error: z.boolean(),
  /** Absent if the service answered. */
  failure: ToolFailure.optional(),
  /** Hash of the result or error as the harness gets it. */
  result_sha256: z.string(),
  parts: z.array(ResultPart),
  ms: z.number(),
});
export type ToolFinished = z.infer<typeof ToolFinished>;
