"""Lets a CUDA build of torch be imported on a machine without CUDA's libraries.

    python stub_cuda.py SITE_PACKAGES

The package registry has only torch's CUDA build. It links against cuBLAS, cuDNN, NCCL and others (2.7 GB), which the
dynamic loader wants to see although a CPU run never calls into them. For each library that is missing, this compiles
an empty one that exports the symbols torch refers to; a call into one returns 999 (cudaErrorUnknown). For a test
environment only: in an environment that will see a GPU, install the real libraries. Needs gcc and readelf.
"""

import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

# libcuda belongs to the driver and torch opens it lazily; the rest is the C runtime, which every machine has.
PROVIDED = re.compile(r"(libcuda|libc|libm|libdl|librt|libpthread|libutil|libgcc_s|libstdc\+\+|libgomp|ld-linux[-\w]*)\.")
# Symbols without a version tell their library by their prefix only.
CUDA_PREFIX = re.compile(r"(cublas|cudnn|cufft|cusolver|cusparse|nccl|nvrtc|nvshmem)")


def readelf(option: str, file: Path) -> list[str]:
    return subprocess.run(["readelf", "-W", option, str(file)], capture_output=True, text=True).stdout.splitlines()


def needed_libraries(file: Path) -> set[str]:
    return {found[1] for line in readelf("-d", file) if (found := re.search(r"\(NEEDED\).*\[(.+)\]", line))}


def version_owners(file: Path) -> dict[str, str]:
    """Symbol version -> the library that must define it, from the version needs section."""
    owners: dict[str, str] = {}
    library = None
    for line in readelf("-V", file):
        if found := re.search(r"File: (\S+)", line):
            library = found[1]
        elif library and (found := re.search(r"Name: (\S+)", line)):
            owners[found[1]] = library
    return owners


def undefined_symbols(file: Path):
    """Yields (name, version or None) of what the file imports."""
    for line in readelf("--dyn-syms", file):
        if found := re.search(r" UND (\w+)(?:@+(\S+))?", line):
            yield found[1], found[2]


def library_of(symbol: str, libraries: list[str]) -> str | None:
    """The library whose name is the longest prefix of the symbol: cublasLtMatmul is in libcublasLt, not in libcublas."""
    stems = {library: re.split(r"[._]", library.removeprefix("lib"))[0].lower() for library in libraries}
    fitting = [library for library, stem in stems.items() if symbol.lower().startswith(stem)]
    return max(fitting, key=lambda library: len(stems[library]), default=None)


def compile_stub(target: Path, plain: set[str], versioned: dict[str, set[str]]) -> None:
    names = sorted(plain.union(*versioned.values()))
    with tempfile.TemporaryDirectory() as folder:
        source, script = Path(folder, "stub.c"), Path(folder, "stub.map")
        source.write_text("".join(f"int {name}(void) {{ return 999; }}\n" for name in names))
        script.write_text("".join(f"{version} {{ global: {' '.join(f'{name};' for name in sorted(symbols))} }};\n" for version, symbols in sorted(versioned.items())))
        command = ["gcc", "-shared", "-fPIC", "-w", "-fno-builtin", f"-Wl,-soname,{target.name}", "-o", str(target), str(source)]
        subprocess.run(command + ([f"-Wl,--version-script,{script}"] if versioned else []), check=True)


def main(site_packages: Path) -> None:
    folder = site_packages / "torch" / "lib"
    objects = [*folder.glob("*.so"), *(site_packages / "torch").glob("_C*.so")]
    present = {path.name for path in folder.iterdir()} | {path.name for path in site_packages.glob("nvidia/**/*.so*")}
    wanted = set().union(*(needed_libraries(file) for file in objects))
    missing = sorted(name for name in wanted if name not in present and not PROVIDED.match(name))

    versioned: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    plain: dict[str, set[str]] = defaultdict(set)
    for file in objects:
        owners = version_owners(file)
        for name, version in undefined_symbols(file):
            if version in owners:
                versioned[owners[version]][version].add(name)
            elif version is None and CUDA_PREFIX.match(name) and (library := library_of(name, missing)):
                plain[library].add(name)
    for library in missing:
        compile_stub(folder / library, plain[library], versioned[library])
    print(f"{len(missing)} stand-ins in {folder}: {' '.join(missing)}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
