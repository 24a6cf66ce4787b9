#!/usr/bin/env bash
# Control sequences in names and texts from files must not reach the terminal: tables, messages and the report print them
# escaped. Output for programs (csv, a model's text) is exact in a pipe, and escaped on a terminal.
# shellcheck source=tests/train/command.sh
. "${WEFT_SOURCE_DIR:-.}/tests/train/command.sh"

esc=$(printf '\033') evil=$(printf '\033[31mred')
clean() { ! LC_ALL=C grep -q "$esc" "$@"; } # these files contain no escape character

# ---- columns and classes of a table ----
{
    printf 'a,%s,kind\n' "$evil"
    for i in $(seq 60); do printf '%d,%d,%s%d\n' $((i % 7)) $((i % 5)) "$evil" $((i % 2)); done
} >table.csv
expect 0 '' "$weft" init logistic --data table.csv --out logistic.yaml
expect 0 '' "$weft" train logistic.yaml --run run --set train.epochs=2
check "what train prints" clean out err
for command in "show run" "eval run" "eval run --json" "info run" "runs ."; do
    # shellcheck disable=SC2086
    expect 0 '' "$weft" $command
    check "weft $command" clean out err
done
check "classes are named" bash -c "'$weft' eval run | grep -Fq '\u001b[31mred0'"
check "JSON is JSON" bash -c "'$weft' eval run --json | grep -Fqi '\u001b[31mred0'"
check "log.txt and the report" clean run/log.txt run/report.html
expect 0 "$esc" "$weft" predict run table.csv # output for programs
expect 0 "$esc" "$weft" show run --csv
printf 'a,b%s\n1,2\n' "$evil" >other.csv
expect 3 'u001b\[31mred' "$weft" predict run other.csv
one_line
check "an error" clean err

# ---- the summary of a run from another person ----
sed -i 's/"model": "/"model": "\\u001b[31m/; s/"status": "[a-z]*"/"status": "<b>\\u001b\\u009b\\u202e"/' run/summary.json
for command in "info run" "runs ." "compare run run"; do
    # shellcheck disable=SC2086
    "$weft" $command >out 2>err
    check "weft $command" clean out err
    check "C1 and bidi" bash -c "! LC_ALL=C grep -q $'\xc2\x9b\|\xe2\x80\xae' out"
done

# ---- file names, keys of a configuration ----
expect 8 'u001b\[31mred' "$weft" train "$evil.yaml"
check "a file's name" clean out err
printf '"%s": 1\n' '\e[31mred' >keys.yaml
expect 3 'u001b\[31mred' "$weft" train keys.yaml
check "a key" clean out err

# ---- a model's text ----
for i in $(seq 60); do printf '%s%s%s' "$esc" "$esc" "$esc"; done >text.txt
expect 0 '' "$weft" init gpt --data text.txt --out gpt.yaml
expect 0 '' "$weft" train gpt.yaml --run gpt --quiet --set train.steps=2 --set schedule.warmup=0 --set model.context=8 --set train.batch=2
expect 0 "$esc" "$weft" generate gpt --tokens 5
python=$(command -v python3) || exit $((fail > 0))
cat >terminal.py <<'END'
import os, pty, sys
out = b""
def read(fd):
    global out
    data = os.read(fd, 65536)
    out += data
    return b"."
code = pty.spawn(sys.argv[1:], read)
open("terminal", "wb").write(out)
sys.exit(0 if code == 0 and b"\\u001b" in out and b"\x1b" not in out else 1)
END
check "a model's text on a terminal" "$python" terminal.py "$weft" generate gpt --tokens 5
check "csv on a terminal" "$python" terminal.py "$weft" show run --csv
check "predictions on a terminal" "$python" terminal.py "$weft" predict run table.csv

echo "$cells cells, $fail failures"
exit $((fail > 0))
