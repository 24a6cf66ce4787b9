#!/usr/bin/env bash
# Tests commands whose memory stays short: they end with exit status 5, and no library ends the process.
# shellcheck source=tests/train/command.sh
. "${WEFT_SOURCE_DIR:-.}/tests/train/command.sh"
preload=$(dirname "$weft")/faults/libfault_preload.so
if ldd "$weft" | grep -q 'lib[a-z]*san\.so' || [ ! -e "$preload" ]; then
    echo "test_exhausted: skipped, sanitizers watch, or no library makes allocations fail"
    exit 77
fi
mlp=("$weft" train mlp --data table.csv --set data.target=kind --set train.steps=2 --run run --quiet)

# ends CODES WHAT COMMAND...: the command ends with one of these codes, and with 5 exactly if it says why.
ends() {
    local codes=$1 what=$2 got
    shift 2
    rm -rf run
    [ ! -d whole ] || cp -r whole run
    "$@" >out 2>err
    got=$?
    grep -q '^weft: .*memory' err && codes=5
    check "$what: exit $got: $(tail -1 err)" grep -q " $got " <<<" $codes "
    [ $got != 5 ] || check "$what: it says why" test "$codes" = 5
}

# ---- little room for addresses: libraries are opened and compile kernels in it ----
for kb in $(seq 50000 7000 150000); do
    ends 0 "$kb kB" bash -c 'ulimit -c 0 -v "$0" && exec "$@"' "$kb" "${mlp[@]}"
done

# ---- no allocation succeeds from number N on ----
for at in $(seq 1 40 1300); do
    faults=(env FAULT_EVER=1 FAULT_AT="$at" LD_PRELOAD="$preload")
    ends 0 "allocation $at" "${faults[@]}" WEFT_MATMUL=own "${mlp[@]}"
    ends '0 127 134' "allocation $at" "${faults[@]}" "${mlp[@]}" # ended by oneDNN, which then is opened or compiles kernels
done
expect 0 '' "${mlp[@]}" --run whole
for at in $(seq 1 60 1300); do
    faults=(env FAULT_EVER=1 FAULT_AT="$at" LD_PRELOAD="$preload")
    ends 0 "resume, allocation $at" "${faults[@]}" WEFT_MATMUL=own "$weft" resume run --set train.steps=4 --quiet
    ends '0 127 134' "resume, allocation $at" "${faults[@]}" "$weft" resume run --set train.steps=4 --quiet
done

echo "$cells checks, $fail failures"
exit $((fail > 0))
