#!/usr/bin/env bash
# Installs the build folder $1 into a temporary prefix, moves it, and builds and runs the consumer
# against it: by CMake and by pkg-config, shared and static.
set -euo pipefail

build=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cmake --install "$build" --prefix "$work/staged" >"$work/install.log" || {
    cat "$work/install.log"
    exit 1
}
mv "$work/staged" "$work/prefix" # nothing installed may know where it was put first
prefix=$work/prefix
pc=$(find "$prefix" -name weft.pc)
libdir=$(dirname "$(dirname "$pc")")
export PKG_CONFIG_PATH=${pc%/weft.pc}
CC=${CC:-$(sed -n 's/^CMAKE_C_COMPILER:[A-Z]*=//p' "$build/CMakeCache.txt")}
export CC

soname=$(objdump -p "$libdir/libweft.so" | awk '$1 == "SONAME" { print $2 }')
major=$(pkg-config --modversion weft | cut -d. -f1)
if [ "$soname" != "libweft.so.$major" ]; then
    echo "SONAME is $soname, not libweft.so.$major"
    exit 1
fi

cmake -S "$here" -B "$work/cmake" -DCMAKE_PREFIX_PATH="$prefix" >"$work/cmake.log" 2>&1 &&
    cmake --build "$work/cmake" >>"$work/cmake.log" 2>&1 || {
    cat "$work/cmake.log"
    exit 1
}
mkdir "$work/make"
make -s -C "$here" OUT="$work/make" LIBDIR="$libdir" "$work/make/consumer" "$work/make/consumer_static"

for program in "$work"/cmake/consumer_shared "$work"/cmake/consumer_static \
    "$work"/make/consumer "$work"/make/consumer_static; do
    echo "${program#"$work"/}: $(LD_LIBRARY_PATH=$libdir "$program")"
done
