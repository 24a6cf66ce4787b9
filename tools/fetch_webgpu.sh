#!/usr/bin/env bash
# Fetches wgpu-native with its headers from PyPI (the package wgpu) into a folder: include/webgpu.h, include/wgpu.h, and the
# library in lib. Prints the setting of WEFT_WGPU_LIB that lets Weft find the library.
#   fetch_webgpu.sh FOLDER
set -euo pipefail
version=0.32.0 # it holds wgpu-native 29; src/device/webgpu/library.c expects this version
folder=${1:?usage: fetch_webgpu.sh FOLDER}
parts=$folder/wgpu/resources

python3 -m pip install --quiet --no-deps --upgrade --target "$folder" "wgpu==$version"
mkdir -p "$folder/include" "$folder/lib"
cp "$parts"/webgpu.h "$parts"/wgpu.h "$folder/include"
found=
for file in "$parts"/libwgpu_native*.so "$parts"/libwgpu_native*.dylib; do
    [ -e "$file" ] || continue
    cp "$file" "$folder/lib"
    found=$folder/lib/${file##*/}
done
if [ -z "$found" ]; then
    echo "$0: wgpu $version has no library for this system" >&2
    exit 1
fi
echo "WEFT_WGPU_LIB=$(realpath "$found")"
