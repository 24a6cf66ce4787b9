#!/usr/bin/env bash
# tools/check_layers.py on a tree of three folders: it passes, and planted faults are found with their file. The faults that
# only symbols show have no include.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
for program in python3 nm cc; do
    command -v $program >/dev/null || { echo "skipped: $program is not installed"; exit 77; }
done
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree"/{tools,build,include/weft,src/{base,low,high}}
cp "$root"/tools/{check_layers,c_text}.py "$tree/tools/"
cd "$tree"

# exceptions LIST: what the tool excepts
exceptions() { sed -i "/^EXCEPTIONS = \[/,/^\]/c EXCEPTIONS = [\\n$1\\n]" tools/check_layers.py; }
# page LINE...: the list of the page
page() {
    printf '# A page\n\n## Which folder uses which\nWords.\n\n' >ARCHITECTURE.md
    printf '    %s\n' "$@" >>ARCHITECTURE.md
    printf '\n## Next\n    not a folder\n' >>ARCHITECTURE.md
}
# compile: all files of src
compile() {
    local source object list=
    rm -f build/*.o
    for source in src/*/*.c; do
        object=$(echo "${source%.c}.o" | tr / -)
        cc -Isrc -c "$source" -o "build/$object"
        list="$list${list:+,}{\"directory\": \"$tree/build\", \"file\": \"$tree/$source\", \"command\": \"cc -o $object -c x\"}"
    done
    echo "[$list]" >build/compile_commands.json
}
failed=0
# finds NAME TEXT: the check fails and prints the text
finds() {
    if python3 tools/check_layers.py build >said || ! grep -qF "$2" said; then
        echo "FAILED: $1: not found: $2"
        cat said
        failed=1
    fi
}
passes() {
    python3 tools/check_layers.py build >said || { echo "FAILED: $1"; cat said; failed=1; }
}

exceptions ''
page base low 'high low'
echo 'int weft__ground(void);' >src/base/base.h
echo 'int weft__ground(void) { return 1; }' >src/base/base.c
printf '#include "base/base.h"\nint weft_low(void); int weft_low(void) { return weft__ground(); }\n' >src/low/low.c
echo 'typedef int weft_high_type;' >src/high/high.h
printf '#include "high/high.h"\nint weft_low(void); weft_high_type weft_high(void); int weft_high(void) { return weft_low(); }\n' >src/high/high.c
compile
passes "a tree in order"

page base low high
finds "a use that the list does not name" "src/high/high.c: high may not use low (weft_low)"
page base low
finds "a folder that is not in the list" "src/high/high.c: its folder is not in the list"
page base 'high low' low
finds "a list that is not in order" "high may use only folders above it in the list, not low"
page base 'low base' 'high low'
passes "base may be named"
page base low mid 'high low mid'
finds "an entry that is not needed" "high uses nothing of mid"

page base low 'high low'
echo 'int weft_high(void); int weft_up(void); int weft_up(void) { return weft_high(); }' >src/low/up.c
compile
finds "a call upward without an include" "src/low/up.c: low may not use high (weft_high)"
exceptions '("low/up.c", "hi*", "a reason"),'
passes "an exception"
rm src/low/up.c
compile
finds "an exception that is not needed" "the exception of low/up.c for hi* is not needed"
exceptions ''

echo '#include "high/high.h"' >src/low/types.h
finds "types of a higher folder" 'src/low/types.h: low may not use high ("high/high.h")'
exceptions '("low/", "high/high.h", "a reason"),'
passes "an exception of a header"
echo 'int weft_high(void); int weft_up(void); int weft_up(void) { return weft_high(); }' >src/low/up.c
compile
finds "a symbol besides that header" "src/low/up.c: low may not use high (weft_high)"
exceptions ''
rm src/low/types.h src/low/up.c
compile
printf 'extern int weft__number; int weft__read(void); int weft__read(void) { return weft__number; }\n' >src/base/reads.c
echo 'int weft__number = 3;' >src/low/number.c
compile
finds "a variable of a higher folder" "src/base/reads.c: base may not use low (weft__number)"
rm src/base/reads.c src/low/number.c build/src-low-low.o
finds "an object that is missing" "src/low/low.c: not compiled in build: build it first"
exit $failed
