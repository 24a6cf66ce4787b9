#!/bin/sh
# with_isa.sh ISA TEST ARGUMENTS...: runs a test with at most this instruction set (WEFT_CPU_ISA). It is skipped if the processor
# has no better one, since the test itself then runs with it, or not even this one.
set -eu
isa=$1
shift
case $isa in baseline) better=avx2 ;; avx2) better=avx512f ;; esac
if ! grep -qsw "$better" /proc/cpuinfo; then
    echo "skipped: $isa: this processor has no $better"
    exit 77
fi
WEFT_CPU_ISA=$isa exec "$@"
