#!/usr/bin/env bash
# Parquet files: the same weights and predictions as from csv files, and files and libraries that are wrong.
# shellcheck source=tests/train/command.sh
. "${WEFT_SOURCE_DIR:-.}/tests/train/command.sh"
# shellcheck source=tests/train/duckdb.sh
. "${WEFT_SOURCE_DIR:-.}/tests/train/duckdb.sh"

# ---- without the library ----
printf 'PAR1 and so on' >bad.parquet
expect 8 'bad.parquet: .*libduckdb.*cannot be opened: Weft reads Parquet by the library of DuckDB: install libduckdb' \
    env WEFT_DUCKDB_LIB=/no/such/libduckdb.so "$weft" train logistic --data bad.parquet --quiet
one_line
expect 8 'libc.so.6 has no duckdb_open: it is not the library of DuckDB 1.0 or later' \
    env WEFT_DUCKDB_LIB=libc.so.6 "$weft" train mlp --data bad.parquet --quiet
one_line
# the loader's reason, if it refuses a file
expect 8 "bad.parquet cannot be opened \\((invalid ELF header|file too short)\\): Weft reads Parquet by the library of DuckDB" \
    env WEFT_DUCKDB_LIB="$PWD/bad.parquet" "$weft" train mlp --data bad.parquet --quiet
one_line

# ---- with it ----
need_duckdb test_parquet

last() { compgen -G "$1/checkpoints/step-*/model.safetensors" | sort -V | tail -1; }
in_duckdb <<'PYTHON'
import random
import duckdb
random.seed(7)
rows = []
for i in range(300):
    sex, kind = random.choice(("male", "female")), random.randrange(1, 4)
    age = None if random.random() < 0.2 else random.randrange(1, 70) + 0.5
    rows.append((random.random() < (0.8 if sex == "female" else 0.3), kind, sex, age, "1912-04-%02d" % (10 + i % 19), i % 3 == 0))
with open("all.csv", "w") as file:
    print("survived,class,sex,age,sailed,alone", file=file)
    for survived, kind, sex, age, day, alone in rows:
        print("yes" if survived else "no", kind, sex, "" if age is None else age, day, str(alone).lower(), sep=",", file=file)
duckdb.sql("CREATE TABLE t AS SELECT * FROM read_csv('all.csv', all_varchar=true, nullstr='')")
typed = """SELECT survived, CAST(class AS INT) AS class, sex, CAST(age AS DOUBLE) AS age, CAST(sailed AS DATE) AS sailed,
                  CAST(alone AS BOOLEAN) AS alone FROM t"""
duckdb.sql("COPY (%s) TO 'all.parquet' (FORMAT parquet)" % typed)
duckdb.sql("COPY (%s) TO 'it''s [all]*.parquet' (FORMAT parquet)" % typed)
duckdb.sql("COPY (%s LIMIT 20) TO 'some.parquet' (FORMAT parquet)" % typed)
duckdb.sql("COPY (%s LIMIT 0) TO 'none.parquet' (FORMAT parquet)" % typed)
PYTHON
head -21 all.csv >some.csv
head -c 900 all.parquet >cut.parquet

for model in logistic mlp; do
    set -- --set data.target=survived --set train.epochs=3 --quiet
    expect 0 '' "$weft" train $model --data all.csv "$@" --run $model-csv
    expect 0 '' with_python "$weft" train $model --data all.parquet "$@" --run $model-parquet
    check "$model: the same weights" cmp "$(last $model-csv)" "$(last $model-parquet)"
    expect 0 '' "$weft" predict $model-csv some.csv --out csv.tsv --force
    expect 0 '' with_python "$weft" predict $model-parquet some.parquet --out parquet.tsv --force
    check "$model: the same predictions" cmp csv.tsv parquet.tsv
    check "$model: all predictions" test "$(wc -l <csv.tsv)" = 21
done
expect 0 '' with_python "$weft" init mlp --data all.parquet --out mlp.yaml
check "init chooses tables" grep -q 'source: csv' mlp.yaml
expect 0 '' with_python "$weft" train logistic --data "it's [all]*.parquet" "$@" --run named
check "any name" cmp "$(last logistic-csv)" "$(last named)"
for bad in bad cut; do
    expect 3 "$bad.parquet: DuckDB cannot read it: " with_python "$weft" train logistic --data $bad.parquet "$@" --run $bad
    one_line
done
expect 3 'none.parquet: .* without a row of data' with_python "$weft" train logistic --data none.parquet "$@" --run none
check "no run of a bad file" test ! -e bad

# ---- small files that ask for much ----
in_duckdb <<'PYTHON'
import duckdb
duckdb.sql("COPY (SELECT 1 AS x, i % 2 AS y FROM range(10) t(i)) TO 'ten.parquet' (FORMAT parquet)")
duckdb.sql("COPY (SELECT repeat('a', 300000000) AS x, repeat('b', 9) AS text, 1 AS y) TO 'cell.parquet' (FORMAT parquet, COMPRESSION zstd)")
duckdb.sql("COPY (SELECT repeat('some words ', 400) AS text, 1 AS y FROM range(70000)) TO 'equal.parquet' (FORMAT parquet, ROW_GROUP_SIZE 2048)")
duckdb.sql("COPY (SELECT repeat('a', 92) AS text FROM range(2800000)) TO 'short.parquet' (FORMAT parquet, ROW_GROUP_SIZE 2800000)")
PYTHON
check "they are small" test "$(cat cell.parquet equal.parquet short.parquet | wc -c)" -lt 200000
ten=(--data ten.parquet --set data.target=y --set train.steps=1 --quiet) # "x,y" and ten times "1,0" or "1,1" are 44 bytes
expect 0 '' with_python "$weft" train logistic "${ten[@]}" --run ten --set data.max_bytes=44
expect 3 'ten.parquet: the rows become more than 43 bytes of text: .*raise data.max_bytes' \
    with_python "$weft" train logistic "${ten[@]}" --run bad --set data.max_bytes=43
expect 3 'cell.parquet: DuckDB needs more than [0-9]* bytes to read it: .*raise data.max_bytes' \
    with_python "$weft" train logistic --data cell.parquet --set data.target=y --run bad --quiet
expect 3 'cell.parquet: line 2: the row that starts here is longer than' \
    with_python "$weft" train logistic --data cell.parquet --set data.target=y --run bad --quiet --set data.max_bytes=4000000000
expect 3 'equal.parquet: the rows become more than [0-9]* bytes of text' \
    with_python "$weft" train logistic --data equal.parquet --set data.target=y --run bad --quiet
tiny=(--quiet --set model.layers=1 --set model.width=16 --set model.heads=2 --set train.steps=1)
for files in true false; do
    expect 3 'equal.parquet: row [0-9]*: the rows become more than [0-9]* bytes of text, .*JSON lines' \
        with_python peak 9999 "$weft" train gpt --data equal.parquet --run bad "${tiny[@]}" --set data.in_files=$files
    [ $files = false ] || check "memory holds a window of them" awk '/^peak/ {exit !($2 < 300)}' out
done
# 257,600,000 bytes of text are fewer than the limit, but each row takes memory, too
expect 3 'short.parquet: row [0-9]*: the rows become more than [0-9]* bytes of text, with 8 for each row: .*JSON lines' \
    with_python "$weft" train gpt --data short.parquet --run bad "${tiny[@]}" --set data.in_files=true

echo "$cells checks, $fail failures"
exit $((fail > 0))
