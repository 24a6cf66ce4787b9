#!/usr/bin/env bash
# An optional component that is installed only in part never ends the configuration: it is left out, and a message says so.
# shellcheck source=tests/consumer/roots.sh
. "$(dirname "$0")/roots.sh"
failed=0

# expect FOLDER PATTERN...: the last configuration must have worked, and said each of these.
expect() {
    local log=$work/$1.log pattern
    shift
    for pattern in "-- Build files have been written" "$@"; do
        grep -Eq -- "$pattern" "$log" && continue
        failed=1
        echo "FAIL: $log lacks '$pattern'"
        tail -n 30 "$log"
    done
}

# pkg-config files alone, and a mpicc without its library
pc_folder half
pc_only half libwebp libarchive ompi-c mpich
openmpi_bin bin
configure a half bin -G "Unix Makefiles" -DMPI_C_COMPILER="$work/bin/mpicc"
for module in libwebp libarchive ompi-c mpich; do expect a "$module is left out: pkg-config finds it"; done
expect a 'MPI is left out: there is .*/bin/mpicc, but a program with mpi.h does not compile'

# what is installed later is found by the next build in the same folder, which says so
rm "$work"/half/{libwebp,libarchive,ompi-c,mpich}.pc
for folder in $(pkg-config --variable pc_path pkg-config | tr : ' '); do
    [ -e "$folder/libwebp.pc" ] && cp "$folder/libwebp.pc" "$work/half/"
done
if [ -e "$work/half/libwebp.pc" ]; then
    PKG_CONFIG_LIBDIR=$work/half make -C "$work/a" cmake_check_build_system >"$work/a.log" 2>&1
    expect a 'new since the last configuration: .*libwebp'
fi

# no MPI is wanted
rm -rf "$work/a"
configure a half bin -DWEFT_MPI=OFF -DWEFT_TESTS=OFF
expect a
grep -q MPI "$work/a.log" && failed=1 && echo "FAIL: WEFT_MPI=OFF looks for MPI"

# `make demo` builds the loops of one instruction set, and `make` adds the others
rm -rf "$work/a"
tiles() { (cd "$work/a" && ninja -t targets all | grep -c 'weft_tiles_.*tiles\.c\.o:'); }
if [ "$(uname -m)" = x86_64 ] && command -v ninja >/dev/null; then
    configure a half bin -G Ninja -DWEFT_MPI=OFF -DWEFT_TESTS=OFF -DWEFT_NATIVE=ON
    expect a
    one=$(tiles)
    make -C "$tree" -n all BUILD="$work/a" >"$work/whole.log"
    grep -q 'WEFT_NATIVE=OFF' "$work/whole.log" || { failed=1 && echo "FAIL: make does not complete the build of make demo"; }
    cmake -DWEFT_NATIVE=OFF "$work/a" >/dev/null
    [ "$one $(tiles)" = "1 3" ] || { failed=1 && echo "FAIL: $one and $(tiles) sets of loops, not 1 and 3"; }
fi
exit $failed
