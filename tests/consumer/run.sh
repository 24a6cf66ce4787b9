#!/usr/bin/env bash
# Installs the build folder $1 into a temporary prefix, without debug information, and moves the prefix. Builds and runs the consumer against it: with
# CMake (also a project that only has C++) and with pkg-config, shared and static, also with another compiler. Then it
# configures the tree as a subproject, without building it.
set -euo pipefail

build=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
tree=$(cd "$here/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cmake --install "$build" --prefix "$work/staged" --strip >"$work/install.log" || {
    cat "$work/install.log"
    exit 1
}
mv "$work/staged" "$work/prefix" # installed files must not contain the first location
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

# The README names a size.
if [ "$(stat -c %s "$prefix/bin/weft")" -ge 8000000 ]; then
    echo "the installed command has $(stat -c %s "$prefix/bin/weft") bytes: README.md says under 8 MB"
    exit 1
fi

# Installed files must not name the source folder or the build folder.
while read -r file; do
    if grep -aq -F -e "$tree/" -e "$build" "$file"; then
        echo "$file names the build's folders: $(grep -aoE "[[:print:]]*($tree|$build)[[:print:]]*" "$file" | sort -u | head -n 3)"
        exit 1
    fi
done < <(find "$prefix" -type f)

by_cmake() { # by_cmake FOLDER NAME OPTIONS...: configures and builds in $work/NAME
    local folder=$1 name=$2
    shift 2
    cmake -S "$folder" -B "$work/$name" -DCMAKE_PREFIX_PATH="$prefix" "$@" >"$work/$name.log" 2>&1 &&
        cmake --build "$work/$name" >>"$work/$name.log" 2>&1 || {
        cat "$work/$name.log"
        exit 1
    }
    programs+=("$work/$name/consumer_shared" "$work/$name/consumer_static")
}
by_make() { # by_make NAME COMPILER
    mkdir "$work/$1"
    make -s -C "$here" CC="$2" OUT="$work/$1" LIBDIR="$libdir" "$work/$1/consumer" "$work/$1/consumer_static"
    programs+=("$work/$1/consumer" "$work/$1/consumer_static")
}
programs=()
by_cmake "$here" cmake
by_make make "$CC"
if command -v c++ >/dev/null; then
    mkdir "$work/cxx-source"
    cp "$here/consumer.c" "$work/cxx-source/consumer.cpp"
    sed 's/LANGUAGES C)/LANGUAGES CXX)/; s/consumer[.]c)/consumer.cpp)/; s/C_STANDARD/CXX_STANDARD/' "$here/CMakeLists.txt" \
        >"$work/cxx-source/CMakeLists.txt"
    by_cmake "$work/cxx-source" cxx
fi
for other in gcc clang; do
    if command -v $other >/dev/null; then by_make "make-$other" $other; fi
done
for program in "${programs[@]}"; do
    echo "${program#"$work"/}: $(LD_LIBRARY_PATH=$libdir "$program")"
done

# An unsupported machine must be refused with a message.
if [ "$(uname -m)" = x86_64 ] && ! grep -q clang <<<"$CC"; then
    if cmake -S "$tree" -B "$work/narrow" -DCMAKE_C_COMPILER="$CC" -DCMAKE_C_FLAGS=-m32 \
        -DCMAKE_TRY_COMPILE_TARGET_TYPE=STATIC_LIBRARY >"$work/narrow.log" 2>&1 ||
        ! grep -q "needs a 64-bit machine" "$work/narrow.log"; then
        echo "a 32-bit machine is not refused:"
        cat "$work/narrow.log"
        exit 1
    fi
    echo "32 bits: refused"
fi

cmake -S "$here/subproject" -B "$work/subproject" -DWEFT_TREE="$tree" -DCMAKE_BUILD_TYPE= >"$work/subproject.log" 2>&1 || {
    cat "$work/subproject.log"
    exit 1
}
echo "subproject: configured"
