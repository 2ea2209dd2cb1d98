/**
 * Builds the first process of a container, which waits for ever and so keeps the container alive. It is a few instructions of
 * machine code, because no program of an image does all of this:
 *
 * - No process inside can end it. The kernel protects a first process from signals. This one also sets PR_SET_DUMPABLE to 0.
 *   So not even root can trace it or write to its memory: root has no CAP_SYS_PTRACE.
 * - It starts no process. A shell that waits by `sleep` ends with "Cannot fork" when the limit of pids is reached.
 * - It ignores SIGCHLD, so the kernel removes ended processes by itself.
 */

/** Makes these calls: prctl(PR_SET_DUMPABLE, 0), rt_sigaction(SIGCHLD, ignore, NULL, 8), then for ever ppoll(NULL, 0, NULL, NULL, 0). */
const instructions = new Map(
  Object.entries({
    x64: {
      machine: 62,
      code: [
        "b89d000000 bf04000000 31f6 31d2 4531d2 4531c0 0f05", // eax=157 edi=4, rest 0, syscall
        "b80d000000 bf11000000 488d351f000000 31d2 41ba08000000 0f05", // eax=13 edi=17 rsi=action edx=0 r10d=8, syscall
        "b80f010000 31ff 31f6 31d2 4531d2 4531c0 0f05", // eax=271, rest 0, syscall
        "ebeb", // the line above again
      ],
    },
    arm64: {
      machine: 183,
      code: [
        "800080d2 010080d2 020080d2 030080d2 040080d2 e81480d2 010000d4", // x0=4, rest 0, x8=167, svc
        "200280d2 a1010010 020080d2 030180d2 c81080d2 010000d4", // x0=17 x1=action x2=0 x3=8 x8=134, svc
        "000080d2 010080d2 020080d2 030080d2 040080d2 280980d2 010000d4", // x0 to x4=0, x8=73, svc
        "f9ffff17", // the line above again
      ],
    },
  }),
);

/** The kernel's `sigaction`, which follows the instructions: SIG_IGN, no flags, no restorer, no mask. */
const action = "0100000000000000".padEnd(64, "0");

const fileHeaderBytes = 64;
const headerBytes = fileHeaderBytes + 56;
const loadedAt = 0x400000;

/** Returns the program as an ELF file. `arch`: the CPU as Node names it. null: there is no program for this CPU. */
export function keeperProgram(arch: string): Buffer | null {
  const found = instructions.get(arch);
  if (found === undefined) return null;
  const { machine, code } = found;
  const text = Buffer.from([...code, action].join("").replaceAll(" ", ""), "hex");
  const header = Buffer.alloc(headerBytes);
  header.write("7f454c46020101", "hex"); // ELF, 64 bits, little endian, version 1
  header.writeUInt16LE(2, 16); // an executable
  header.writeUInt16LE(machine, 18);
  header.writeUInt32LE(1, 20);
  header.writeBigUInt64LE(BigInt(loadedAt + headerBytes), 24); // where it begins
  header.writeBigUInt64LE(BigInt(fileHeaderBytes), 32); // where the segments are listed
  header.writeUInt16LE(fileHeaderBytes, 52);
  header.writeUInt16LE(headerBytes - fileHeaderBytes, 54);
  header.writeUInt16LE(1, 56); // one segment:
  header.writeUInt32LE(1, 64); // loaded,
  header.writeUInt32LE(5, 68); // to be read and executed,
  header.writeBigUInt64LE(BigInt(loadedAt), 80); // the whole file
  header.writeBigUInt64LE(BigInt(loadedAt), 88);
  header.writeBigUInt64LE(BigInt(headerBytes + text.length), 96);
  header.writeBigUInt64LE(BigInt(headerBytes + text.length), 104);
  header.writeBigUInt64LE(0x1000n, 112);
  return Buffer.concat([header, text]);
}
