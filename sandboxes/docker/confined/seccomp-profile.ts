/**
 * Makes the profile of system calls that a container may use, in Docker's form. It is an allow-list: a call that it does not
 * name is refused with EPERM, also if the engine's own profile allows it.
 */

/** Grouped by purpose. The lists also hold names of other CPUs and of 32-bit programs; an engine skips names that it does not know. */
const allowed = {
  "open, read and write files": `
    open openat openat2 creat close close_range read readv pread64 preadv preadv2 write writev pwrite64 pwritev pwritev2
    lseek _llseek sendfile sendfile64 copy_file_range splice tee vmsplice readahead dup dup2 dup3 fcntl fcntl64 flock ioctl
    fsync fdatasync sync syncfs sync_file_range sync_file_range2 arm_sync_file_range fadvise64 fadvise64_64 arm_fadvise64_64
    fallocate truncate truncate64 ftruncate ftruncate64 memfd_create cachestat`,
  "names, folders and attributes": `
    access faccessat faccessat2 stat stat64 lstat lstat64 fstat fstat64 fstatat64 newfstatat statx statfs statfs64 fstatfs
    fstatfs64 getdents getdents64 getcwd chdir fchdir mkdir mkdirat rmdir rename renameat renameat2 link linkat symlink
    symlinkat readlink readlinkat unlink unlinkat mknod mknodat umask chmod fchmod fchmodat fchmodat2 chown chown32 fchown
    fchown32 fchownat lchown lchown32 utime utimes utimensat utimensat_time64 futimesat getxattr lgetxattr fgetxattr
    getxattrat setxattr lsetxattr fsetxattr setxattrat listxattr llistxattr flistxattr listxattrat removexattr lremovexattr
    fremovexattr removexattrat name_to_handle_at`,
  memory: `
    brk mmap mmap2 munmap mremap mprotect madvise mincore msync mlock mlock2 mlockall munlock munlockall
    mseal remap_file_pages membarrier pkey_alloc pkey_free pkey_mprotect map_shadow_stack`,
  "processes and threads": `
    fork vfork execve execveat exit exit_group wait4 waitid waitpid getpid getppid gettid getpgid getpgrp setpgid getsid
    setsid set_tid_address set_robust_list get_robust_list set_thread_area get_thread_area arch_prctl set_tls modify_ldt
    futex futex_time64 futex_waitv futex_wait futex_wake futex_requeue rseq restart_syscall prctl pidfd_open
    pidfd_send_signal process_mrelease ptrace process_vm_readv process_vm_writev uretprobe breakpoint cacheflush riscv_flush_icache
    riscv_hwprobe`,
  users: `
    getuid getuid32 geteuid geteuid32 getgid getgid32 getegid getegid32 getresuid getresuid32 getresgid getresgid32
    getgroups getgroups32 setgid setgid32 setregid setregid32 setresgid setresgid32 setfsgid setfsgid32 setgroups setgroups32
    capget capset seccomp landlock_create_ruleset landlock_add_rule landlock_restrict_self`,
  signals: `
    kill tkill tgkill pause sigaltstack sigprocmask sigreturn rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo
    rt_sigreturn rt_sigsuspend rt_sigtimedwait rt_sigtimedwait_time64 rt_tgsigqueueinfo signalfd signalfd4`,
  "time and waiting": `
    time times gettimeofday clock_gettime clock_gettime64 clock_getres clock_getres_time64 clock_nanosleep
    clock_nanosleep_time64 nanosleep adjtimex clock_adjtime clock_adjtime64 alarm getitimer setitimer timer_create
    timer_delete timer_getoverrun timer_gettime timer_gettime64 timer_settime timer_settime64 timerfd_create timerfd_gettime
    timerfd_gettime64 timerfd_settime timerfd_settime64 poll ppoll ppoll_time64 select _newselect pselect6 pselect6_time64
    epoll_create epoll_create1 epoll_ctl epoll_ctl_old epoll_wait epoll_wait_old epoll_pwait epoll_pwait2 eventfd eventfd2`,
  "what the machine gives": `
    uname sysinfo getrandom getcpu getrusage getrlimit ugetrlimit setrlimit prlimit64 getpriority setpriority ioprio_get
    ioprio_set sched_yield sched_getaffinity sched_setaffinity sched_getattr sched_setattr sched_getparam sched_setparam
    sched_getscheduler sched_setscheduler sched_get_priority_max sched_get_priority_min sched_rr_get_interval
    sched_rr_get_interval_time64`,
  "between processes": `
    pipe pipe2 bind connect listen accept accept4 shutdown getsockname getpeername getsockopt setsockopt send sendto sendmsg
    sendmmsg recv recvfrom recvmsg recvmmsg recvmmsg_time64 ipc shmget shmat shmctl shmdt semget semop semctl semtimedop
    semtimedop_time64 msgget msgctl msgsnd msgrcv mq_open mq_unlink mq_notify mq_getsetattr mq_timedsend
    mq_timedsend_time64 mq_timedreceive mq_timedreceive_time64`,
};

