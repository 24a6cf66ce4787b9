#!/usr/bin/env bash
# Tests the table that `weft predict` prints: its forms, several inputs, standard input, names that need quoting.
# shellcheck source=tests/train/command.sh
. "${WEFT_SOURCE_DIR:-.}/tests/train/command.sh"

# a class whose name has a comma and quotes, and one with a tab
{
    echo 'a,b,kind'
    for i in $(seq 40); do
        echo "$i,$((i % 3)),$([ "$i" -gt 20 ] && printf '"big, ""very"""' || printf 'sm\tall')"
    done
} >named.csv
expect 0 '' "$weft" train mlp --data named.csv --run named --set train.epochs=60 --quiet
printf 'a,b\n2,1\n39,1\n' >one.csv
printf 'b,a\n0,40\n' >two.csv

expect 0 '^class	probability$' "$weft" predict named one.csv
check "a header and two lines" test "$(wc -l <out)" = 3
check "a tab within a name does not divide it" grep -q '^sm all	[01]\.' out
check "the name of the other class" grep -q '^big, "very"	[01]\.' out
cp out first
expect 0 '' "$weft" predict named one.csv --no-header
check "no header" sh -c 'tail -n +2 first | cmp - out'

expect 0 '^class	probability	.*	' "$weft" predict named one.csv --probabilities
check "probabilities add up to 1" awk -F '\t' 'NR > 1 {s = $3 + $4; if (s < 0.9999 || s > 1.0001 || NF != 4) bad = 1} END {exit bad || NR != 3}' out

# several inputs: each line begins with its file
expect 0 '^file	class	probability$' "$weft" predict named one.csv two.csv
check "three lines and a header" test "$(wc -l <out)" = 4
check "the second file" grep -q '^two.csv	big' out
# standard input
"$weft" predict named - <one.csv >piped 2>err
check "standard input gives the same" cmp first piped
check "its copy is removed" sh -c '! ls "${TMPDIR:-/tmp}"/weft-standard-input-* 2>/dev/null'
"$weft" predict named - two.csv <one.csv >piped 2>err
check "standard input is called -" grep -q '^-	sm all' piped
printf 'a,b\n1,x\n' | "$weft" predict named - >piped 2>err
check "an error in it has its name, not that of its copy" grep -q '^weft: standard input: line 2 (row 1), column "b"' err

# a column that tells the rows apart
printf 'a,who,b\n2,"Ann, Dr.",1\n39,Bob,1\n' >people.csv
expect 0 '^who	class	probability$' "$weft" predict named people.csv --id who
check "each line begins with it" grep -q '^Ann, Dr.	sm all	' out
expect 0 '' "$weft" predict named people.csv people.csv --id who --out ids.csv
check "after the name of the file" grep -q '^people.csv,"Ann, Dr.",' ids.csv
expect 3 'no column named "who"' "$weft" predict named one.csv --id who
expect 0 '"who":"Bob"' "$weft" predict named people.csv --id who --json

# csv and JSON
expect 0 '' "$weft" predict named one.csv two.csv --out said.csv
check "csv quotes" grep -q '^one.csv,"big, ""very""",[01]\.' said.csv
check "nothing is printed" test ! -s out
expect 0 '"class":"big, ..very..","probability":[01]' "$weft" predict named one.csv --json
check "two lines of JSON" test "$(wc -l <out)" = 2
if command -v python3 >/dev/null; then
    check "it is JSON" python3 -c 'import json, sys
lines = [json.loads(line) for line in open("out")]
assert lines[0]["class"] == "sm\tall" and abs(sum(lines[1]["probabilities"].values()) - 1) < 1e-5 and "file" not in lines[0]'
fi
cp out lines
expect 0 '' "$weft" predict named one.csv --out said.jsonl
check "the file has the same lines" cmp lines said.jsonl

# numbers have the name of their target
awk -F, 'NR == 1 {print "a,b,price"} NR > 1 {print $1 "," $2 "," 3 * $1 + 0.5}' named.csv >line.csv
expect 0 '' "$weft" train linear --data line.csv --run line --quiet
expect 0 '^price$' "$weft" predict line one.csv
expect 0 '"predictions":{"price":' "$weft" predict line one.csv --json

# new data with targets: eval measures them, predict tells how right it is
expect 0 '^new data +loss .* accuracy [0-9.]+ %  \(40 samples\)' "$weft" eval named named.csv
expect 0 'accuracy [0-9.]+ % of 40, by the targets of named.csv; more: .* eval named named.csv' "$weft" predict named named.csv
# suggested commands run as they are printed
mkdir "it's new"
cp named.csv "it's new/rows of May.csv"
expect 0 '' "$weft" train mlp --data named.csv --run "it's new/run" --set train.epochs=1
check "the next command is quoted" grep -qF " predict 'it'\\''s new/run' FILE" out
"$weft" predict "it's new/run" "it's new/rows of May.csv" >out 2>err
check "the suggested eval runs" sh -c "$(sed -n 's/.*; more: //p' err)"
check "there is a suggested eval" grep -qF "eval 'it'\\''s new/run' 'it'\\''s new/rows of May.csv'" err
expect 0 '' "$weft" predict named one.csv
check "no targets, no accuracy" test ! -s err
expect 0 '"new_data": .*"accuracy"' "$weft" eval named named.csv --json
expect 0 'R2 (1.0000|0.99[0-9]+), root mean square error .* of 40' "$weft" predict line line.csv
expect 0 '^new data .* R2' "$weft" eval line line.csv
expect 3 'no column named "kind"' "$weft" eval named one.csv
sed 's/,sm\tall/,third/' named.csv >third.csv
expect 3 'third' "$weft" eval named third.csv
expect 0 '' "$weft" train lstm --data text.txt --run text --set train.steps=3 --set model.width=16 --quiet
head -40 text.txt >part.txt
expect 0 '^new data .* perplexity .*windows' "$weft" eval text part.txt
echo '{}' >other.txt
expect 3 'other.txt' "$weft" eval text other.txt
expect 8 'none.txt' "$weft" eval text none.txt
# folds and labels in files of their own
expect 0 '' "$weft" cv mlp --data named.csv --folds 3 --set train.epochs=2 --run folds
expect 0 '^new data' "$weft" eval folds/fold-1 named.csv

# errors: nothing half written is left
expect 2 'missing: INPUT' "$weft" predict named
expect 8 'none.csv' "$weft" predict named one.csv none.csv --out half.csv
check "no file after an error" test ! -e half.csv
one_line
expect 8 'no/such/folder' "$weft" predict named one.csv --out no/such/folder/x.csv
: >empty.csv
expect 3 'empty.csv' "$weft" predict named empty.csv
for i in $(seq 20000); do echo "$i,1"; done | sed '1i a,b' >many.csv
"$weft" predict named many.csv 2>err | head -1 >out
check "a reader that leaves is no error" test ! -s err
if [ -e /dev/full ]; then
    "$weft" predict named one.csv >/dev/full 2>err
    check "a full disk is an error" test $? != 0
fi

echo "test_predict: cells=$cells fail=$fail"
[ "$fail" = 0 ]
