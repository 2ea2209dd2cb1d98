/** What of the host's kernel a container does not see. Such a file is empty inside, and such a folder an empty read-only one. */

/** Engines mask these by default. Our list replaces the default list, so it must contain them too. */
const byEngines = [
  ...["acpi", "asound", "interrupts", "kcore", "keys", "latency_stats", "sched_debug", "scsi", "timer_list", "timer_stats"],
].map((name) => `/proc/${name}`);

/** The machine's own: how it was started, how it is built, its memory's layout, its devices, and what its other users do. */
const ofTheMachine = [
  ...["cmdline", "config.gz", "modules", "kallsyms", "iomem", "ioports", "dma", "mtrr", "devices", "misc", "consoles", "bootconfig"],
  ...["buddyinfo", "pagetypeinfo", "zoneinfo", "slabinfo", "vmallocinfo", "allocinfo", "kpagecount", "kpageflags", "kpagecgroup", "kmsg"],
  ...["diskstats", "partitions", "mdstat", "swaps", "locks", "key-users", "softirqs", "schedstat", "pressure", "sysrq-trigger"],
  ...["driver", "dynamic_debug"],
].map((name) => `/proc/${name}`);

/** By these root inside would choose whom the out-of-memory killer takes first: the process that keeps the container. */
const ofTheKeeper = ["/proc/1", "/proc/1/task/1"].flatMap((folder) => [`${folder}/oom_adj`, `${folder}/oom_score_adj`]);

const ofItsDevices = [
  "/sys/firmware",
  "/sys/hypervisor",
  "/sys/module",
  "/sys/power",
  "/sys/block",
  "/sys/bus",
  "/sys/dev",
  "/sys/devices/pci0000:00",
  "/sys/devices/platform",
  "/sys/devices/virtual/block",
  "/sys/devices/virtual/dmi",
  "/sys/devices/virtual/powercap",
  ...["boot_params", "btf", "debug", "iommu_groups", "irq", "notes", "security", "slab", "tracing", "vmcoreinfo"].map(
    (name) => `/sys/kernel/${name}`,
  ),
];

export const maskedPaths: readonly string[] = [...byEngines, ...ofTheMachine, ...ofTheKeeper, ...ofItsDevices];

/** Seen and not written, as engines have it by themselves: settings of the kernel. */
export const readOnlyPaths: readonly string[] = ["bus", "fs", "irq", "sys"].map((name) => `/proc/${name}`);
