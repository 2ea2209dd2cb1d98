import assert from "node:assert/strict";
import { test } from "node:test";
import { newKey } from "../../../base/schema/ids.ts";
import { hideSecrets, keepSecret } from "../../../base/wire/secrets.ts";

const key = 'sk/a+b="c"&1234567890-ABCDEFGHIJ';
keepSecret(key);

const base64 = (text: string) => Buffer.from(text).toString("base64");
const forms: Record<string, string> = {
  "as it is": key,
  "for a URL": encodeURIComponent(key),
  "for a URL, in small letters": encodeURIComponent(key).replace(/%../g, (code) => code.toLowerCase()),
  "in JSON": JSON.stringify(key),
  "in JSON in JSON": JSON.stringify(JSON.stringify({ error: key })),
  "in JSON with escaped slashes": JSON.stringify(key).replaceAll("/", "\\/"),
  "in JSON with escaped signs": key.replace(/[^0-9a-z]/gi, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`),
  "in base64": base64(key),
  "as Basic, behind users of any length": ["", "a", "ab", "abc"].map((user) => base64(`${user}:${key}`)).join(" "),
  "in base64 for URLs": Buffer.from(`user:${key}`).toString("base64url"),
  "cut off behind": key.slice(0, 20),
  "cut off before": key.slice(-20),
  twice: key + key,
};

for (const [form, text] of Object.entries(forms))
  test(`a key ${form} is hidden, and what stands around it is not`, () => {
    const hidden = hideSecrets(`401 for ${text}, ask again`);
    assert.match(hidden, /^401 for .*\[redacted\].*, ask again$/);
    assert.ok(!hidden.includes(text) && !hidden.includes(text.slice(10, 22)), hidden);
  });

test("keys of sessions and passwords in URLs are hidden without being told", () => {
  const session = newKey();
  assert.equal(hideSecrets(`no session ${session}.`), "no session [redacted].");
  assert.equal(hideSecrets("cannot reach http://me:pass@10.0.0.1:8000/v1"), "cannot reach http://[redacted]@10.0.0.1:8000/v1");
  assert.equal(hideSecrets("mail me@example.com about http://example.com/@me"), "mail me@example.com about http://example.com/@me");
});

test("what a vendor has masked stays, and so do words that a placeholder for a key stands in", () => {
  keepSecret("sk-proj-ABCDEFGHIJKLMNOPQRSTUVWXYZ");
  assert.equal(hideSecrets("Incorrect key: sk-proj-***WXYZ."), "Incorrect key: sk-proj-***WXYZ.");
  keepSecret("EMPTY");
  keepSecret("");
  assert.equal(hideSecrets("EMPTY is no key"), "EMPTY is no key");
});

test("a text of 64 KiB full of beginnings of a key is read in one pass", { timeout: 300_000 }, () => {
  const text = key.slice(0, 11).repeat(6_000);
  assert.equal(hideSecrets(text), text);
});
