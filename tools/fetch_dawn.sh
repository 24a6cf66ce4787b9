#!/usr/bin/env bash
# Fetches Dawn, the WebGPU library of Chromium, for tests: lib/libwebgpu_dawn.so from a package of PyPI that brings it. Mesa's
# driver for processors in Debian 12 is too old for Dawn. There it also fetches SwiftShader, Chromium's driver for processors,
# from Debian's package chromium-common: driver/libvk_swiftshader.so. Prints the settings that let Weft find both.
#   fetch_dawn.sh FOLDER
set -euo pipefail
version=0.1.3 # of rillfacet, of October 2026
folder=${1:?usage: fetch_dawn.sh FOLDER}
mkdir -p "$folder/lib" "$folder/driver"
folder=$(realpath "$folder")

python3 -m pip install --quiet --no-deps --upgrade --only-binary :all: --python-version 3.11 --target "$folder/package" \
    "rillfacet==$version"
mv "$folder/package/rillfacet/libwebgpu_dawn.so" "$folder/lib"
rm -r "$folder/package"
echo "WEFT_WGPU_LIB=$folder/lib/libwebgpu_dawn.so"

if command -v apt-get >/dev/null; then
    (cd "$folder" && apt-get download -qq chromium-common 2>/dev/null) ||
        echo "$0: no package chromium-common: the graphics driver of this system is used" >&2
fi
for package in "$folder"/chromium-common*.deb; do
    [ -e "$package" ] || continue
    dpkg-deb --fsys-tarfile "$package" |
        tar -x -C "$folder/driver" --strip-components 4 ./usr/lib/chromium/libvk_swiftshader.so ./usr/lib/chromium/vk_swiftshader_icd.json
    rm "$package"
    echo "VK_ICD_FILENAMES=$folder/driver/vk_swiftshader_icd.json"
done
