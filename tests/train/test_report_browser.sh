#!/usr/bin/env bash
# Looks at report.html in Chromium, if it is installed: at three widths, light and dark. report_page.js lists what is
# checked there.
# shellcheck source=tests/train/command.sh
. "${WEFT_SOURCE_DIR:-.}/tests/train/command.sh"
tests=$(readlink -f "${WEFT_SOURCE_DIR:-.}")/tests/train
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) ||
    { echo "skipped: Chromium is not installed"; exit 77; }
command -v python3 >/dev/null || { echo "skipped: no python3"; exit 77; }
# shellcheck source=tests/train/report_runs.sh
. "${WEFT_SOURCE_DIR:-.}/tests/train/report_runs.sh"

look() { python3 "$tests/report_page.py" --browser "$browser" "$@"; }
for run in "${runs[@]}"; do check "$run" look "$run"; done

# tiny and huge numbers, and tiny differences
cp -r table extreme
python3 - <<'END'
import json
lines = [json.loads(line) for line in open("extreme/metrics.jsonl")]
with open("extreme/metrics.jsonl", "w") as out:
    for i, line in enumerate(lines):
        line.update(lr=(1 - i / 300) * 1e-9, grad_norm=(1 + i % 7) * 1e7, samples_per_second=1e6 + i % 5 * 1e-3, loss=1e3 * (i + 1))
        if "val_accuracy" in line:
            line.update(val_accuracy=1 - 1e-6 * (i % 3), val_f1=-1e-5 * i, val_auc=0.0)
        print(json.dumps(line), file=out)
END
expect 7 'nothing to do' "$weft" resume extreme
check "the numbers are there" grep -q '1e-09' extreme/report.html
check "extreme numbers" look --quick extreme

# the checks find what they look for: a wide card, a cut label, grey text on grey, and an error of the script
cp -r table broken
for fault in 's/^\.card {/.card { min-width: 500px;/' 's/4\.6rem; outline/.5rem; outline/' 's/--dim: #626973/--dim: #b0b0b0/' \
    's/show(null);/show(null); missing();/'; do
    sed "$fault" table/report.html >broken/report.html
    check "$fault changes the page" bash -c '! cmp -s table/report.html broken/report.html'
    look --quick broken >found 2>&1 && { fail=$((fail + 1)); echo "FAIL: $fault is not found"; }
    cells=$((cells + 1))
done

echo "$cells cells, $fail failures"
exit $((fail > 0))
