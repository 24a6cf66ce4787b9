#!/usr/bin/env bash
# Runs whole commands under one kind of fault (alloc, calls): see faults.py. Skipped if a tool that it needs is missing.
set -eu
kind=$1
here=$(dirname "$0")
folder=${WEFT_BINARY_DIR:?names the folder of the build}/faults
if ! command -v python3 >/dev/null || [ ! -e "$folder/libfault_preload.so" ]; then
    echo "faults $kind: skipped, python3, or glibc without sanitizers, is missing"
    exit 77
fi
exec python3 "$here/faults.py" "$kind" "${WEFT_COMMAND:?names the weft command}" "$folder/libfault_preload.so" "$folder/fault_program"
