#!/usr/bin/env bash
# Tests weft doctor: in the given environment, without an OpenCL library, without a driver, and with a driver whose library
# is missing.
# shellcheck source=tests/train/command.sh
. "$(dirname "$0")/command.sh"

# doctor CODE SETTINGS... -- PATTERNS...: checks the exit code under these variables, and that each pattern matches a line.
doctor() {
    local code=$1 settings=() got
    shift
    while [ "$1" != -- ]; do
        settings+=("$1")
        shift
    done
    shift
    env "${settings[@]}" "$weft" doctor >out 2>&1
    got=$?
    cells=$((cells + 1))
    [ $got = "$code" ] || { fail=$((fail + 1)) && echo "FAIL: ${settings[*]}: exit $got, not $code" && cat out; }
    for pattern; do
        cells=$((cells + 1))
        grep -Eq -- "$pattern" out && continue
        fail=$((fail + 1))
        echo "FAIL: ${settings[*]}: no line '$pattern' in"
        cat out
    done
}

mkdir none broken library
echo libweft-there-is-no-such-driver.so >broken/gone.icd
: >library/libOpenCL.so.1 # not a library
cp library/libOpenCL.so.1 library/libOpenCL.so
cpu='^cpu .* threads?,.* GiB; three elements added in [0-9]+ ms$'

doctor 0 X=1 -- "$cpu" '^a run without --device takes cpu, which is the default$' '^interp ' '^null .*not tried out$' \
    '^OpenCL drivers in /etc/OpenCL/vendors:' "^compiled kernels: $work/kernels$" '^(all is well|the devices above work)$'
if grep -q '^opencl:0' out; then
    doctor 0 X=1 -- '^opencl:0 .*driver .* GiB \(.* GiB a buffer, [0-9]+ KiB local\), (no )?f64; three elements added in'
    doctor 0 WEFT_DEVICE=opencl -- '^a run without --device takes opencl:0, as WEFT_DEVICE says: opencl$'
    doctor 0 "OCL_ICD_VENDORS=$work/none" -- "$cpu" '^opencl +absent: the OpenCL loader finds no device: install' \
        "^OpenCL drivers in $work/none: none \\(Debian: pocl-opencl-icd" '^all is well$'
    doctor 0 "OCL_ICD_VENDORS=$work/broken" -- "$cpu" '^opencl +absent: the OpenCL loader finds no device: install' \
        "gone.icd \\(its library 'libweft-there-is-no-such-driver.so' cannot be opened: install" '^the devices above work$'
else
    doctor 0 X=1 -- '^opencl +absent: .*install'
fi
doctor 0 WEFT_MATMUL=own "LD_LIBRARY_PATH=$work/library" -- "$cpu" \
    '^opencl +absent: libOpenCL.so.1 cannot be opened: install the OpenCL loader \(Debian: ocl-icd-libopencl1\)'
doctor 4 WEFT_MATMUL=own "LD_LIBRARY_PATH=$work/library" WEFT_DEVICE=opencl -- '^  that fails: .*cannot be opened: install'
doctor 0 WEFT_KERNEL_CACHE=off -- '^compiled kernels: not kept, because WEFT_KERNEL_CACHE is off'
here=${WEFT_SOURCE_DIR:?}
"$weft" doctor --table >table
cells=$((cells + 1))
# each of the two tables is a paragraph of the page
if ! awk -v RS= 'NR == FNR { page[$0]; next } $0 in page { found++ } END { exit found != 2 }' "$here/docs/devices.md" table; then
    fail=$((fail + 1))
    echo "FAIL: docs/devices.md has other tables than 'weft doctor --table' prints:"
    cat table
fi
# The table must list the packages that `make cuda` fetches, for each CUDA version, and no others.
{
    make -s -n -C "$here" cuda
    make -s -n -C "$here" cuda CUDA=12
} | grep -Eo "nvidia-[a-z0-9-]+==" | tr -d = | sort >fetched
grep -Eo 'nvidia-(cuda-nvrtc|cublas|cudnn|nccl)[a-z0-9-]*' table | sort >named
cells=$((cells + 1))
if ! cmp -s fetched named || [ "$(wc -l <fetched)" != 8 ]; then
    fail=$((fail + 1))
    echo "FAIL: 'make cuda' fetches other packages than the table of devices names:"
    diff fetched named
fi
doctor 0 X=1 -- '^what devices need' '^  cpu +matmuls +[a-z0-9]+, ' '^  opencl +loader ' '^  cuda +driver +'
echo "doctor: cells=$cells fail=$fail"
[ $fail = 0 ]
