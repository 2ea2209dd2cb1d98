/** A request to an address outside: with a secret, `alidade-signature` is an HMAC over `<alidade-timestamp>.<body>`. */
import { createHmac } from "node:crypto";
import { lookup } from "node:dns/promises";
import { request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import { isIP, isIPv6 } from "node:net";
import { AlidadeError, messageOf } from "../../base/errors.ts";
import { untilAborted } from "../../base/host/until-aborted.ts";
import { checkedAddresses, type Network } from "../../base/wire/network.ts";
import { isPublicName } from "../../base/wire/public-name.ts";
import { publicInternet } from "../../sandboxes/network/index.ts";

export type Webhook = {
  url: string;
  /** null: it is not signed. */
  secret: string | null;
  /** Loopback, private and link-local addresses too. */
  mayBePrivate: boolean;
};

/** A receiver that works on what it is told does so after its answer. */
const answerMs = 10_000;

/** Names of this machine's hosts file and of containers beside it are such addresses. */
const anyNetwork: Network = {
  resolve: async (host) => (await lookup(host, { all: true })).map(({ address }) => address),
  mayConnect: () => true,
};

/** What is wrong with an address, to stand behind its name; null: nothing, as far as it is seen without a look-up. */
export function refusedAddress(text: string, mayBePrivate: boolean): string | null {
  const url = URL.parse(text);
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password) return "is no http(s) address without a password";
  const host = hostOf(url);
  const isPublic = isIP(host) === 0 ? isPublicName(host) : publicInternet.mayConnect(host);
  if (mayBePrivate || isPublic) return null;
  return `is at ${host}, which is no public address: --allow-private-webhook allows it`;
}

/** IPv6 without its brackets. */
function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[(.*)\]$/, "$1");
}

/**
 * Resolves with a 2xx. Follows no redirect. Throws `not_found` saying why it was not told, and the signal's reason. `open`: the
 * network of an address that must be public.
 */
export async function postSigned(
  { url, secret, mayBePrivate }: Webhook,
  body: string,
  signal: AbortSignal,
  open: Network = publicInternet,
): Promise<void> {
  const within = AbortSignal.any([signal, AbortSignal.timeout(answerMs)]);
  try {
    const status = await post(new URL(url), body, headersOf(body, secret), mayBePrivate ? anyNetwork : open, within);
    if (status < 200 || status > 299) throw new Error(`it answers ${status}`);
  } catch (error) {
    signal.throwIfAborted();
    const why = within.aborted ? `it does not answer within ${answerMs / 1000} s` : messageOf(error);
    const { origin, pathname } = new URL(url);
    throw new AlidadeError("not_found", `the webhook ${origin}${pathname} was not told: ${why}`, { cause: error });
  }
}

function headersOf(body: string, secret: string | null): Record<string, string> {
  const type = { "content-type": "application/json" };
  if (secret === null) return type;
  const timestamp = String(Math.floor(Date.now() / 1000));
  const digest = createHmac("sha256", secret).update(`${timestamp}.${body}`).digest("hex");
  return { ...type, "alidade-timestamp": timestamp, "alidade-signature": `sha256=${digest}` };
}

/** The connection goes to the very address that was looked at. */
async function post(url: URL, body: string, headers: Record<string, string>, network: Network, signal: AbortSignal): Promise<number> {
  const host = hostOf(url);
  const named: Network = isIP(host) === 0 ? network : { ...network, resolve: async () => [host] };
  const addresses = await untilAborted(checkedAddresses(host, named), signal);
  if (addresses === null) throw new Error("it is not an address of the public internet (--allow-private-webhook allows others)");
  const [address] = addresses;
  if (address === undefined) throw new Error(`${host} has no address`);
  const family = isIPv6(address) ? 6 : 4;
  const request = url.protocol === "https:" ? requestHttps : requestHttp;
  return new Promise((resolve, reject) => {
    request(url, {
      method: "POST",
      agent: false,
      signal,
      headers: { ...headers, "content-length": Buffer.byteLength(body) },
      lookup: (_host, { all }, done) => (all ? done(null, [{ address, family }]) : done(null, address, family)),
    })
      .once("response", (response) => {
        response.destroy();
        resolve(response.statusCode ?? 0);
      })
      .once("error", reject)
      .end(body);
  });
}
