#!/usr/bin/env bash
# What tests of the command share: cells that are counted, in $cells, and failures, in $fail. To be sourced.

cells=0 fail=0

# expect CODE PATTERN COMMAND...: exit code, and an extended regular expression that the output must hold.
expect() {
    local code=$1 pattern=$2 got
    shift 2
    "$@" >out 2>err
    got=$?
    cells=$((cells + 1))
    if [ "$got" != "$code" ] || { [ -n "$pattern" ] && ! cat out err | grep -Eq -- "$pattern"; }; then
        fail=$((fail + 1))
        echo "FAIL: $* : exit $got (wanted $code), output lacks '$pattern'"
        head -c 2000 out err
    fi
}

# one_line: the last error was one line that begins with "weft: ".
one_line() {
    cells=$((cells + 1))
    if [ "$(wc -l <err)" != 1 ] || ! grep -q '^weft: ' err; then
        fail=$((fail + 1))
        echo "FAIL: not one line of error:"
        cat err
    fi
}

check() { # check NAME COMMAND...: the command must succeed; it may read the last output, "out"
    local name=$1
    shift
    cells=$((cells + 1))
    if ! "$@" >checked 2>&1; then
        fail=$((fail + 1))
        echo "FAIL: $name: $*"
        head -c 2000 checked
    fi
}
