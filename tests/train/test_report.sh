#!/usr/bin/env bash
# Tests the text of report.html: well-formed, nothing from elsewhere, hostile names escaped, and a page that is written while
# the run is under way. test_report_browser.sh looks at it in a browser.
# shellcheck source=tests/train/command.sh
. "${WEFT_SOURCE_DIR:-.}/tests/train/command.sh"
page=$(readlink -f "${WEFT_SOURCE_DIR:-.}")/tests/train/report_page.py
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
# shellcheck source=tests/train/report_runs.sh
. "${WEFT_SOURCE_DIR:-.}/tests/train/report_runs.sh"

check "well-formed, and nothing from elsewhere" python3 "$page" "${runs[@]}"
for run in "${runs[@]}"; do
    check "$run: small" test "$(wc -c <"$run/report.html")" -lt 200000
done
check "names are there, escaped" grep -q '&lt;script&gt;alert(1)&lt;/script&gt;' table/report.html
check "the name of the folder, too" grep -q '<h1>text &lt;b&gt;&amp;amp;</h1>' "${runs[0]}/report.html"
check "a finished run does not load itself again" grep -q '^<body>$' table/report.html

# ---- the confusion of classes ----
cat >confusion.py <<'END'
"""confusion.py RUN: the cells of the matrix in the report are the numbers of scores.json, coloured by their share."""
import json, re, sys
text, scores = open(sys.argv[1] + "/report.html").read(), json.load(open(sys.argv[1] + "/scores.json"))["validation"]["confusion"]
cells = re.findall(r'<td class="n (right|wrong)" style="--share:([0-9.]+)">([0-9]+)</td>', text)
wanted = [("right" if i == j else "wrong", "%.2f" % (n / (sum(row) or 1)), str(n)) for i, row in enumerate(scores) for j, n in enumerate(row)]
assert cells == wanted and len(cells) > 4, (cells, wanted)
assert sum(float(share) > 0 for _, share, _ in cells) > 2
END
for run in table photos; do check "$run: the matrix is that of scores.json" python3 confusion.py $run; done
{
    echo a,b,class
    for i in $(seq 450); do echo "$((i * 37 % 101)),$((i * 13 % 29)),c$((i % 45))"; done
} >many.csv
expect 0 '' "$weft" init logistic --data many.csv --out many.yaml
expect 0 '' "$weft" train many.yaml --run many --quiet --set train.epochs=20 --set data.val_fraction=0.5
check "45 classes: a list instead of a matrix" bash -c '! grep -q "class=\"confusion" many/report.html'
check "of the most frequent mistakes" python3 -c '
import json, re
text, rows = open("many/report.html").read(), json.load(open("many/scores.json"))["validation"]
part = text[text.index("The most frequent mistakes"):]
listed = re.findall(r"<tr><td><div class=.name.>(.*?)</div></td><td><div class=.name.>(.*?)</div></td><td class=.n.>([0-9]+)</td></tr>", part)
names = [c["class"] for c in rows["classes"]]
wrong = sorted((-n, i, j) for i, row in enumerate(rows["confusion"]) for j, n in enumerate(row) if n and i != j)
assert len(wrong) > 20 and -wrong[0][0] > 1, wrong
assert listed == [(names[i], names[j], str(-n)) for n, i, j in wrong[:20]], (listed, wrong[:20])'
check "well-formed" python3 "$page" many

# ---- pictures ----
cat >pictures.py <<'END'
"""pictures.py RUN PREDICTIONS: the worst mistakes are those of `weft predict`. Writes the pictures to pictures/."""
import base64, json, os, re, sys
run, rows = sys.argv[1], [line.rstrip("\n").split("\t") for line in open(sys.argv[2])]
said = json.load(open(run + "/pictures.json"))
wrong = sorted((-float(p), os.path.basename(os.path.dirname(f)), c) for f, c, p in rows if os.path.basename(os.path.dirname(f)) != c)
told = [(-m["probability"], m["class"], m["predicted"]) for m in said["mistakes"]]
assert len(wrong) > 12 and len(told) == 12, (len(wrong), len(told))
assert told == sorted(told, key=lambda m: m[0]), told
for a, b in zip(told, wrong): assert abs(a[0] - b[0]) < 1e-4, (a, b)
assert {(a, b) for _, a, b in told} <= {(a, b) for _, a, b in wrong}
assert [len(c["pngs"]) for c in said["examples"]] == [3, 3, 3]
os.makedirs("pictures", exist_ok=True)
for i, m in enumerate(said["mistakes"]): open("pictures/%02d.png" % i, "wb").write(base64.b64decode(m["png"], validate=True))
for i, c in enumerate(said["examples"]):
    for j, png in enumerate(c["pngs"]): assert base64.b64decode(png, validate=True)[:4] == b"\x89PNG"
