#!/usr/bin/env bash
# Runs all checks of `make lint` on a build folder, the cheapest first. A check that passes prints one line.
# All checks run, even after a failure. The exit status is 1 if any check failed.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
build=${1:-build}
status=0

tools/check_format.sh || status=1
python3 tools/check_layers.py "$build" || status=1
python3 tools/check_sizes.py || status=1
python3 tools/check_prose.py || status=1
if [ -e tools/gen_ops.py ]; then
    if python3 tools/gen_ops.py --check; then
        echo "generated: include/weft/ops.h is up to date"
    else
        echo "generated: include/weft/ops.h is out of date: run tools/gen_ops.py"
        status=1
    fi
fi
for generator in "gen_configuration docs/configuration.md" "gen_limits SECURITY.md"; do
    read -r tool page <<<"$generator"
    if python3 "tools/$tool.py" --check; then
        echo "generated: $page is up to date"
    else
        echo "generated: $page is out of date: run tools/$tool.py"
        status=1
    fi
done
if python3 tools/gen_options.py "$build" --check; then
    echo "generated: docs/options.md is up to date"
else
    echo "generated: docs/options.md is out of date: run tools/gen_options.py"
    status=1
fi
python3 tools/check_headers.py || status=1
python3 tools/check_symbols.py "$build" || status=1

python3 tools/check_flags.py "$build" || status=1
tools/tidy.sh --quick "$build" || status=1

stale=0
for patch in tests/mutants/*.patch; do
    patch -p1 -s -F3 --dry-run <"$patch" >/dev/null || { echo "$patch does not apply: update it"; stale=1; }
done
if [ $stale = 0 ]; then
    echo "mutants: all planted faults apply"
else
    status=1
fi

if command -v shellcheck >/dev/null; then
    if git ls-files '*.sh' .ci/run 2>/dev/null | xargs -r shellcheck -S warning; then
        echo "shell: ok"
    else
        status=1
    fi
fi
exit $status
