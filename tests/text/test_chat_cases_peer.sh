#!/usr/bin/env bash
# Checks that chat_cases.json has the texts of the Python package transformers (tests/text/chat_cases.py). Skipped by name
# without the package.
set -u
python=${WEFT_PEER_PYTHON:-python3}
if ! "$python" -c 'import jinja2, transformers' 2>/dev/null; then
    echo "chat_cases_peer: skipped, the Python package transformers is not installed (pip install transformers jinja2)"
    exit 0
fi
"$python" tests/text/chat_cases.py --check
