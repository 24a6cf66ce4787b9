#!/usr/bin/env bash
# Compares the C files with what clang-format 14 would write; with --fix, writes it. Other versions format
# differently, so that with one of them the check is skipped by name (the fix still goes ahead).
set -euo pipefail
cd "$(dirname "$0")/.."

wanted=14
tool=$(command -v clang-format-$wanted || command -v clang-format || true)
if [ -z "$tool" ]; then
    echo "format: clang-format is not installed"
    exit 1
fi
version=$("$tool" --version | sed -n 's/.*version \([0-9]*\).*/\1/p')

# Generated files are formatted by what writes them.
mapfile -t files < <(find src include tests bench examples '(' -name '*.[ch]' -o -path 'src/*.inc' ')' -print0 2>/dev/null |
    xargs -0 -r grep -LE '(Generated|Written) by tools/' | sort)

if [ "${1:-}" = --fix ]; then
    "$tool" -i "${files[@]}"
elif [ "$version" != "$wanted" ]; then
    echo "format: skipped: clang-format $wanted is wanted, this is $version"
else
    wrong=$("$tool" --dry-run "${files[@]}" 2>&1 | sed -n 's/:[0-9:]* warning: .*//p' | sort | uniq -c)
    if [ -n "$wrong" ]; then
        echo "$wrong"
        echo "format: places in these files are not as clang-format writes them: make format"
        exit 1
    fi
    echo "format: ${#files[@]} files, ok"
fi
