#!/usr/bin/env bash
# Finds packages that are missing to build and test Weft. For root it installs them, if apt-get exists. For other users it
# prints the command that installs them; it calls sudo only with --sudo. The exit status is 1 if a required package is
# missing.
#   install_deps.sh            packages for `make`, `make demo` and `make test`
#   install_deps.sh --lint     also packages for `make lint`, `make tidy`, `make ubsan`, `make tsan` and `make fuzz`
#   install_deps.sh --sudo     installs with sudo if the user is not root (make deps)
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

required=() optional=() # names of Debian packages
need() {                # need PACKAGE COMMAND...: the package is required, unless the command succeeds
    local package=$1
    shift
    "$@" >/dev/null 2>&1 || required+=("$package")
}
like() { # the same for optional packages
    local package=$1
    shift
    "$@" >/dev/null 2>&1 || optional+=("$package")
}
has() { command -v "$1"; }
header() { echo "#include <$1>" | ${CC:-cc} -E -; }
clang_runtime() { # clang's sanitizers are a package of their own in Debian
    local program
    program=$(mktemp)
    echo 'int main(void) { return 0; }' | clang -fsanitize=address -x c - -o "$program"
    local status=$?
    rm -f "$program"
    return $status
}
cmocka_header() { # cmocka.h needs these headers before it
    printf '#include <%s>\n' stdarg.h stddef.h setjmp.h stdint.h cmocka.h | ${CC:-cc} -E -
}
pcre2_header() { # pcre2.h needs the size of a character
    printf '#define PCRE2_CODE_UNIT_WIDTH 8\n#include <pcre2.h>\n' | ${CC:-cc} -E -
}
gif_header() { # gif_lib.h needs size_t
    printf '#include <%s>\n' stddef.h gif_lib.h | ${CC:-cc} -E -
}
matmul_library() { # any matmul library that the CPU device can load
    ldconfig -p | grep -E 'libdnnl\.so\.[23]|libopenblas\.so\.0|libmkl_rt\.so'
}

opencl() { # the loader and any driver; without them tests are skipped
    ldconfig -p | grep -q 'libOpenCL\.so\.1' && compgen -G '/etc/OpenCL/vendors/*.icd'
}

vulkan() { # the loader and any driver, for WebGPU; without them tests are skipped
    ldconfig -p | grep -q 'libvulkan\.so\.1' && compgen -G '/usr/share/vulkan/icd.d/*.json'
}

find_missing() {
    required=() optional=()
    need build-essential eval "has ${CC:-cc} && has make && header stdio.h"
    need cmake has cmake
    need pkg-config has pkg-config
    need zlib1g-dev header zlib.h
    need libjansson-dev header jansson.h
    need libpcre2-dev pcre2_header
    need libutf8proc-dev header utf8proc.h
    need libcsv-dev header csv.h
    need libpng-dev header png.h
    need libturbojpeg0-dev header turbojpeg.h
    need libyaml-dev header yaml.h
    need libprotobuf-c-dev header protobuf-c/protobuf-c.h
    need protobuf-c-compiler has protoc-c
    need libcmocka-dev cmocka_header
    need python3 has python3
    like ninja-build has ninja
    like libgif-dev gif_header
    like libwebp-dev header webp/decode.h
    like libarchive-dev header archive.h
    like valgrind has valgrind
    like libdnnl2 matmul_library
    like ocl-icd-libopencl1 opencl
    like pocl-opencl-icd opencl
    like libvulkan1 vulkan
    like mesa-vulkan-drivers vulkan
    if $lint; then
        need g++ has c++
        need clang has clang
        need libclang-rt-dev clang_runtime
        need llvm has llvm-symbolizer # names the lines in reports of clang's sanitizers
        need clang-format has clang-format
        need clang-tidy has clang-tidy
        like ccache has ccache
        like wamerican test -e /usr/share/dict/american-english # words of prose
        like wbritish test -e /usr/share/dict/british-english
        like libopenmpi-dev has mpicc.openmpi
        like openmpi-bin has mpirun.openmpi
        like libmpich-dev has mpicc.mpich
        like mpich has mpirun.mpich
        like slurmctld has slurmctld
        like slurmd has slurmd
        like slurm-client has srun
        like munge has munged
    fi
}

# The name of the matmul library depends on the release, and the sanitizers may be part of clang's own package.
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
        echo "These Debian packages are missing: ${required[*]}"
    fi
    if [ ${#optional[@]} -gt 0 ]; then
        echo "These optional packages are missing: ${optional[*]}"
        echo "(Without oneDNN or OpenBLAS matmul is slower. Tests that need OpenCL or valgrind are skipped."
        echo "Without libgif-dev or libwebp-dev, Weft reads no GIF or WebP images, without libarchive-dev no tar files.)"
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
    install "$package" || echo "Weft works without $package."
done
