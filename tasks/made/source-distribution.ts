/**
 * A source distribution from the index that the user's pip is set to. pip itself would run the distribution's own code to
 * learn what it needs, so the index is read directly: https://peps.python.org/pep-0691/
 */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { z } from "zod";
import { AlidadeError, messageOf } from "../../base/errors.ts";
import { readJson } from "../../base/schema/read-json.ts";

const IndexPage = z.looseObject({
  files: z.array(z.looseObject({ filename: z.string(), url: z.string(), hashes: z.looseObject({ sha256: z.string().optional() }) })),
});

const pageType = "application/vnd.pypi.simple.v1+json";
const publicIndex = "https://pypi.org/simple";
/** Pages of packages with thousands of files have some megabytes. */
const most = { page: 64 * 1024 * 1024, tarball: 100 * 1024 * 1024 };

/** The tarball, held against the index's digest where it gives one. Throws `pack_failed`. */
export async function sourceDistribution(name: string, version: string, signal: AbortSignal): Promise<Buffer> {
  const page = new URL(`${(await indexUrl(signal)).replace(/\/+$/, "")}/${normal(name)}/`);
  const { files } = readPage(await download(page, most.page, signal, { accept: pageType }), page);
  const wanted = `${normal(name)}-${version}.tar.gz`;
  const found = files.find(({ filename }) => filename.replace(/^.*(?=-\d)/, normal) === wanted);
  if (found === undefined)
    throw failed(page, `lists no ${name}-${version}.tar.gz: a version with a source distribution is needed, or the path of a tarball`);
  const content = await download(new URL(found.url, page), most.tarball, signal);
  const sha256 = createHash("sha256").update(content).digest("hex");
  if (found.hashes.sha256 !== undefined && found.hashes.sha256 !== sha256)
    throw failed(page, `says that ${found.filename} is sha256 ${found.hashes.sha256}, and what came is ${sha256}`);
  return content;
}

function readPage(content: Buffer, page: URL): z.infer<typeof IndexPage> {
  try {
    return IndexPage.parse(readJson(content.toString("utf8")));
  } catch {
    throw failed(page, `is no page of an index in JSON (${pageType}): set PIP_INDEX_URL to one that has them`);
  }
}

/** https://peps.python.org/pep-0503/#normalized-names */
function normal(name: string): string {
  return name.replace(/[-_.]+/g, "-").toLowerCase();
}

async function indexUrl(signal: AbortSignal): Promise<string> {
  if (process.env.PIP_INDEX_URL) return process.env.PIP_INDEX_URL;
  const asked = await promisify(execFile)("pip", ["config", "get", "global.index-url"], { signal, timeout: 60_000 }).catch(() => null);
  signal.throwIfAborted();
  return asked?.stdout.trim() || publicIndex;
}

async function download(address: URL, mostBytes: number, signal: AbortSignal, headers: Record<string, string> = {}): Promise<Buffer> {
  const url = withoutLogin(address);
  const login =
    address.username === ""
      ? {}
      : { authorization: `Basic ${btoa(`${decodeURIComponent(address.username)}:${decodeURIComponent(address.password)}`)}` };
  const response = await fetch(url, { headers: { ...headers, ...login }, signal }).catch((error: unknown) => {
    signal.throwIfAborted();
    throw failed(url, `could not be read (${messageOf(error instanceof Error ? (error.cause ?? error) : error)})`);
  });
  if (!response.ok || response.body === null) throw failed(url, `answered with ${response.status}`);
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body) {
    bytes += chunk.length;
    if (bytes > mostBytes) throw failed(url, `has more than ${mostBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function withoutLogin(address: URL): URL {
  const url = new URL(address);
  url.username = "";
  url.password = "";
  return url;
}

function failed(address: URL, what: string): AlidadeError {
  return new AlidadeError("pack_failed", `${withoutLogin(address).href} ${what}`);
}
