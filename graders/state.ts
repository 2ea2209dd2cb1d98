/**
 * Grades what an agent left: files, values in JSON, rows of SQLite databases, cells of workbooks, and that nothing else was
 * changed. All of it is read from outside, and nothing of the work is run.
 */
import { posix } from "node:path";
import { z } from "zod";
import { AlidadeError } from "../base/errors.ts";
import { isBelow, matchesAny } from "../base/files/file-tree.ts";
import type { Services } from "../base/schema/environment/services.ts";
import type { Grader, Misfit } from "./grader.ts";
import {
  conditionFields,
  hasOneCondition,
  hold,
  JsonPointer,
  looseTexts,
  oneCondition,
  textOfValue,
  whyTooLong,
} from "./rules/condition.ts";
import { type RuleResult, ruleVerdict } from "./rules/rule-verdict.ts";
import { databaseOf } from "./state/database.ts";
import { answeredValue, type OnQueryError, type StateReading, valueIn } from "./state/value.ts";
import { whyChanged } from "./state/why-changed.ts";
import type { QuestionToService } from "./work/ask-service.ts";
import { LeftFiles } from "./work/left-files.ts";
import { type ServiceFile, ServiceFiles } from "./work/service-files.ts";
import { workEvidence } from "./work/work.ts";

const WorkPath = z
  .string()
  .min(1)
  .refine((path) => posix.normalize(path) === path && !path.startsWith("..") && !path.endsWith("/"), {
    error: "give a normal path: from the workdir, or absolute",
  });

const ServiceName = z.string().min(1).max(63).describe("the name of a service, whose `state` is read");

const Unchanged = z.strictObject({
  file: WorkPath.describe(
    "a SQLite database or an OpenDocument workbook of the service, compared with what it was before the agent: all tables, row by row",
  ),
  except: z
    .array(
      z.strictObject({
        table: z.string().min(1),
        where: z.string().min(1).optional().describe("an SQL expression that is true of rows that may differ; left out: all"),
        columns: z.array(z.string().min(1)).min(1).optional().describe("what of them may differ; left out: they may also come and go"),
      }),
    )
    .max(50)
    .default([]),
});

const HttpPath = z.string().regex(/^\/[!-~]*$/, "give a path, such as /tickets/1");

const AskedOver = z
  .strictObject({
    port: z.number().int().min(1).max(65_535),
    get: HttpPath.optional(),
    post: HttpPath.optional().describe(
      'or a path that gets `{"answers": […]}` by POST: the texts of the agent\'s turns that call no tool, in order',
    ),
    json: JsonPointer.optional().describe("a place in the answer, which is JSON"),
  })
  .refine(({ get, post }) => (get === undefined) !== (post === undefined), { path: ["get"], error: "give get or post" });
type AskedOver = z.infer<typeof AskedOver>;

const places = ["file", "http", "unchanged"] as const;

const Check = z
  .strictObject({
    service: ServiceName.optional(),
    file: WorkPath.optional().describe("from the workdir, or absolute inside the sandbox; of a service always absolute"),
    json: JsonPointer.optional().describe("a place in the file, which is JSON"),
    query: z
      .string()
      .regex(/^\s*(?:select|with|values)\b/i, "give a query that reads: SELECT, WITH or VALUES")
      .optional()
      .describe("of the file, which is a SQLite database or an OpenDocument workbook (.ods)"),
    http: AskedOver.optional().describe("what the service answers to a GET once the agent has ended"),
    unchanged: Unchanged.optional(),
    ...conditionFields,
  })
  .refine((check) => places.filter((place) => check[place] !== undefined).length === 1, { error: `give one of ${places.join(", ")}` })
  .refine((check) => (check.unchanged === undefined ? hasOneCondition(check) : !hasOneCondition(check)), {
    error: `${oneCondition.error}; beside \`unchanged\` none`,
  })
  .refine(({ service, http, unchanged }) => service !== undefined || (http === undefined && unchanged === undefined), {
    path: ["service"],
    error: "name the service that `http` asks or `unchanged` reads",
  })
  .refine(({ service, file, unchanged }) => service === undefined || posix.isAbsolute(file ?? unchanged?.file ?? "/"), {
    path: ["file"],
    error: "of a service give an absolute path",
  })
  .refine(({ json, query, file }) => file !== undefined || (json === undefined && query === undefined), {
    path: ["file"],
    error: "json and query are of a file",
  })
  .refine(({ json, query }) => json === undefined || query === undefined, { path: ["query"], error: "give json or query, and not both" });
