#!/bin/bash
# Plants faults into the PTX of Weft's kernels, which the interpreter must report: each line below is an edit (A=>B,
# tests/cuda/ptx.c), words of the report, and a test that runs such kernels. Without the edit the test passes.
# Skipped without NVRTC.
set -u
build=${WEFT_BINARY_DIR:?}
if [ ! -e "$build/fake-ptx/libnvrtc.so.13" ] || [ ! -x "$build/test_ops" ] || [ ! -x "$build/test_gpu_tensor" ]; then
    echo "skipped: NVRTC is not installed, or tests are not built"
    exit 77
fi
export LD_LIBRARY_PATH=$build/fake-ptx:$build/fake-cuda:${LD_LIBRARY_PATH:-} WEFT_TEST_GPU=cuda WEFT_KERNEL_CACHE=off
few='{ .reg .pred %few; .reg .b32 %it; mov.u32 %it, %tid.x; setp.lt.u32 %few, %it, 7; @%few'
cells=0 failed=0

# plant EDIT WORDS TEST...
plant() {
    local edit=$1 words=$2 log
    shift 2
    cells=$((cells + 1))
    log=$(FAKE_PTX_EDIT=$edit timeout 100 "$build/$1" "${@:2}" 2>&1)
    if [ $? = 0 ] || ! grep -q "fake cuda: a kernel: .*$words" <<<"$log"; then
        echo "FAIL $* with '$edit' does not report '$words'"
        failed=$((failed + 1))
    fi
}

plant 'bar.sync=>// bar.sync' 'of shared memory is' test_ops cuda --op sum
plant 'bar.sync=>// bar.sync' 'of shared memory is' test_ops cuda --op recurrent
plant $'bar.sync \t0;=>'"$few exit; } bar.sync 0;" 'have returned before it' test_ops cuda --op sum
plant 'bar.warp.sync=>// bar.warp.sync' 'race: byte' test_ops cuda --op matmul
plant 'shfl.sync.down.b32=>@%p1 shfl.sync.down.b32' 'predicate\|lane\|divergent' test_ops cuda --op softmax
plant ', 4;=>, 2;' 'misaligned: 4 bytes' test_ops cuda --op softmax
plant ', 4;=>, 4000;' 'outside of' test_ops cuda --op softmax
plant 'mov.f32=>// mov.f32' 'never written' test_ops cuda --op softmax
plant '%ctaid.x;=>%nctaid.y;' 'race: the byte at' test_ops cuda --op sum
plant 'cp.async.wait_group 1=>cp.async.wait_group 2' 'while cp.async' test_gpu_tensor
echo "ptx faults: cells=$cells fail=$failed"
[ $failed = 0 ]
