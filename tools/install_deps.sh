#!/usr/bin/env bash
# Finds out what is missing to build and test Weft and installs it, where apt-get is there (with sudo
# where needed); elsewhere it prints what is missing and ends with 1.
#   install_deps.sh            what `make`, `make demo` and `make test` need
#   install_deps.sh --lint     also what `make lint`, `make tidy`, `make ubsan`, `make tsan` and `make fuzz` need
set -euo pipefail

packages=() # Debian's names
want() {    # want PACKAGE COMMAND...: the package, unless the command succeeds
    local package=$1
    shift
    "$@" >/dev/null 2>&1 || packages+=("$package")
}
has() { command -v "$1"; }
header() { echo "#include <$1>" | ${CC:-cc} -E -; }
clang_runtime() { # clang's sanitizers, which Debian packs apart from it
    local program
    program=$(mktemp)
    echo 'int main(void) { return 0; }' | clang -fsanitize=address -x c - -o "$program"
    local status=$?
    rm -f "$program"
    return $status
}
cmocka_header() { # cmocka.h needs its friends first
    printf '#include <%s>\n' stdarg.h stddef.h setjmp.h stdint.h cmocka.h | ${CC:-cc} -E -
}
pcre2_header() { # which wants to know the size of a character
    printf '#define PCRE2_CODE_UNIT_WIDTH 8\n#include <pcre2.h>\n' | ${CC:-cc} -E -
}
matmul_library() { # anything of what the CPU device can open at run time
    ldconfig -p | grep -E 'libdnnl\.so\.[23]|libopenblas\.so\.0|libmkl_rt\.so'
}

opencl() { # the loader and any driver; tests skip by name without them
    ldconfig -p | grep -q 'libOpenCL\.so\.1' && compgen -G '/etc/OpenCL/vendors/*.icd'
}

find_missing() {
    packages=()
    want build-essential eval "has ${CC:-cc} && has make && header stdio.h"
    want cmake has cmake
    want ninja-build has ninja
    want pkg-config has pkg-config
    want zlib1g-dev header zlib.h
    want libjansson-dev header jansson.h
    want libpcre2-dev pcre2_header
    want libcsv-dev header csv.h
    want libpng-dev header png.h
    want libturbojpeg0-dev header turbojpeg.h
    want libyaml-dev header yaml.h
    want libprotobuf-c-dev header protobuf-c/protobuf-c.h
    want protobuf-c-compiler has protoc-c
    want libcmocka-dev cmocka_header
    want python3 has python3
    want valgrind has valgrind
    want libdnnl2 matmul_library
    want ocl-icd-libopencl1 opencl
    want pocl-opencl-icd opencl
    if [ "${1:-}" = --lint ]; then
        want g++ has c++
        want clang has clang
        want libclang-rt-dev clang_runtime
        want llvm has llvm-symbolizer # names the lines in reports of clang's sanitizers
        want clang-format has clang-format
        want clang-tidy has clang-tidy
    fi
}

find_missing "$@"
if [ ${#packages[@]} -eq 0 ]; then
    exit 0
fi

if ! has apt-get >/dev/null; then
    echo "These are missing, by the names of Debian's packages:"
    printf '    %s\n' "${packages[@]}"
    echo "Install them with your system's package manager and try again."
    echo "(libdnnl2 is oneDNN; OpenBLAS will do, and without either Weft uses its own, slower matmul."
    echo "The last two are OpenCL on the processor: without them its tests are skipped.)"
    # Only these can be done without.
    for package in "${packages[@]}"; do
        [[ $package =~ ^(libdnnl2|ocl-icd-libopencl1|pocl-opencl-icd)$ ]] || exit 1
    done
    exit 0
fi

echo "Installing ${packages[*]}"
as_root=()
if [ "$(id -u)" -ne 0 ]; then
    if ! has sudo >/dev/null; then
        echo "Run this as root: apt-get install ${packages[*]}"
        exit 1
    fi
    as_root=(sudo)
fi
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -qq

# The matmul library has another name from release to release, and clang's own package may hold its sanitizers.
for i in "${!packages[@]}"; do
    if [ "${packages[$i]}" = libclang-rt-dev ] && ! apt-cache show libclang-rt-dev >/dev/null 2>&1; then
        unset "packages[$i]"
        continue
    fi
    if [ "${packages[$i]}" = libdnnl2 ]; then
        for name in libdnnl2 libdnnl3 libdnnl3.6 libopenblas0; do
            if apt-cache show "$name" >/dev/null 2>&1; then
                packages[i]=$name
                break
            fi
        done
    fi
done
"${as_root[@]}" apt-get install -y -qq --no-install-recommends "${packages[@]}"
