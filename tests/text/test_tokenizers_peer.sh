#!/usr/bin/env bash
# Compares Weft's tokenizers with the Python package tokenizers (tests/text/peer.py). Skipped by name without the package.
set -u
python=${WEFT_PEER_PYTHON:-python3}
library=${WEFT_BINARY_DIR:?names the build folder}/libweft.so
if ! "$python" -c 'import tokenizers' 2>/dev/null; then
    echo "tokenizers_peer: skipped, the Python package tokenizers is not installed (pip install tokenizers)"
    exit 0
fi
if [ ! -e "$library" ] || grep -q '^WEFT_SANITIZE:[A-Z]*=.' "$WEFT_BINARY_DIR/CMakeCache.txt"; then
    echo "tokenizers_peer: skipped, Python cannot load the shared library of this build"
    exit 0
fi
"$python" tests/text/peer.py "$library"
