#!/usr/bin/env bash
# What a library prints while the command looks for devices: hidden, shown with WEFT_DEBUG, and not reached without need.
# shellcheck source=tests/train/command.sh
. "$(dirname "$0")/command.sh"

command -v cc >/dev/null || { echo "skipped: needs cc"; exit 77; }
cat >loud.c <<'END'
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
__attribute__((constructor)) static void load(void) {
    if (write(STDERR_FILENO, "a loud library\n", 15) < 0) return;
    fputs("a louder one\n", stderr);
    close(open(getenv("LOOKED"), O_CREAT | O_WRONLY, 0600));
    if (getenv("ABORTS")) abort();
}
END
cc -shared -fPIC -o libloud.so loud.c || exit 1
export WEFT_WGPU_LIB=$work/libloud.so LOOKED=$work/looked

for command in devices doctor; do
    expect 0 '' "$weft" $command
    check "$command says nothing else: $(cat err)" test ! -s err
    check "$command has looked" rm looked
done
expect 0 'a loud library' env WEFT_DEBUG=1 "$weft" devices
check "all of it is shown" grep -q 'a louder one' err
rm looked
expect 4 'WEFT_DEBUG=1 shows what it printed' bash -c 'ABORTS=1 "$0" devices; test $? = 134 && exit 4' "$weft"
rm looked

# messages after a search are shown
expect 4 'device webgpu: ' "$weft" train mlp --data table.csv --device webgpu --run a
one_line
rm looked

# no search
expect 4 'device "nothing" is unknown: choose one of cpu, cuda, hip, opencl, webgpu, interp, null, gpu, auto' \
    "$weft" train mlp --data table.csv --device nothing --run b
one_line
expect 0 '' "$weft" train mlp --data table.csv --device cpu --run c --quiet --set train.epochs=1
expect 0 '' "$weft" info c
check "no command has looked" test ! -e looked

echo "test_quiet: cells=$cells fail=$fail"
[ "$fail" = 0 ]
