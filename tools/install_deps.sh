#!/usr/bin/env bash
# Finds out what is missing to build and test Weft. Root gets it installed, where apt-get is there. Anybody else is told
# the command that installs it, and sudo is called only where --sudo asks for it. Ends with 1 where something is missing
# that Weft cannot be built or tested without.
#   install_deps.sh            what `make`, `make demo` and `make test` need
#   install_deps.sh --lint     also what `make lint`, `make tidy`, `make ubsan`, `make tsan` and `make fuzz` need
#   install_deps.sh --sudo     installs by sudo, where it is not run by root (make deps)
set -euo pipefail

lint=false sudo=false
for option in "$@"; do
    case $option in
    --lint) lint=true ;;
    --sudo) sudo=true ;;
    *)
        echo "$0: unknown option $option" >&2
        exit 2
        ;;
    esac
done

required=() optional=() # Debian's names
need() {                # need PACKAGE COMMAND...: the package, unless the command succeeds
    local package=$1
    shift
    "$@" >/dev/null 2>&1 || required+=("$package")
}
like() { # the same for what can be done without
    local package=$1
    shift
    "$@" >/dev/null 2>&1 || optional+=("$package")
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
    required=() optional=()
    need build-essential eval "has ${CC:-cc} && has make && header stdio.h"
    need cmake has cmake
    need pkg-config has pkg-config
    need zlib1g-dev header zlib.h
    need libjansson-dev header jansson.h
    need libpcre2-dev pcre2_header
    need libcsv-dev header csv.h
    need libpng-dev header png.h
    need libturbojpeg0-dev header turbojpeg.h
    need libyaml-dev header yaml.h
    need libprotobuf-c-dev header protobuf-c/protobuf-c.h
    need protobuf-c-compiler has protoc-c
    need libcmocka-dev cmocka_header
    need python3 has python3
    like ninja-build has ninja
    like valgrind has valgrind
    like libdnnl2 matmul_library
    like ocl-icd-libopencl1 opencl
    like pocl-opencl-icd opencl
    if $lint; then
        need g++ has c++
        need clang has clang
        need libclang-rt-dev clang_runtime
        need llvm has llvm-symbolizer # names the lines in reports of clang's sanitizers
        need clang-format has clang-format
        need clang-tidy has clang-tidy
    fi
}

# The matmul library has another name from release to release, and clang's own package may hold its sanitizers.
name_packages() {
    for i in "${!optional[@]}"; do
        if [ "${optional[$i]}" != libdnnl2 ]; then continue; fi
        for name in libdnnl2 libdnnl3 libdnnl3.6 libopenblas0; do
            if apt-cache show "$name" >/dev/null 2>&1; then
                optional[i]=$name
                break
            fi
        done
    done
    for i in "${!required[@]}"; do
        if [ "${required[$i]}" = libclang-rt-dev ] && ! apt-cache show libclang-rt-dev >/dev/null 2>&1; then
            unset "required[$i]"
        fi
    done
}

find_missing
if [ ${#required[@]} -eq 0 ] && [ ${#optional[@]} -eq 0 ]; then
    exit 0
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
    as_root=(sudo)
fi
if ! has apt-get >/dev/null || { [ "$(id -u)" -ne 0 ] && ! $sudo; }; then
    install="apt-get install --no-install-recommends"
    if [ ${#required[@]} -gt 0 ]; then
        echo "These packages are missing, by Debian's names: ${required[*]}"
    fi
    if [ ${#optional[@]} -gt 0 ]; then
        echo "Weft can do without these: ${optional[*]}"
        echo "(Without oneDNN or OpenBLAS matmul is slower. Tests that need OpenCL or valgrind are skipped.)"
    fi
    if has apt-get >/dev/null; then
        echo "To install all: ${as_root[*]} $install ${required[*]} ${optional[*]}" | tr -s ' '
        echo "'make deps' does that."
    fi
    [ ${#required[@]} -eq 0 ]
    exit
fi
if [ ${#as_root[@]} -gt 0 ] && ! has sudo >/dev/null; then
    echo "Run this as root: apt-get install ${required[*]} ${optional[*]}"
    [ ${#required[@]} -eq 0 ]
    exit
fi

echo "Installing ${required[*]} ${optional[*]}" | tr -s ' '
export DEBIAN_FRONTEND=noninteractive
install() { "${as_root[@]}" apt-get install -y -qq --no-install-recommends "$@"; }
"${as_root[@]}" apt-get update -qq || [ ${#required[@]} -eq 0 ] || exit
name_packages
if [ ${#required[@]} -gt 0 ]; then install "${required[@]}"; fi
for package in "${optional[@]}"; do
    install "$package" || echo "Weft does without $package."
done
