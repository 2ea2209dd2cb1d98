/** Builds an image from a context, with BuildKit where the engine has it, else with the classic builder. */
import type Docker from "dockerode";
import { AlidadeError, messageOf } from "../../../../base/errors.ts";
import type { Build } from "../../../../base/schema/environment/build.ts";
import type { PrepareOptions } from "../../../sandbox.ts";
import { type EngineTraits, engineTraits } from "../../engine-traits.ts";
import { engineEvents, textOf } from "../engine-events.ts";
import { type BuildContext, packContext } from "./build-context.ts";
import { beyondClassic, heredocsOf, syntaxOf } from "./dockerfile.ts";
import { OutputTail } from "./output-tail.ts";

type Builder = EngineTraits["builder"];

export type BuildOrder = {
  /** The name that it gets. */
  image: string;
  context: BuildContext;
  args: Build["args"];
  platform: string | null;
};

/** Large toolchains compile in half of it. A command that waits for ever must not hold a run for ever. */
const longestBuildMs = 3600_000;

/** Throws `image_build_failed` with the end of the output. */
export async function buildImage(docker: Docker, order: BuildOrder, { signal, progress = () => {} }: PrepareOptions): Promise<void> {
  const { image, context } = order;
  const { builder } = await engineTraits(docker);
  if (builder === "classic") assertClassic(context);
  const started = performance.now();
  progress(`Building ${image} from ${context.folder} (${context.entries.length} files and folders)`);
  const tail = new OutputTail();
  const limit = AbortSignal.timeout(longestBuildMs);
  try {
    await runBuild(docker, order, builder, tail, { signal: AbortSignal.any([signal, limit]), progress });
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof AlidadeError) throw error;
    const why = limit.aborted ? `it took more than ${longestBuildMs / 60_000} minutes` : messageOf(error);
    throw failed(context, why, [...hints(context, builder), endOf(tail)]);
  }
  progress(`Built ${image} in ${((performance.now() - started) / 1000).toFixed(0)} s`);
}

async function runBuild(
  docker: Docker,
  { image, context, args, platform }: BuildOrder,
  builder: Builder,
  tail: OutputTail,
  { signal, progress }: Required<Omit<PrepareOptions, "user" | "space">>,
): Promise<void> {
  const archive = packContext(context);
  // What goes wrong with the context ends the request, and is the better reason.
  const broken = new AbortController();
  archive.on("error", (error: Error) => broken.abort(error));
  const options = {
    t: image,
    dockerfile: context.dockerfile.path,
    buildargs: args,
    rm: true,
    forcerm: true,
    ...(platform !== null && { platform }),
    // As a number: for the text dockerode opens a session beside the build, which a build that is aborted leaves open.
    ...(builder === "buildkit" && { version: 2 as unknown as "2" }),
    abortSignal: AbortSignal.any([signal, broken.signal]),
  };
  try {
    const output = await docker.buildImage(archive as unknown as NodeJS.ReadableStream, options);
    for await (const event of engineEvents(output as AsyncIterable<Buffer>)) {
      const text = textOf(event);
      tail.add(text);
      for (const line of text.split("\n")) if (isStep(line)) progress(`  ${line.trim().slice(0, mostShown)}`);
      if (event.error !== undefined) throw new Error(event.error);
    }
  } catch (error) {
    throw broken.signal.aborted ? broken.signal.reason : error;
  } finally {
    archive.destroy();
  }
}

/** A step's command may have thousands of characters. */
const mostShown = 160;

/** `Step 2/4 : RUN …` or `[2/4] RUN …`, in builds of several stages `[stage 2/4] …`. */
function isStep(line: string): boolean {
  return /^(?:Step \d+\/\d+ :|\[(?:[\w.-]+ +)?\d+\/\d+\])/.test(line);
}

function assertClassic(context: BuildContext): void {
  const [first] = beyondClassic(context.dockerfile.text);
  if (first === undefined) return;
  const where = `line ${first.line} of ${context.dockerfile.path} has ${first.what}`;
  throw failed(
    context,
    `${where}, which needs BuildKit, and this engine has the classic builder alone: write it without, or use Docker 18.09 or newer`,
  );
}

/** What an older BuildKit, or one without a network, says in words of its own. */
function hints({ dockerfile }: BuildContext, builder: Builder): string[] {
  const [first] = heredocsOf(dockerfile.text);
  const syntax = syntaxOf(dockerfile.text);
  return [
    ...(first !== undefined && builder === "buildkit" && syntax === null
      ? [`Line ${first.line} has ${first.what}: an engine of before Docker 23 cannot read it; write the commands out.`]
      : []),
    ...(syntax !== null && builder === "buildkit"
      ? [`The line "# syntax=${syntax}" makes BuildKit pull that image first: without a network, remove the line or pull the image before.`]
      : []),
  ];
}

function endOf(tail: OutputTail): string {
  const text = tail.toString();
  return text === "" ? "It printed nothing." : `The end of its output:\n${text}`;
}

function failed({ folder, dockerfile }: BuildContext, why: string, more: string[] = []): AlidadeError {
  const message = `The image of environment.build could not be built from ${dockerfile.path} in ${folder}: ${why}.`;
  return new AlidadeError("image_build_failed", [message, ...more].join(" "), { param: "environment.build" });
}
