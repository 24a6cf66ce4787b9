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

# the checks find what they look for: a wide card, a cut label, grey text on grey, and an error of the script
cp -r table broken
for fault in 's/^\.card {/.card { min-width: 500px;/' 's/4\.4rem; outline/.5rem; outline/' 's/--dim: #626973/--dim: #b0b0b0/' \
    's/show(null);/show(null); missing();/'; do
    sed "$fault" table/report.html >broken/report.html
    check "$fault changes the page" bash -c '! cmp -s table/report.html broken/report.html'
    look --quick broken >found 2>&1 && { fail=$((fail + 1)); echo "FAIL: $fault is not found"; }
    cells=$((cells + 1))
done

echo "$cells cells, $fail failures"
exit $((fail > 0))
