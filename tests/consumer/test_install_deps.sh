#!/usr/bin/env bash
# Tests tools/install_deps.sh on machines made of stubs. Without --sudo it must not call sudo, but must print the command.
# Optional packages must never make it fail.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for tool in bash env grep mktemp rm tr touch; do ln -s "$(command -v $tool)" "$work/$tool"; done

stub() { # stub NAME LINE: a program of one line
    printf '#!/bin/bash\n%s\n' "$2" >"$work/$1"
    chmod +x "$work/$1"
}
for tool in make cmake pkg-config protoc-c python3 ninja; do stub $tool true; done
stub cc 'mapfile; exit $(<'"$work"'/cc_status)' # finds all headers, or none
stub ldconfig true                     # neither a matmul library nor OpenCL
stub sudo 'echo "sudo $*" >>'"$work"'/calls; exec "$@"'
stub apt-get 'echo "apt-get $*" >>'"$work"'/calls'
stub apt-cache 'exit 1'

failed=0
# expect WHAT UID CC_STATUS STATUS CALLS TEXT OPTIONS...: checks the exit status, the calls (a pattern; '' for none), and
# the printed text.
expect() {
    local what=$1 user=$2 status=$4 calls=$5 text=$6
    stub id "echo $user"
    echo "$3" >"$work/cc_status"
    : >"$work/calls"
    shift 6
    local said got=0
    said=$(env -i PATH="$work" bash tools/install_deps.sh "$@" 2>&1) || got=$?
    if [ "$got" != "$status" ] || ! grep -q -- "$text" <<<"$said" ||
        { [ -z "$calls" ] && [ -s "$work/calls" ]; } ||
        { [ -n "$calls" ] && ! grep -q -- "$calls" "$work/calls"; }; then
        echo "FAIL: $what: status $got, not $status; it said:"
        echo "$said"
        echo "and called:"
        cat "$work/calls"
        failed=1
    fi
}

expect "headers are missing, not root" 1000 1 1 '' 'sudo apt-get install .*libpng-dev'
expect "only optional packages are missing, not root" 1000 0 0 '' 'optional packages are missing: valgrind libdnnl2'
expect "the same with --sudo" 1000 0 0 'sudo apt-get install .*valgrind' 'Installing valgrind' --sudo
expect "headers are missing, --sudo" 1000 1 0 'sudo apt-get install .*zlib1g-dev' 'Installing build-essential' --sudo
expect "headers are missing, root" 0 1 0 '^apt-get install .*zlib1g-dev' 'Installing build-essential'
stub apt-get 'echo "apt-get $*" >>'"$work"'/calls; case "$*" in *libdnnl2*) exit 100 ;; esac'
expect "optional packages are not available, root" 0 0 0 '^apt-get install .*libdnnl2' 'works without libdnnl2'
rm "$work/apt-get"
expect "headers are missing, no apt" 1000 1 1 '' 'libjansson-dev' --sudo
expect "only optional packages are missing, no apt" 1000 0 0 '' 'valgrind'
stub valgrind true
stub ldconfig 'echo libdnnl.so.2 libOpenCL.so.1'
expect "an unknown option" 1000 0 2 '' 'unknown option' --root
[ $failed = 0 ] && echo "install_deps: nothing is installed unasked"
exit $failed
