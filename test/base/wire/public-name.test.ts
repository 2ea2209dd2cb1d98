import assert from "node:assert/strict";
import { test } from "node:test";
import { isPublicName } from "../../../base/wire/public-name.ts";

test("a name of this machine or of its own network is never public, with dots behind it or not", () => {
  const own = [
    "localhost",
    "a.localhost",
    "a.b.localhost",
    "localhost.localdomain",
    "receiver",
    "printer.local",
    "ldap.corp.internal",
    "nas.home.arpa",
  ];
  for (const name of [...own, "ip6-loopback", "x.invalid", "x.test", "", "."])
    for (const dots of ["", ".", ".."]) assert.equal(isPublicName(name + dots), false, name + dots);
});

test("a name of the internet is public", () => {
  for (const name of ["example.com", "trainer.example.com.", "localhost.example.com", "notlocalhost.org", "a.test.org"])
    assert.equal(isPublicName(name), true, name);
});
