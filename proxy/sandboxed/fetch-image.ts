/**
 * An image that a sandboxed client names by its address, fetched here instead of at the engine: from origins that the
 * operator lists, over addresses that are public, in bounded time and size. A name is resolved once for each hop and the
 * connection goes to the very address that was looked at, so that a second answer of its name server changes nothing.
 */
import { lookup } from "node:dns/promises";
import { type IncomingMessage, request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import { isIPv6 } from "node:net";
import { AlidadeError, messageOf } from "../../base/errors.ts";
import { toMatch } from "../../base/schema/complaints/to-match.ts";
import { checkedAddresses, type Network } from "../../base/wire/network.ts";
import { isPublicAddress } from "../../base/wire/public-address.ts";
import { imageOutside } from "./sandboxed-request.ts";

/** What an image may weigh at the vendors' own APIs, or more. */
const maxBytes = 20 * 1024 * 1024;
/** For all hops together: a call waits for it. */
const withinMs = 30_000;
const maxRedirects = 3;

const publicNetwork: Network = {
  resolve: async (host) => (await lookup(host, { all: true })).map(({ address }) => address),
  mayConnect: isPublicAddress,
};

/** The image as a `data:` URL. Throws `request_invalid` with the reason, and the signal's own. `origins`: globs. */
export async function fetchImage(
  named: string,
  origins: readonly string[],
  signal: AbortSignal,
  network: Network = publicNetwork,
): Promise<string> {
  const within = AbortSignal.any([signal, AbortSignal.timeout(withinMs)]);
  try {
    let url = named;
    for (let hop = 0; hop <= maxRedirects; hop++) {
      const response = await open(allowed(url, origins), network, within);
      const next = redirectOf(response, url);
      if (next === null) return await dataUrlOf(response, within);
      response.destroy();
      url = next;
    }
    throw new Error(`it leads to more than ${maxRedirects} other addresses`);
  } catch (error) {
    signal.throwIfAborted();
    const why = within.aborted ? `it did not arrive within ${withinMs / 1000} s` : messageOf(error);
    throw error instanceof AlidadeError ? error : imageOutside(named, `it is to be fetched by the proxy, and ${why}`);
  }
}

function allowed(text: string, origins: readonly string[]): URL {
  const url = URL.parse(text);
  if (!url || (url.protocol !== "http:" && url.protocol !== "https:")) throw new Error(`"${text.slice(0, 200)}" is no http(s) address`);
  if (url.username || url.password) throw new Error("an address with a password is not fetched");
  if (!origins.some((origin) => toMatch(origin)(url.origin))) throw new Error(`the origin ${url.origin} is not in fetch_images`);
  return url;
}

async function open(url: URL, network: Network, signal: AbortSignal): Promise<IncomingMessage> {
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  const [address] = (await checkedAddresses(host, network)) ?? [];
  if (address === undefined) throw new Error(`${url.host} is not an address of the public internet`);
  const family = isIPv6(address) ? 6 : 4;
  const request = url.protocol === "https:" ? requestHttps : requestHttp;
  return new Promise((resolve, reject) => {
    request(url, {
      agent: false,
      signal,
      headers: { accept: "image/*" },
      lookup: (_host, { all }, done) => (all ? done(null, [{ address, family }]) : done(null, address, family)),
    })
      .once("response", resolve)
      .once("error", reject)
      .end();
  });
}

/** Where it leads to instead; null where this is the answer. */
function redirectOf({ statusCode = 0, headers }: IncomingMessage, from: string): string | null {
  if (![301, 302, 303, 307, 308].includes(statusCode) || headers.location === undefined) return null;
  return URL.parse(headers.location, from)?.href ?? headers.location;
}

async function dataUrlOf(response: IncomingMessage, signal: AbortSignal): Promise<string> {
  try {
    if (response.statusCode !== 200) throw new Error(`its server answers ${response.statusCode}`);
    const type = response.headers["content-type"]?.split(";")[0]?.trim().toLowerCase() ?? "";
    if (!/^image\/[\w.+-]+$/.test(type)) throw new Error(`what is there is no image but "${type.slice(0, 100)}"`);
    if (response.headers["content-encoding"] !== undefined) throw new Error("it comes in an encoding that was not asked for");
    const chunks: Buffer[] = [];
    let size = 0;
    for await (const chunk of response as AsyncIterable<Buffer>) {
      signal.throwIfAborted();
      size += chunk.length;
      if (size > maxBytes) throw new Error(`it has more than ${maxBytes} bytes`);
      chunks.push(chunk);
    }
    return `data:${type};base64,${Buffer.concat(chunks).toString("base64")}`;
  } finally {
    response.destroy();
  }
}
