#!/usr/bin/env bash
# Numbers that f32 cannot tell apart, such as seconds since 1970 and large ids, as inputs and as targets: they keep their
# bits until they are scaled, whatever the source. Learned from them: y = 2 i for the second 1751822820 + i.
# shellcheck source=tests/train/command.sh
. "${WEFT_SOURCE_DIR:-.}/tests/train/command.sh"
# shellcheck source=tests/train/duckdb.sh
. "${WEFT_SOURCE_DIR:-.}/tests/train/duckdb.sh"
python3 -c '' 2>/dev/null || { echo "test_large_numbers: skipped, python3 is missing"; exit 77; }

python3 - <<'PYTHON'
import json, struct

def npy(name, shape, kind, values):
    head = "{'descr': '<%s8', 'fortran_order': False, 'shape': %s, }" % (kind, shape)
    head += " " * (63 - (len(head) + 10) % 64) + "\n"
    with open(name, "wb") as f:
        f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
        f.write(struct.pack("<%d%s" % (len(values), "d" if kind == "f" else "q"), *values))

def table(name, head, rows):
    with open(name, "w") as f:
        f.write(head + "\n" + "".join(",".join(map(str, row)) + "\n" for row in rows))

t, y = [1751822820 + i for i in range(600)], [2 * i for i in range(600)]
new = [t[0], t[50], t[599]]
table("time.csv", "t,y", zip(t, y))
table("new.csv", "t", [[v] for v in new])
table("words.csv", "t,sign,y", zip(t, "+-" * 300, y))  # cells that are read as texts
table("new_words.csv", "t,sign", zip(new, "+-+"))
table("ids.csv", "id,y", [(9007199254740993 + 100 * i, i) for i in range(300)])
table("end.csv", "x,end", [(i, 1751822820 + 2 * i) for i in range(600)])
table("two_ends.csv", "x", [[0], [50], [599]])
json.dump({"x": [[v] for v in t], "y": y}, open("time.json", "w"))
json.dump({"x": [[v] for v in new]}, open("new.json", "w"))
for kind in "fi":
    npy("time_%s.npy" % kind, (600, 1), kind, t)
    npy("y_%s.npy" % kind, (600,), kind, y)
    npy("new_%s.npy" % kind, (3, 1), kind, new)
PYTHON

# learns RUN NEW OPTION...: trains a linear model, which must predict 0, 100 and 1198.
with=()
learns() {
    expect 0 '' "${with[@]}" "$weft" train linear --run "$1" --quiet "${@:3}"
    expect 0 '' "${with[@]}" "$weft" predict "$1" "$2" --no-header
    check "$1: 0, 100 and 1198" awk -v n=0 '{n += ($1 - (NR == 1 ? 0 : NR == 2 ? 100 : 1198)) ^ 2 < 1e-4} END {exit n != 3}' out
}
learns csv new.csv --data time.csv
expect 0 'R2 1.0000' "$weft" eval csv
learns words new_words.csv --data words.csv
learns json new.json --data time.json
for kind in f i; do learns npy_$kind new_$kind.npy --data time_$kind.npy --set data.labels=[y_$kind.npy]; done
expect 0 'validation R2 1.0000' "$weft" train linear --data ids.csv --run ids

# ---- targets: predictions have the digits that the data have ----
expect 0 'R2 1.0000' "$weft" train linear --data end.csv --run end
expect 0 '' "$weft" predict end two_ends.csv --no-header
check "the last second" test "$(paste -sd' ' out)" = "1751822820 1751822920 1751824018"
expect 0 '"end":1751822920[.,}]' "$weft" predict end two_ends.csv --json

# ---- C source reads floats, and says so ----
expect 1 'input 0 .t. has the mean 1751823[0-9.]* and the deviation 17[0-9], .*subtract a constant' "$weft" export csv --to c --out c
expect 1 'target 0 .end.' "$weft" export end --to c --out c
check "nothing was written" test ! -e c

# ---- Parquet ----
need_duckdb test_large_numbers
in_duckdb <<'PYTHON'
import duckdb
duckdb.sql("COPY (SELECT * FROM 'time.csv') TO 'time.parquet'")
duckdb.sql("COPY (SELECT * FROM 'new.csv') TO 'new.parquet'")
PYTHON
with=(with_python)
learns parquet new.parquet --data time.parquet

echo "test_large_numbers: cells=$cells fail=$fail skip=0"
[ "$fail" = 0 ]