/** The kernel limits these by user or by machine, and all sandboxes of an engine have the same user. So one sandbox could take all. */
const shared = {
  "asynchronous file input and output": `io_setup io_destroy io_submit io_cancel io_getevents io_pgetevents io_pgetevents_time64`,
  "the same through rings, past this filter": `io_uring_setup io_uring_enter io_uring_register`,
};

/** Limited like `shared`, but programs that watch files need it. */
const watching = `inotify_init inotify_init1 inotify_add_watch inotify_rm_watch`;

const unix = 1;
/** The families of sockets: unix, IPv4, IPv6, netlink. Without AF_VSOCK, which reaches the host of a virtual machine, and AF_ALG. */
const families = [unix, 2, 10, 16];

/** Calls that change the user of a process: first those that name one user, then two, then three. */
const userCalls = [
  ["setuid", "setuid32", "setfsuid", "setfsuid32"],
  ["setreuid", "setreuid32"],
  ["setresuid", "setresuid32"],
];

/**
 * The users that a process may become: those below 32768, 65534, and itself (-1). All others are refused, because Alidade's own
 * users are among them (container.ts): such a user could end or trace Alidade's processes.
 */
const becomes: Pick<CallCondition, "value" | "valueTwo">[] = [
  { value: 0xffff8000, valueTwo: 0 },
  { value: 0xffffffff, valueTwo: 65_534 },
  { value: 0xffffffff, valueTwo: 0xffffffff },
];

/** The personalities Linux and 32-bit Linux, each also with an old version number, and the call that only reads the current one. */
const personalities = [0, 0x8, 0x20000, 0x20008, 0xffffffff];
/** Each bit asks for a new namespace, where a process would have capabilities. */
const namespaceFlags = 0x7e020000;

/** Error numbers of Linux, which are the same on every CPU that engines run on. */
const errno = { EPERM: 1, ENOSYS: 38 };

type CallCondition = { index: number; value: number; valueTwo?: number; op: "SCMP_CMP_EQ" | "SCMP_CMP_MASKED_EQ" };
type CallRule = { names: string[]; action: "SCMP_ACT_ALLOW" | "SCMP_ACT_ERRNO"; errnoRet?: number; args?: CallCondition[] };

/** Returns the profile as JSON. `watches`: processes may watch files. */
export function seccompProfile({ watches }: { watches: boolean }): string {
  return JSON.stringify({
    defaultAction: "SCMP_ACT_ERRNO",
    defaultErrnoRet: errno.EPERM,
    // Without x32, whose numbers no program needs.
    archMap: [
      { architecture: "SCMP_ARCH_X86_64", subArchitectures: ["SCMP_ARCH_X86"] },
      { architecture: "SCMP_ARCH_AARCH64", subArchitectures: ["SCMP_ARCH_ARM"] },
    ],
    syscalls: [
      allow([...Object.values(allowed), ...(watches ? [watching] : [])].flatMap(words)),
      // A kernel without these calls answers the same, so programs use another way.
      refuse([...Object.values(shared), ...(watches ? [] : [watching])].flatMap(words), errno.ENOSYS),
      ...personalities.map((value) => allow(["personality"], [{ index: 0, value, op: "SCMP_CMP_EQ" }])),
      allow(["clone"], [{ index: 0, value: namespaceFlags, valueTwo: 0, op: "SCMP_CMP_MASKED_EQ" }]),
      // Its flags lie in memory, where no filter sees them. Libraries then use clone.
      refuse(["clone3"], errno.ENOSYS),
      ...userCalls.flatMap((names, more) => usersNamed(more + 1).map((args) => allow(names, args))),
      ...families.map((value) => allow(["socket"], [{ index: 0, value, op: "SCMP_CMP_EQ" }])),
      allow(["socketpair"], [{ index: 0, value: unix, op: "SCMP_CMP_EQ" }]),
      // 32-bit programs open sockets of any family by it. Without this line, the rules for `socket` would also allow it.
      refuse(["socketcall"], errno.ENOSYS),
    ],
  } satisfies { syscalls: CallRule[]; [key: string]: unknown });
}

/** Returns every combination in which `count` arguments name users that a process may become. */
function usersNamed(count: number): CallCondition[][] {
  if (count === 0) return [[]];
  const index = count - 1;
  return usersNamed(index).flatMap((others) => becomes.map((one) => [...others, { index, ...one, op: "SCMP_CMP_MASKED_EQ" as const }]));
}

function allow(names: string[], args?: CallCondition[]): CallRule {
  return { names, action: "SCMP_ACT_ALLOW", ...(args && { args }) };
}

function refuse(names: string[], errnoRet: number, args?: CallCondition[]): CallRule {
  return { names, action: "SCMP_ACT_ERRNO", errnoRet, ...(args && { args }) };
}

function words(text: string): string[] {
  return text.trim().split(/\s+/);
}
