/**
 * The program that keeps a container: its first process, which waits for ever. It is a few instructions of machine code, for
 * three things are wanted that no program of an image gives:
 *
 * - No process inside can end it. The kernel protects a first process from signals. This one also says that it cannot be dumped
 *   (`PR_SET_DUMPABLE`), so not even root traces it or writes to its memory: root has no CAP_SYS_PTRACE.
 * - It starts no process. A shell that does ends with "Cannot fork" where the limit of pids is reached.
 * - It ignores SIGCHLD, so the kernel reaps what ended processes left behind.
 */

/** Calls of Linux below: prctl(PR_SET_DUMPABLE, 0), rt_sigaction(SIGCHLD, ignore, NULL, 8), and for ever ppoll(NULL, 0, NULL, NULL, 0). */
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

/** The kernel's `sigaction` behind the instructions: SIG_IGN, no flags, no restorer, no mask. */
const action = "0100000000000000".padEnd(64, "0");

const fileHeaderBytes = 64;
const headerBytes = fileHeaderBytes + 56;
const loadedAt = 0x400000;

/** As an ELF file. `arch`: a CPU in Node's words; null: there is none for it. */
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
