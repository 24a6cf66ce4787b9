#!/usr/bin/env bash
# Checks that the portable build in folder $1 needs only libc. First it lists the libraries that the programs load. Then it
# runs the command and the tests in an empty root folder that contains only the programs, libc, libm and the loader.
# WEFT_PORTABLE_TESTS may name the tests to run.
set -euo pipefail
build=$(cd "$1" && pwd)
source=$(cd "$(dirname "$0")/.." && pwd)
allowed='^(linux-vdso\.so\.1|libc\.so\.6|libm\.so\.6|ld-linux.*|/lib.*/ld-linux.*)$'

# Allowed are the libraries of the list, and those in the folder of the programs.
foreign() { # foreign PROGRAM: prints the other libraries that the program loads
    ldd "$1" | awk -v beside="$build/" '$2 == "=>" && index($3, beside) == 1 { next } { print $1 }' | grep -Ev "$allowed" || true
}
# Most distributions have no static cmocka, so the shared library is copied to the folder of the tests.
for program in "$build"/test_*; do
    if [ ! -x "$program" ] || [ -d "$program" ]; then continue; fi
    ldd "$program" | awk '$1 ~ /^libcmocka/ && $3 ~ /^\// { print $3 }' | while read -r library; do
        if [ ! -e "$build/$(basename "$library")" ]; then cp -L "$library" "$build/"; fi
    done
    if compgen -G "$build/libcmocka*" >/dev/null; then break; fi # not every test loads it
done
programs=("$build/weft")
for program in "$build"/test_*; do
    if [ -f "$program" ] && [ -x "$program" ]; then programs+=("$program"); fi
done
for program in "${programs[@]}"; do
    found=$(foreign "$program")
    if [ -n "$found" ]; then
        echo "portable: $(basename "$program") loads $(echo "$found" | tr '\n' ' ')"
        exit 1
    fi
done
echo "portable: ${#programs[@]} programs load only libc, libm and libraries in their folder"

if [ "$(id -u)" -eq 0 ]; then
    enter=("$(command -v chroot)")
elif unshare -Ur true 2>/dev/null; then
    enter=("$(command -v unshare)" -Ur "$(command -v chroot)")
else
    echo "portable: skipped the run in an empty root folder: it needs root or user namespaces"
    exit 0
fi
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root/bin" "$root/tmp" "$root/dev"
: >"$root/dev/null"
chmod 666 "$root/dev/null"
ldd "$build/weft" | grep -oE '/[^ ]+' | while read -r library; do
    mkdir -p "$root$(dirname "$library")"
    cp -L "$library" "$root$library"
done
cp "${programs[@]}" "$root/bin/"
cp "$build"/libcmocka* "$root/bin/" 2>/dev/null || true
cp -r "$source/tests" "$source/include" "$root/"
mkdir -p "$root/src/ops" && cp "$source/src/ops/ops.def" "$root/src/ops/"

# Without /proc the loader is told where $ORIGIN is.
inside() { env -i LD_ORIGIN_PATH=/bin PATH=/bin HOME=/tmp TMPDIR=/tmp WEFT_SOURCE_DIR=/ "${enter[@]}" "$root" "$@"; }
inside /bin/weft devices
inside /bin/weft demo xor | tail -1
failed=() done=0
for program in "${programs[@]:1}"; do
    name=$(basename "$program")
    if [[ -n ${WEFT_PORTABLE_TESTS:-} && " $WEFT_PORTABLE_TESTS " != *" $name "* ]]; then continue; fi
    done=$((done + 1))
    arguments=()
    case $name in test_ops | test_grad) arguments=(cpu) ;; esac
    inside "/bin/$name" "${arguments[@]}" >"$root/tmp/log" 2>&1 || {
        failed+=("$name")
        tail -5 "$root/tmp/log"
    }
done
if [ ${#failed[@]} -gt 0 ]; then
    echo "portable: failed in an empty root folder: ${failed[*]}"
    exit 1
fi
echo "portable: $done tests pass in an empty root folder"
