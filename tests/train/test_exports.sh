#!/usr/bin/env bash
# Every source of models to every format, for all architectures: see exports.py.
# shellcheck source=tests/train/command.sh
source "$(dirname "$0")/command.sh"
tree=${WEFT_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}
if ! python3 -c '' 2>/dev/null; then
    echo "test_exports: skipped, python3 is missing"
    exit 77
fi
python3 "$tree/tests/train/exports.py" "$weft" "$tree"
