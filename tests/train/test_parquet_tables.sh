#!/usr/bin/env bash
# Tables and classes of texts in several Parquet files: a folder, a pattern and a range give the bits of one file, also after
# a resume. Tests which files are refused, and the places that messages name.
# shellcheck source=tests/train/command.sh
. "${WEFT_SOURCE_DIR:-.}/tests/train/command.sh"
# shellcheck source=tests/train/duckdb.sh
. "${WEFT_SOURCE_DIR:-.}/tests/train/duckdb.sh"

# ---- without the library ----
mkdir plain mixed
cp table.csv plain/a.csv
expect 8 'plain: this is a folder without Parquet files' "$weft" train logistic --data plain --set data.source=csv --quiet
one_line
printf 'PAR1 and so on' >mixed/0.parquet
cp table.csv mixed/1.csv
expect 3 'mixed/1.csv: this is no Parquet file, but .*mixed/0.parquet is one: name files of one kind' \
    "$weft" train logistic --data 'mixed/*' --quiet
one_line
expect 8 'none/\*.parquet: there is no such file' "$weft" train logistic --data 'none/*.parquet' --quiet
one_line

# ---- with it ----
need_duckdb test_parquet_tables
last() { compgen -G "$1/checkpoints/step-*/model.safetensors" | sort -V | tail -1; }
in_duckdb <<'PYTHON'
import os, random
import duckdb
random.seed(8)
for folder in ("parts", "short", "wide", "types", "bad", "hollow", "damaged", "images", "reviews", "empty", "spark.parquet"):
    os.mkdir(folder)
duckdb.sql("CREATE TABLE t (n INT, kind INT, name VARCHAR, size DOUBLE, bought DATE, class VARCHAR)")
for i in range(300):
    size = None if random.random() < 0.1 else random.randrange(1, 70) + 0.5
    name = random.choice(("red", "green", 'a "quoted", name', "two\nlines"))
    kind = random.randrange(1, 4)
    duckdb.execute("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)",
                   [i, kind, name, size, "2024-03-%02d" % (1 + i % 28), "big" if (size or 20) + 9 * kind > 50 else "small"])


def write(query, path):
    duckdb.sql("COPY (%s) TO '%s' (FORMAT parquet)" % (query, path))


columns = "kind, name, size, bought, class"
write("SELECT %s FROM t ORDER BY n" % columns, "all.parquet")
write("SELECT %s FROM t WHERE n < 40 ORDER BY n" % columns, "some.parquet")
bounds = (0, 100, 100, 130, 300)  # a file without rows among them
for k in range(4):
    rows = "FROM t WHERE n >= %d AND n < %d ORDER BY n" % (bounds[k], bounds[k + 1])
    order = columns if k < 2 else "class, bought, size, name, kind"  # in another order
    write("SELECT %s %s" % (order, rows), "parts/part-%d.parquet" % k)
    write("SELECT %s %s" % (columns, rows), "spark.parquet/part-%05d.parquet" % k)
open("parts/README.md", "w").write("# Rows\n")
open("spark.parquet/_SUCCESS", "w")
first = "SELECT %s FROM t WHERE n < 100 ORDER BY n" % columns
for folder in ("short", "wide", "types", "bad", "damaged"):
    write(first, folder + "/0.parquet")
write("SELECT kind, name, bought, class FROM t", "short/1.parquet")
write("SELECT *, 1 AS spare FROM (%s)" % first, "wide/1.parquet")
write("SELECT kind, name, CAST(size AS INT) AS size, bought, class FROM t", "types/1.parquet")
write("SELECT kind, name, CASE n WHEN 7 THEN 'inf'::DOUBLE ELSE size END AS size, bought, class FROM t WHERE n < 50 ORDER BY n", "bad/1.parquet")
open("damaged/1.parquet", "wb").write(open("damaged/0.parquet", "rb").read()[:700])
for k in range(2):
    write("SELECT %s FROM t LIMIT 0" % columns, "hollow/%d.parquet" % k)
write(first, "images/metadata.parquet")
open("images/a.png", "wb").write(b"no image")
for k in range(3):
    text = "CASE kind WHEN 3 THEN 'the warp goes' ELSE 'a loom, under' END AS text, CASE kind WHEN 3 THEN 'fine' ELSE 'poor' END AS label"
    write("SELECT %s FROM t WHERE n %% 3 = %d ORDER BY n" % (text, k), "reviews/%d.parquet" % k)
write("SELECT text, label FROM read_parquet(['reviews/0.parquet', 'reviews/1.parquet', 'reviews/2.parquet'])", "reviews.parquet")
for k in range(2):
    write("SELECT CASE n WHEN %d THEN ' ' ELSE name END AS text, class AS label FROM t WHERE n < 30 ORDER BY n" % (12 * k + 100 * (1 - k)),
          "empty/%d.parquet" % k)
