#!/usr/bin/env bash
# Runs clang-tidy on src/ with the flags of the build folder $1 and $2 processes. --quick leaves out the path-sensitive
# analyzer, which takes nine tenths of the time.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
quick=()
if [ "${1:-}" = --quick ]; then
    quick=("--checks=-clang-analyzer-*,-clang-diagnostic-*")
    shift
fi
build=${1:-build} jobs=${2:-2}

# Flags of GCC that clang does not know are left out of a copy of the compilation database.
database=$(mktemp -d)
trap 'rm -rf "$database"' EXIT
sed -E 's/ -f(vect-cost-model=[a-z]+|unswitch-loops|peel-loops)//g' "$build/compile_commands.json" \
    >"$database/compile_commands.json" || exit

mapfile -t files < <(find src -name '*.c' | sort)
found=$(printf '%s\n' "${files[@]}" |
    xargs -P "$jobs" -n 8 clang-tidy -p "$database" --quiet "${quick[@]}" 2>/dev/null |
    grep -E '(error|warning): ' | sort -u)
if [ -n "$found" ]; then
    echo "$found"
    echo "tidy: $(wc -l <<<"$found") findings"
    exit 1
fi
echo "tidy: ${#files[@]} files, ok"
