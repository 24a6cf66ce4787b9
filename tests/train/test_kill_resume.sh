#!/usr/bin/env bash
# A sample of kills, signals and races; resumed runs must have the same bits: see kill_resume.py.
set -eu
if ! command -v python3 >/dev/null; then
    echo "kill_resume: skipped, python3 is not installed"
    exit 0
fi
exec python3 "$(dirname "$0")/kill_resume.py" "${WEFT_COMMAND:?names the weft command}"
