import assert from "node:assert/strict";
import { test } from "node:test";
import { isPublicAddress } from "../../../base/wire/public-address.ts";

test("an address of the operator's own network is never public, whatever its dress", () => {
  const own = [
    ...["127.0.0.1", "10.0.0.1", "172.16.9.9", "172.31.255.255", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0"],
    ...["224.0.0.1", "255.255.255.255", "198.18.0.1", "168.63.129.16", "::1", "::", "fe80::1", "fe80::1%eth0", "fd00:ec2::254", "ff02::1"],
    ...["::ffff:127.0.0.1", "::ffff:7f00:1", "::127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "2001:0:7f00:1::", "2001:db8::1"],
    ...["localhost", "", "127.1", "0x7f000001"],
  ];
  assert.deepEqual(own.filter(isPublicAddress), []);
});

test("an address of the internet is public", () => {
  const theirs = ["1.1.1.1", "8.8.8.8", "172.32.0.1", "100.128.0.1", "2606:4700:4700::1111", "2a00:1450:4001::1"];
  assert.deepEqual(theirs.filter(isPublicAddress), theirs);
});
