/** What Podman is asked for in the place of what Docker is. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type Docker from "dockerode";
import { Limits } from "../../../../base/schema/task.ts";
import { containerOptions } from "../../../../sandboxes/docker/container.ts";
import { podmanRequest } from "../../../../sandboxes/docker/podman-request.ts";

const limits = Limits.parse({ memory_mb: 256 });
const files = {
  mounts: [{ Type: "bind", Target: "/opt/pack", Source: "/pack", ReadOnly: true }] as Docker.MountSettings[],
  imageVolumes: ["/data"],
  seccomp: "/profiles/seccomp.json",
};
const asked = containerOptions("alidade-x", { run_id: "r", owner: "o", user: "agent", env: {}, limits } as never, "image", files, "h");

test("each memory file system is a volume that is made before, with its size in pages, its inodes and the labels of its sandbox", () => {
  const { volumes, request } = podmanRequest(asked, { processes: null });
  const { Mounts, Tmpfs } = asked.HostConfig ?? {};
  const places = [...(Mounts ?? []).flatMap(({ Type, Target }) => (Type === "volume" ? [Target] : [])), ...Object.keys(Tmpfs ?? {})];
  const binds = request.HostConfig?.Binds ?? [];
  assert.deepEqual(
    binds.map((bind) => bind.split(":")).map(([name, target, options]) => [name, target, options]),
    // As Docker has its Tmpfs, and has no volume.
    places.map((target, index) => [`alidade-x-${index}`, target, Object.hasOwn(Tmpfs ?? {}, target) ? "noexec,nocopy" : "nocopy"]),
  );
  assert.deepEqual(
    volumes.map(({ Name }) => Name),
    places.map((_, index) => `alidade-x-${index}`),
  );
  const [home, , data] = volumes.map(({ DriverOpts }) => DriverOpts?.o);
  assert.equal(home, `nr_blocks=${32 * 256},nr_inodes=${32 * 256},mode=0755,uid=1000,gid=1000`);
  assert.equal(data, `nr_blocks=${8 * 256},nr_inodes=${8 * 256},mode=0755,uid=1000,gid=1000`);
  for (const { Labels, DriverOpts } of volumes) {
    assert.deepEqual(
      [Labels?.["alidade.sandbox"], DriverOpts?.type, /(^|,)size=/.test(DriverOpts?.o ?? "")],
      ["alidade-x", "tmpfs", false],
    );
    // Without an owner Podman gives it the image's mode and owner.
    assert.match(DriverOpts?.o ?? "", /,uid=\d+,gid=\d+/);
  }
});

test("what Podman ignores or splits is asked for in its own words", () => {
  const { request } = podmanRequest(asked, { processes: 32_768 });
  const { SecurityOpt = [], Ulimits = [], Mounts = [], ...others } = request.HostConfig ?? {};
  assert.deepEqual(Mounts, files.mounts);
  assert.deepEqual([others.Tmpfs, others.MaskedPaths, others.ReadonlyPaths], [undefined, undefined, undefined]);
  const options: string[] = SecurityOpt;
  const masked =
    options
      .find((option) => option.startsWith("mask="))
      ?.slice(5)
      .split(":") ?? [];
  for (const path of ["/proc/cmdline", "/sys/devices", "/run/secrets"]) assert.ok(masked.includes(path), path);
  assert.deepEqual(
    masked.filter((path) => !path.startsWith("/")),
    [],
    "no path was cut at its colon",
  );
  assert.ok(SecurityOpt.includes("seccomp=/profiles/seccomp.json"));
  assert.deepEqual(Ulimits.at(-1), { Name: "nproc", Soft: 32_768, Hard: 32_768 });
});

test("a volume that is there is mounted and not made", () => {
  const mount = { Type: "volume", Target: "/in", Source: "packs", ReadOnly: true, VolumeOptions: { NoCopy: true } } as Docker.MountSettings;
  const { volumes, request } = podmanRequest({ name: "a", HostConfig: { Mounts: [mount] } }, { processes: null });
  assert.deepEqual([volumes, request.HostConfig?.Binds], [[], ["packs:/in:ro,nocopy"]]);
});
