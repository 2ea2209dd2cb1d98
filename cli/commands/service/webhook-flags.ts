/** Flags of the webhooks that a service tells of whole groups. */
import type { Command } from "commander";
import { AlidadeError } from "../../../base/errors.ts";
import { keepSecret } from "../../../base/wire/secrets.ts";
import { type HintAddresses, refusedAddress } from "../../../service/index.ts";
import { terminal } from "../terminal.ts";

export type WebhookFlags = { webhook?: string; webhookSecretEnv?: string; allowSetWebhooks?: boolean; allowPrivateWebhook?: boolean };

export function addWebhookFlags(command: Command): Command {
  return command
    .option("--webhook <url>", "is told by a signed POST when a set has more whole groups: a hint to read results")
    .option("--webhook-secret-env <name>", "variable that holds the secret of its signature")
    .option("--allow-set-webhooks", "sets may name a webhook of their own (`webhook`): trainers choose where this machine sends requests")
    .option("--allow-private-webhook", "its address, and those of sets and of --polar, may be loopback, private or link-local");
}

/** null: none is wanted. Throws `config_invalid` naming the flag. */
export function webhooksOf({
  webhook,
  webhookSecretEnv,
  allowSetWebhooks = false,
  allowPrivateWebhook = false,
}: WebhookFlags): HintAddresses | null {
  if (webhook === undefined && !allowSetWebhooks) return null;
  const refusal = webhook === undefined ? null : refusedAddress(webhook, allowPrivateWebhook);
  if (refusal !== null) throw refuse("webhook", `--webhook ${refusal}`);
  const secret = webhookSecretEnv === undefined ? undefined : terminal().env[webhookSecretEnv];
  if (!secret)
    throw refuse("webhook_secret_env", `--webhook-secret-env is ${webhookSecretEnv ?? "not given"}: name a variable that holds a secret`);
  keepSecret(secret);
  const how = { secret, mayBePrivate: allowPrivateWebhook };
  return { service: webhook === undefined ? null : { url: new URL(webhook).href, ...how }, sets: allowSetWebhooks ? how : null };
}

function refuse(param: string, message: string): AlidadeError {
  return new AlidadeError("config_invalid", message, { param });
}
