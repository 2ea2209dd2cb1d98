/** The repositories in C and C++. */
import type { MultilingualRepo } from "./multilingual-repo.ts";

export const cRepos: readonly MultilingualRepo[] = [
  [
    "redis/redis",
    "parse_log_redis",
    "make distclean\nmake",
    [
      ["13115", "TERM=dumb ./runtest --durable --single unit/scripting"],
      ["12472", 'TERM=dumb ./runtest --durable --single unit/acl --only "/.*ACL GETUSER.*"'],
      ["12272", 'TERM=dumb ./runtest --durable --single unit/type/string --only "/.*(GETRANGE|SETRANGE).*"'],
      ["11734", "TERM=dumb ./runtest --durable --single unit/bitops"],
      ["10764", 'TERM=dumb ./runtest --durable --single unit/type/zset --only "BZMPOP"'],
      ["10095", 'TERM=dumb ./runtest --durable --single unit/type/list --only "/.*(LPOP|RPOP)"'],
      ["9733", "TERM=dumb ./runtest --durable --single unit/introspection-2"],
      ["10068", 'TERM=dumb ./runtest --durable --single unit/type/stream --only "/*XTRIM*"'],
      ["11631", 'TERM=dumb ./runtest --durable --single unit/geo --only "/.*GEOSEARCH .*"'],
      ["11510", 'TERM=dumb ./runtest --durable --single unit/introspection --only "/.*MONITOR.*"'],
      ["11279", "TERM=dumb ./runtest --durable --single unit/acl"],
      ["13338", "TERM=dumb ./runtest --durable --single unit/type/stream-cgroups"],
    ],
  ],
  [
    "jqlang/jq",
    "parse_log_jq",
    "git submodule update --init\nautoreconf -fi\n./configure --with-oniguruma=builtin\nmake clean\ntouch src/parser.y src/lexer.l\nmake -j$(nproc)",
    [
      ["2839", "make check"],
      ["2650", "make check"],
      ["2235", "make check"],
      ["2658", "make check"],
      ["2750", "make check"],
      ["2681", "make check"],
      ["2919", "make check"],
      ["2598", "make check"],
      ["2728", "make check"],
    ],
  ],
  [
    "nlohmann/json",
    "parse_log_doctest",
    "mkdir -p build\ncd build\ncmake ..\nmake test-udt_cpp11\ncd ..",
    [["4237", "./build/tests/test-udt_cpp11 -s -r=xml"]],
  ],
  [
    "micropython/micropython",
    "parse_log_micropython_test",
    "source ./tools/ci.sh\nci_unix_build_helper VARIANT=standard\ngcc -shared -o tests/ports/unix/ffi_lib.so tests/ports/unix/ffi_lib.c",
    [
      [
        "15898",
        "cd tests\nMICROPY_CPYTHON3=python3 MICROPY_MICROPYTHON=../ports/unix/build-standard/micropython ./run-tests.py -i string_format",
      ],
      ["13569", "cd tests\nMICROPY_CPYTHON3=python3 MICROPY_MICROPYTHON=../ports/unix/build-standard/micropython ./run-tests.py -i try"],
      [
        "13039",
        "cd tests\nMICROPY_CPYTHON3=python3 MICROPY_MICROPYTHON=../ports/unix/build-standard/micropython ./run-tests.py -i slice",
        "source ./tools/ci.sh\nci_unix_build_helper VARIANT=standard\ngcc -shared -o tests/unix/ffi_lib.so tests/unix/ffi_lib.c",
      ],
      [
        "12158",
        "cd tests\nMICROPY_CPYTHON3=python3 MICROPY_MICROPYTHON=../ports/unix/build-standard/micropython ./run-tests.py -d thread",
        "source ./tools/ci.sh\nci_unix_build_helper VARIANT=standard\ngcc -shared -o tests/unix/ffi_lib.so tests/unix/ffi_lib.c",
      ],
      [
        "10095",
        "cd tests\nMICROPY_CPYTHON3=python3 MICROPY_MICROPYTHON=../ports/unix/build-standard/micropython ./run-tests.py -i basics/fun",
        "source ./tools/ci.sh\nci_unix_build_helper VARIANT=standard",
      ],
    ],
  ],
  [
    "valkey-io/valkey",
    "parse_log_redis",
    "make distclean\nmake",
    [
      ["928", 'TERM=dumb ./runtest --durable --single unit/cluster/replica-migration --only "/.*NOREPLICAS.*"'],
      ["790", "TERM=dumb ./runtest --durable --single unit/cluster/cluster-shards"],
      ["1499", "TERM=dumb ./runtest --durable --single unit/introspection-2"],
      ["1842", 'TERM=dumb ./runtest --durable --single unit/acl --only "/.*ACL LOAD.*"'],
    ],
  ],
  [
    "fmtlib/fmt",
    "parse_log_googletest",
    "mkdir -p build\ncmake -B build -S .\ncmake --build build --parallel $(nproc) --target format-test",
    [
      [
        "3863",
        "ctest --test-dir build -V -R ranges-test",
        "mkdir -p build\ncmake -B build -S .\ncmake --build build --parallel $(nproc) --target ranges-test",
      ],
      [
        "3158",
        "ctest --test-dir build -V -R ranges-test",
        "mkdir -p build\ncmake -B build -S .\ncmake --build build --parallel $(nproc) --target ranges-test",
      ],
      [
        "2457",
        "ctest --test-dir build -V -R ranges-test",
        "mkdir -p build\ncmake -B build -S .\ncmake --build build --parallel $(nproc) --target ranges-test",
      ],
      ["3901", "ctest --test-dir build -V -R format-test"],
      ["3750", "ctest --test-dir build -V -R format-test"],
      ["3248", "ctest --test-dir build -V -R format-test"],
      ["2317", "ctest --test-dir build -V -R format-test"],
      ["2310", "ctest --test-dir build -V -R format-test"],
      [
        "3272",
        "ctest --test-dir build -V -R xchar-test",
        "mkdir -p build\ncmake -B build -S .\ncmake --build build --parallel $(nproc) --target xchar-test",
      ],
      [
        "3729",
        "ctest --test-dir build -V -R std-test",
        "mkdir -p build\ncmake -B build -S .\ncmake --build build --parallel $(nproc) --target std-test",
      ],
      [
        "1683",
        "ctest --test-dir build -V -R printf-test",
        "mkdir -p build\ncmake -B build -S .\ncmake --build build --parallel $(nproc) --target printf-test",
      ],
    ],
  ],
];
