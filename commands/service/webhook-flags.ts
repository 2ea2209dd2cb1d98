/** Flags of the webhook that a service tells of whole groups. */
import type { Command } from "commander";
import { keepSecret } from "../../engines/index.ts";
import { AlidadeError } from "../../errors.ts";
import { refusedAddress, type Webhook } from "../../service/index.ts";
import { terminal } from "../terminal.ts";

export type WebhookFlags = { webhook?: string; webhookSecretEnv?: string; allowPrivateWebhook?: boolean };

export function addWebhookFlags(command: Command): Command {
  return command
    .option("--webhook <url>", "is told by a signed POST when a set has more whole groups: a hint to read results")
    .option("--webhook-secret-env <name>", "variable that holds the secret of its signature")
    .option("--allow-private-webhook", "its address, and those of --polar, may be loopback, private or link-local");
}

/** null: none is wanted. Throws `config_invalid` naming the flag. */
export function webhookOf({ webhook, webhookSecretEnv, allowPrivateWebhook = false }: WebhookFlags): Webhook | null {
  if (webhook === undefined) return null;
  const refusal = refusedAddress(webhook, allowPrivateWebhook);
  if (refusal !== null) throw refuse("webhook", `--webhook ${refusal}`);
  const secret = webhookSecretEnv === undefined ? undefined : terminal().env[webhookSecretEnv];
  if (!secret)
    throw refuse("webhook_secret_env", `--webhook-secret-env is ${webhookSecretEnv ?? "not given"}: name a variable that holds a secret`);
  keepSecret(secret);
  return { url: new URL(webhook).href, secret, mayBePrivate: allowPrivateWebhook };
}

function refuse(param: string, message: string): AlidadeError {
  return new AlidadeError("config_invalid", message, { param });
}
