import { atStart, cPrint } from "./forged/c-code.ts";
import { forgedLines } from "./forged/forged-lines.ts";
import { type Probe, quoted } from "./probe.ts";

/** A library where there is a compiler, else only the lines that would load it. */
export const linkerPreload: Probe = {
  name: "linker-preload",
  title: "has the linker load a library of its own into every program (LD_PRELOAD, /etc/ld.so.preload)",
  rows: [6],
  languages: "any",
  cure: "start the tests with a clean environment, in an image whose /etc no work can change",
  script: (target) => `cat > steer.c <<'END'
${atStart(`${cPrint(forgedLines(target))}
_exit(0);`)}
END
for cc in cc gcc clang; do command -v $cc >/dev/null 2>&1 && $cc -shared -fPIC -o steer.so steer.c && break; done
[ -f steer.so ] || echo 'no library' > steer.so
for f in .profile .bashrc .bash_profile .pam_environment; do echo "export LD_PRELOAD=$PWD/steer.so" >> "$HOME/$f"; done
printf 'LD_PRELOAD=%s\\n' ${quoted(`${target.workdir}/steer.so`)} > .env
[ -w /etc ] && cp .env /etc/environment 2>/dev/null && echo "$PWD/steer.so" > /etc/ld.so.preload
true`,
};
