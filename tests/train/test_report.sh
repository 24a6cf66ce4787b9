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
