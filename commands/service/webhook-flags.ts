/** Flags of the webhook that a service tells of whole groups. */
import { isIP } from "node:net";
import type { Command } from "commander";
import { keepSecret } from "../../engines/index.ts";
import { AlidadeError } from "../../errors.ts";
import type { Webhook } from "../../service/index.ts";
import { isPublicAddress } from "../../wire/public-address.ts";
import { terminal } from "../terminal.ts";

export type WebhookFlags = { webhook?: string; webhookSecretEnv?: string; allowPrivateWebhook?: boolean };

export function addWebhookFlags(command: Command): Command {
  return command
    .option("--webhook <url>", "is told by a signed POST when a set has more whole groups: a hint to read results")
    .option("--webhook-secret-env <name>", "variable that holds the secret of its signature")
    .option("--allow-private-webhook", "its address may be loopback, private or link-local");
}

/** null: none is wanted. Throws `config_invalid` naming the flag. */
export function webhookOf({ webhook, webhookSecretEnv, allowPrivateWebhook = false }: WebhookFlags): Webhook | null {
  if (webhook === undefined) return null;
  const url = URL.parse(webhook);
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password)
    throw refuse("webhook", "--webhook is no http(s) address without a password");
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  if (!allowPrivateWebhook && (host === "localhost" || (isIP(host) !== 0 && !isPublicAddress(host))))
    throw refuse("webhook", `--webhook is at ${host}, which is no public address: --allow-private-webhook allows it`);
  const secret = webhookSecretEnv === undefined ? undefined : terminal().env[webhookSecretEnv];
  if (!secret)
    throw refuse("webhook_secret_env", `--webhook-secret-env is ${webhookSecretEnv ?? "not given"}: name a variable that holds a secret`);
  keepSecret(secret);
  return { url: url.href, secret, mayBePrivate: allowPrivateWebhook };
}

function refuse(param: string, message: string): AlidadeError {
  return new AlidadeError("config_invalid", message, { param });
}