write("SELECT TIMESTAMPTZ '2024-03-01 00:00:00+00' + to_hours(n * 7) AS at, n % 24 AS y FROM t ORDER BY n", "instants.parquet")
PYTHON
rows=(--set data.target=class --set schedule.type=constant --set train.batch=16 --quiet)
wide=("${rows[@]}" --set train.epochs=4)
train() { with_python "$weft" train "$@"; }

for model in logistic mlp; do
    expect 0 '' train $model --data all.parquet "${wide[@]}" --run $model-one
    for path in parts 'parts/*.parquet' 'parts/part-{0..3}.parquet' spark.parquet; do
        expect 0 '' train $model --data "$path" "${wide[@]}" --run "$model-${path//[^a-z]/}"
        check "$model: the weights of $path" cmp "$(last $model-one)" "$(last "$model-${path//[^a-z]/}")"
    done
done
expect 0 '' with_python "$weft" predict logistic-one all.parquet --out one.tsv
expect 0 '' with_python "$weft" predict logistic-one parts --out parts.tsv
check "the same predictions" cmp one.tsv parts.tsv
check "all predictions" test "$(wc -l <parts.tsv)" = 301
expect 0 '300 samples|of 300' with_python "$weft" eval logistic-one parts
expect 0 '' with_python "$weft" init mlp --data parts --out mlp.yaml
check "init chooses tables" grep -q 'source: csv' mlp.yaml

# a run that goes on has the bits of one that was not stopped; other rows are refused
expect 0 '' train mlp --data parts "${rows[@]}" --set train.steps=20 --run going
expect 0 '' with_python "$weft" resume going --set train.steps=40 --quiet
expect 0 '' train mlp --data all.parquet "${rows[@]}" --set train.steps=40 --run through
check "a resumed run" cmp "$(last going)" "$(last through)"
mv parts/part-0.parquet parts/part-9.parquet
expect 3 "parts: the data is not what its checkpoints were made with" with_python "$weft" resume going --set train.steps=60 --quiet
one_line

# instants are in UTC, whatever the environment says
expect 0 '' train linear --data instants.parquet "${wide[@]}" --set data.target=y --run instants
expect 0 '' with_python "$weft" predict instants instants.parquet --out utc.tsv
for zone in Asia/Tokyo America/New_York; do
    expect 0 '' with_python env TZ=$zone LANG=th_TH.UTF-8 LC_ALL=th_TH.UTF-8 "$weft" predict instants instants.parquet --out zone.tsv --force
    check "predictions with TZ=$zone" cmp utc.tsv zone.tsv
done

# ---- texts and their classes ----
if python3 "${WEFT_SOURCE_DIR:-.}/tests/train/make_published.py" bert --encoder; then
    tune=(--set model.init=bert --set optimizer.lr=0.003 --set train.epochs=1 --quiet)
    expect 0 '' train encoder --data reviews.parquet "${tune[@]}" --run encoder-one
    expect 0 '' train encoder --data reviews "${tune[@]}" --run encoder-folder
    check "the weights of a folder of texts" cmp encoder-one/checkpoints/best/model.safetensors encoder-folder/checkpoints/best/model.safetensors
    expect 3 'empty/1.parquet: line (1[4-9]|2[0-9]), column "text": the text is empty' train encoder --data empty "${tune[@]}" --run encoder-empty
    one_line
else
    echo "no encoder could be made"
    fail=$((fail + 1))
fi

# ---- other files ----
refuse() { # refuse FOLDER PATTERN
    expect 3 "$2" train logistic --data "$1" "${wide[@]}" --run "refused-$1"
    one_line
    check "no run of $1" test ! -e "refused-$1"
}
same='all files of a table have the same columns'
refuse short "short/1.parquet: no column \"size\", but .*short/0.parquet has it: $same"
refuse wide "wide/1.parquet: the column \"spare\" is not in .*wide/0.parquet: $same"
refuse types 'types/1.parquet: the column "size" has the type INTEGER, but DOUBLE in .*types/0.parquet: write all files'
refuse damaged 'damaged/1.parquet: DuckDB cannot read it'
refuse hollow 'hollow: none of its 2 Parquet files has a row of data'
refuse bad 'bad/1.parquet: line (9|1[0-9]) \(row 8\), column "size"'
# a table beside images tells of the images
expect 3 'images/a.png: ' train cnn --data images --quiet --run refused-images

echo "$cells checks, $fail failures"
exit $((fail > 0))