type Check = z.infer<typeof Check>;

const OnlyOfService = z.strictObject({
  service: ServiceName,
  files: z.array(z.string().min(1)).describe("globs of absolute paths of its state that may have changed"),
});

export const StateSpec = z
  .strictObject({
    kind: z.literal("state"),
    checks: z.array(Check).max(200).default([]),
    only: z
      .array(z.union([z.string().min(1), OnlyOfService]))
      .optional()
      .describe("globs of what may have changed: from the workdir, or absolute; `{service, files}` says it of a service"),
  })
  .refine(({ checks, only }) => checks.length > 0 || only !== undefined, { error: "give checks, or only" });
type StateSpec = z.infer<typeof StateSpec>;

export const state: Grader<StateSpec> = {
  name: "state",
  title: "What is left: files, JSON, SQLite, workbooks, and nothing else changed",
  version: "4",
  spec: StateSpec,
  // A value in JSON or of a query is a part of the file: nothing here knows what to write around it.
  loose: ({ checks }) => checks.flatMap((check) => (isText(check) ? looseTexts(check, check.file) : [])),
  asksServices: ({ checks }) => checks.flatMap(questionsOf),
  allows: ({ checks }) =>
    checks.flatMap(({ service, unchanged }) => (service !== undefined && unchanged !== undefined ? [{ service, ...unchanged }] : [])),
  misfits: ({ checks, only = [] }, { services = {} }) => [
    ...checks.flatMap((check, index) => misfitOf(`checks.${index}`, check.service, [check.file ?? check.unchanged?.file], services)),
    ...only.flatMap((one, index) => (typeof one === "string" ? [] : misfitOf(`only.${index}`, one.service, [], services))),
  ],
  // Files of services come from readings of the services, without a fresh sandbox.
  startsFresh: ({ checks }) => checks.some(({ service }) => service === undefined),
  tier: () => "T3",

  async grade({ checks, only }, context) {
    const started = performance.now();
    await using files = await LeftFiles.open(
      checks.flatMap(({ service, file }) => (service === undefined && file !== undefined ? [file] : [])),
      context,
    );
    const services = await ServiceFiles.open(context, {
      files: checks.flatMap(({ service, file, unchanged }) => fileOf(service, file ?? unchanged?.file)),
      questions: checks.flatMap(questionsOf),
      changes: ofServices(only).map(({ service }) => service),
    });
    const results: RuleResult[] = [];
    const differing: string[] = [];
    for (const [index, check] of checks.entries()) {
      const why = await whyNot(check, { files, services, differing }, context.signal);
      results.push({ name: nameOf(check, index), holds: why === null, why: why ?? "" });
    }
    const { work_sha256, no_change, added, modified, deleted } = workEvidence(context.work, context.task);
    const globs = only?.filter((one) => typeof one === "string");
    // A list that speaks of services alone says nothing about the work.
    if (globs !== undefined && (globs.length > 0 || only?.length === 0))
      results.push(nothingElse("nothing else", [...added, ...modified, ...deleted], globs));
    for (const { service, files: allowed } of ofServices(only))
      results.push(nothingElse(`nothing else of ${service}`, services?.changed(service) ?? [], allowed));
    return ruleVerdict("state", results, context, started, {
      work_sha256,
      no_change,
      ...(differing.length > 0 && { changed_rows: differing.slice(0, mostRows) }),
    });
  },
};

function misfitOf(within: string, service: string | undefined, files: (string | undefined)[], services: Services): Misfit[] {
  if (service === undefined) return [];
  const field = `${within}.service`;
  if (!Object.hasOwn(services, service)) return [{ field, message: `is ${service}: ${oneOfServices(services)}` }];
  const { state = [] } = services[service] ?? {};
  return files
    .filter((file) => file !== undefined && !state.some((path) => isBelow(file, path)))
    .map((file) => ({ field, message: `is ${service}, whose state has no ${file}: add it to environment.services.${service}.state` }));
}

