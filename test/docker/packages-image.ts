/** An image with packages to install. */
import { testImage } from "./test-image.ts";

/** A package `teller` for each manager, whose program succeeds where the answer is right. That of Debian has a user of its own. */
const packages = `set -e
mkdir -p /repo /t/deb/DEBIAN /t/deb/usr/bin /t/npm/package
cd /t
printf 'Package: teller\\nVersion: 1.0\\nArchitecture: all\\nMaintainer: test <test@example.org>\\nDescription: tells\\n' > deb/DEBIAN/control
printf '#!/bin/sh\\nset -e\\nuseradd --system teller\\ninstall -d -o teller -g teller -m 2750 /var/lib/teller\\n' > deb/DEBIAN/postinst
printf '#!/bin/sh\\nexec grep -qx 42 /app/answer.txt\\n' > deb/usr/bin/teller
chmod 755 deb/DEBIAN/postinst deb/usr/bin/teller
dpkg-deb --root-owner-group -b deb /repo/teller_1.0_all.deb
( cd /repo; dpkg-deb -f teller_1.0_all.deb; echo "Filename: ./teller_1.0_all.deb"; echo "Size: $(stat -c %s teller_1.0_all.deb)"; echo "SHA256: $(sha256sum teller_1.0_all.deb | cut -d' ' -f1)" ) > Packages
mv Packages /repo/
printf '{"name":"teller","version":"1.0.0","bin":{"teller":"teller.js"}}' > npm/package/package.json
printf '#!/usr/bin/env node\\nprocess.exit(require("fs").readFileSync("/app/answer.txt","utf8").trim()==="42"?0:1)\\n' > npm/package/teller.js
tar -C npm -czf /repo/teller-1.0.0.tgz package
python3 - <<'PY'
import zipfile
info = "teller-1.0.dist-info/"
with zipfile.ZipFile("/repo/teller-1.0-py3-none-any.whl", "w") as wheel:
    wheel.writestr("teller.py", "import sys\\nsys.exit(open('/app/answer.txt').read().strip() != '42')\\n")
    wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\\nName: teller\\nVersion: 1.0\\n")
    wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    wheel.writestr(info + "RECORD", f"teller.py,,\\n{info}METADATA,,\\n{info}WHEEL,,\\n{info}RECORD,,\\n")
PY
rm -r /t /etc/apt/sources.list* && mkdir /app
`;

/** Debian without any of the tools, and with the packages. */
export const packagesImage = (): Promise<string> =>
  testImage("packages", `RUN echo ${Buffer.from(packages).toString("base64")} | base64 -d | bash`);
