/** An address that a trainer chose leads to the public internet or is refused, however it is spelled and wherever its name leads. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { publicInternet } from "../../../sandboxes/network/public-internet.ts";
import { postSigned, refusedAddress } from "../../../service/webhooks/post-signed.ts";
import { CountingListener } from "../../fakes/machine/counting-listener.ts";

const spellings = [
  ...[
    "localhost",
    "localhost.",
    "LOCALHOST..",
    "localhost%2e",
    "loca\u00adlhost",
    "a.localhost",
    "localhost.localdomain",
    "receiver",
    "receiver.",
  ],
  ...["127.0.0.1", "127.0.0.1.", "127.1", "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "017700000001", "0", "0.0.0.0", "①②⑦.⓪.⓪.①"],
  ...["127。0。0。1", "10.1", "0xa9fea9fe", "169.254.169.254.", "3232235777", "255.255.255.255", "printer.local", "db.corp.internal."],
  ...[
    "[::]",
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[2002:7f00:1::]",
  ],
  ...["[fe80::1]", "[fe80::1%25eth0]", "[fd00::1]", "[fc00::]", "[ff02::1]", "[2001:db8::1]", "u:p@trainer.example", "u@trainer.example"],
];

test("an address of this machine or of its own network is refused at submit, however it is spelled", () => {
  for (const host of spellings)
    for (const url of [`http://${host}/x`, `https://${host}:8443/x?y#z`]) assert.notEqual(refusedAddress(url, false), null, url);
  for (const url of ["ftp://trainer.example/", "file:///etc/passwd", "//trainer.example", "trainer.example", "", "http://"])
    for (const mayBePrivate of [true, false]) assert.notEqual(refusedAddress(url, mayBePrivate), null, url);
  for (const host of ["trainer.example", "trainer.example.", "1.1.1.1", "[2606:4700:4700::1111]", "localhost.example"])
    assert.equal(refusedAddress(`https://${host}/x`, false), null, host);
  assert.equal(refusedAddress("http://localhost./x", true), null, "the operator may allow it");
});

test("a name that leads to an address that is not public when it is told is not connected to", async () => {
  await using listener = await CountingListener.start();
  const url = `http://trainer.example:${listener.host.split(":")[1]}/x`;
  const own = ["127.0.0.1", "::1", "::ffff:127.0.0.1", "0.0.0.0", "::", "10.0.0.1", "169.254.169.254", "64:ff9b::7f00:1"];
  for (const addresses of [...own.map((one) => [one]), ["1.1.1.1", "127.0.0.1"]]) {
    const network = { ...publicInternet, resolve: async () => addresses };
    const told = postSigned({ url, secret: null, mayBePrivate: false }, "{}", AbortSignal.timeout(20_000), network);
    await assert.rejects(told, { code: "not_found", message: /not an address of the public internet/ }, addresses.join());
  }
  assert.equal(listener.connections, 0);
  const open = { resolve: async () => ["127.0.0.1"], mayConnect: () => true };
  await postSigned({ url, secret: null, mayBePrivate: false }, "{}", AbortSignal.timeout(20_000), open);
  assert.equal(listener.connections, 1, "the connection goes to the address that was looked at");
});