function oneOfServices(services: Services): string {
  const names = Object.keys(services);
  return names.length === 0 ? "the task has no environment.services" : `name one of ${names.join(", ")}`;
}

function isText(check: Check): check is Check & { file: string } {
  return check.file !== undefined && check.service === undefined && check.json === undefined && check.query === undefined;
}

function questionsOf({ service, http }: Check): QuestionToService[] {
  return service === undefined || http === undefined ? [] : [questionTo(service, http)];
}

function questionTo(service: string, { port, get = "/", post }: AskedOver): QuestionToService {
  return post === undefined ? { service, port, get } : { service, port, post };
}

function fileOf(service: string | undefined, file: string | undefined): ServiceFile[] {
  return service === undefined || file === undefined ? [] : [{ service, file }];
}

function ofServices(only: StateSpec["only"] = []): z.infer<typeof OnlyOfService>[] {
  return only.filter((one) => typeof one !== "string");
}

function nothingElse(name: string, changed: string[], globs: string[]): RuleResult {
  const others = changed.filter((path) => !matchesAny(path, globs));
  return { name, holds: others.length === 0, why: `changed: ${others.slice(0, 10).join(", ")}` };
}

function nameOf({ service, file, json, query, http, unchanged }: Check, index: number): string {
  const whose = service === undefined ? "" : `${service} `;
  const place = http
    ? `${http.post ? "POST" : "GET"} ${http.post ?? http.get}${http.json ?? ""}`
    : unchanged
      ? `${unchanged.file} unchanged`
      : `${file}${json ?? ""}`;
  return `${index + 1} ${whose}${place}${query === undefined ? "" : " query"}`;
}

/** Evidence is for a person. */
const mostRows = 50;

/** What checks look at. `differing`: receives rows that differ, for the evidence. */
type Places = { files: LeftFiles; services: ServiceFiles | null; differing: string[] };

/** null where the check holds. */
async function whyNot(check: Check, places: Places, signal: AbortSignal): Promise<string | null> {
  const { service, unchanged } = check;
  if (service !== undefined && unchanged !== undefined && places.services !== null)
    return whyChanged({ service, ...unchanged }, places.services, places.differing, signal);
  const found = await readingOf(check, places, signal);
  if ("problem" in found) return found.problem;
  const [holds] = await hold(check, [found.value], signal);
  if (holds === true) return null;
  const tooLong = whyTooLong(check, found.value);
  if (tooLong !== null) return tooLong;
  return holds === null ? "the pattern was not decided in time" : `it is ${textOfValue(found.value).slice(0, 200) || "not there"}`;
}

async function readingOf(
  { service, file = "", json, query, http }: Check,
  { files, services }: Places,
  signal: AbortSignal,
): Promise<StateReading> {
  if (service === undefined || services === null) {
    const beside = async (suffix: string) => (query === undefined ? null : await files.read(`${file}${suffix}`));
    const read = { content: await files.read(file), log: await beside("-wal"), journal: await beside("-journal") };
    return valueIn(read, { file, json, query }, (error) => ({ problem: error }), signal);
  }
  if (http !== undefined) return answeredValue(services.answer(questionTo(service, http)), http.json);
  const readAt = (when: "before" | "after", onError: OnQueryError) => {
    return valueIn(databaseOf(services, when, { service, file }), { file, json, query }, onError, signal);
  };
  return readAt("after", async (error) => {
    // Too many rows are a fact.
    if (error.startsWith("Error: more than ")) return { problem: error };
    const wasReadable = await readAt("before", () => ({ problem: error }));
    // The agent's calls can drop a table.
    if (!("problem" in wasReadable) && wasReadable.value !== undefined) return { problem: error };
    throw new AlidadeError("grader_error", `${file} of the service ${service} cannot be read, and could not be before the agent: ${error}`);
  });
}