text = open(run + "/report.html").read()
assert re.findall(r"base64,([A-Za-z0-9+/=]+)", text) == [m["png"] for m in said["mistakes"]] + [p for c in said["examples"] for p in c["pngs"]]
END
expect 0 '' "$weft" train photos.yaml --run seen --quiet --set model.filters=[2] --set train.batch=8 --set train.epochs=3 \
    --set data.val_path=photos-data
check "the run has pictures" test -s seen/pictures.json
"$weft" predict seen photos-data --no-header >predictions
check "the worst mistakes" python3 pictures.py seen predictions
"$weft" predict seen pictures --no-header >again
check "a picture is its sample: the model takes it for the same" python3 -c '
import json
said = [(m["predicted"], "%.3f" % m["probability"]) for m in json.load(open("seen/pictures.json"))["mistakes"]]
again = [line.rstrip("\n").split("\t")[1:] for line in open("again")]
assert len(again) == 12 and said == [(c, "%.3f" % float(p)) for c, p in again], (said, again)'
expect 0 'pictures.json  intact' "$weft" info seen --check
# larger than a picture may be, and grey: 130 x 70 in blocks of 3
expect 0 '' "$weft" train photos.yaml --run large --quiet --set model.image=[1,130,70] --set model.filters=[2] --set train.epochs=1
check "pictures are made smaller" python3 -c '
import base64, json, struct
for c in json.load(open("large/pictures.json"))["examples"]:
    for png in c["pngs"]: assert struct.unpack(">IIBB", base64.b64decode(png)[16:26]) == (24, 44, 8, 0), png'
check "text has no pictures" test ! -e "${runs[0]}/pictures.json"
check "a table has none" test ! -e table/pictures.json
cp -r seen damaged
sed -i '1s/predicted/Predicted/' damaged/pictures.json
expect 7 'nothing to do' "$weft" resume damaged
check "a damaged file is named" grep -q '<p>pictures.json is damaged or was edited' damaged/report.html
check "and its pictures are not shown" bash -c '! grep -q "<img" damaged/report.html'
expect 3 'pictures.json  DAMAGED' "$weft" info damaged --check

# the checks find what they look for
for fault in 's/<svg /<svg onload="x" /' 's/&lt;script&gt;/<script>/' 's/<figcaption>/<figcaption><div>/' 's/M1 /M;1 /' \
    's|<h2>|<h2><img src="http://x/y.png">|' "s/default-src 'none'; //"; do
    mkdir -p broken
    sed "$fault" table/report.html >broken/report.html
    check "$fault changes the page" bash -c '! cmp -s table/report.html broken/report.html'
    check "$fault is found" bash -c '! python3 "$1" broken' "" "$page"
done

# a run under way has a report that follows it, also where it evaluates at its end only
expect 0 '' "$weft" init logistic --data hostile.csv --out live.yaml
"$weft" train live.yaml --run live --quiet --set train.epochs=100000000 --set train.eval_every=0 >live.out 2>&1 &
process=$!
for _ in $(seq 300); do
    [ -e live/report.html ] && break
    sleep 0.1
done
check "it is written meanwhile" grep -q '^<body data-written="[0-9]*">$' live/report.html
check "and says so" grep -q ': running</p>' live/report.html
check "it is whole" python3 "$page" live
kill -TERM "$process"
wait "$process"
check "a stopped run does not load itself again" grep -q '^<body>$' live/report.html

echo "$cells cells, $fail failures"
exit $((fail > 0))
