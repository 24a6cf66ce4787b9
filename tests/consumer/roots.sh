#!/usr/bin/env bash
# Tests source this file. It simulates systems on which components are missing, or installed only in part: a folder of
# pkg-config files, and a mpicc. Real ones would be containers, which take minutes and a network.
# shellcheck disable=SC2034
tree=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d /tmp/weft-test-XXXXXX)
trap 'rm -rf "$work"' EXIT
command -v cmake >/dev/null && command -v pkg-config >/dev/null || { echo "skipped: needs cmake and pkg-config"; exit 77; }

optional='^(ompi|mpi|orte|opal|mpich|libwebp|libarchive)'

# pc_folder NAME: makes a folder with the pkg-config files of this system, without those of optional components.
pc_folder() {
    local folder file
    mkdir -p "$work/$1"
    for folder in $(pkg-config --variable pc_path pkg-config | tr : ' '); do
        for file in "$folder"/*.pc; do
            [ -e "$file" ] && ! grep -Eq "$optional" <<<"${file##*/}" && ln -sf "$file" "$work/$1/"
        done
    done
}

# pc_only FOLDER MODULE...: adds pkg-config files of modules whose headers and libraries are not there.
pc_only() {
    local folder=$1 module
    shift
    for module; do
        printf 'Name: %s\nDescription: only this file\nVersion: 9.9\nCflags: -I%s/gone\nLibs: -L%s/gone -l%s-gone\n' \
            "$module" "$work" "$work" "$module" >"$work/$folder/$module.pc"
    done
}

# openmpi_bin FOLDER: a mpicc as of Debian's openmpi-bin, without the files of libopenmpi-dev.
openmpi_bin() {
    mkdir -p "$work/$1"
    cat >"$work/$1/mpicc" <<END
#!/bin/sh
case "\$*" in
*-showme:compile*) echo "-I$work/gone/include -pthread" ;;
*-showme:link*) echo "-L$work/gone/lib -lmpi" ;;
*-showme:incdirs*) echo "$work/gone/include" ;;
*-show*) echo "gcc -I$work/gone/include -pthread -L$work/gone/lib -lmpi" ;;
*) exec cc -I$work/gone/include "\$@" -L$work/gone/lib -lmpi ;;
esac
END
    chmod +x "$work/$1/mpicc"
}

# configure FOLDER PC BIN OPTIONS...: configures the tree with these pkg-config files, and with BIN first in PATH.
configure() {
    local folder=$1 pc=$2 bin=$3
    shift 3
    PKG_CONFIG_LIBDIR=$work/$pc PATH=$work/$bin:$PATH cmake -S "$tree" -B "$work/$folder" "$@" >"$work/$folder.log" 2>&1
}
