#!/usr/bin/env bash
# Five simulated systems: bare, with openmpi-bin alone, with Mesa's Vulkan driver but no XDG_RUNTIME_DIR, without PoCL, and with
# AVX2 at most. What differs when Weft is built is configured, and built on the bare one; then fast tests run on each.
# shellcheck source=tests/consumer/roots.sh
. "$(dirname "$0")/roots.sh"
weft=$(readlink -f "${WEFT_COMMAND:?names the weft command}")
ldd "$weft" | grep -q 'lib[a-z]*san\.so' && echo "skipped: sanitizers watch" && exit 77
failed=0

# run ROOT COMMAND...: notes a failure, and prints the end of what the command says.
run() {
    local root=$1 code
    shift
    "$@" >"$work/log" 2>&1
    code=$?
    [ $code = 0 ] && return
    failed=1
    echo "FAIL: $root: $*: exit $code"
    tail -n 30 "$work/log"
}

# fast ROOT WEFT NAME=VALUE...: runs fast tests with a command, in this environment.
fast() {
    local root=$1 command=$2 test
    shift 2
    run "$root" env "$@" "$command" devices
    run "$root" env "$@" "$command" doctor
    for test in test_cli test_copies; do
        run "$root" env "$@" WEFT_COMMAND="$command" WEFT_SOURCE_DIR="$tree" bash "$tree/tests/train/$test.sh"
    done
    echo "$root: done"
}

# bare_path: makes a folder with links to all programs in PATH but those of optional components.
bare_path() {
    local folder name names
    mkdir "$work/programs"
    for folder in $(tr : ' ' <<<"$PATH"); do
        names=()
        for name in "$folder"/*; do
            case ${name##*/} in
            mpi* | ompi* | orte* | prte* | clang* | nvcc* | hipcc* | nvidia-* | qemu-* | valgrind) ;;
            *) names+=("$name") ;;
            esac
        done
        ln -s "${names[@]}" "$work/programs/" 2>/dev/null # the first of a name stays
    done
}

pc_folder plain
bare_path
options=(-DWEFT_TESTS=OFF -DCMAKE_DISABLE_FIND_PACKAGE_GIF=ON)
PATH=$work/programs run bare configure bare plain programs "${options[@]}" -DMPI_C_COMPILER=
PATH=$work/programs run bare cmake --build "$work/bare" -j "${WEFT_JOBS:-$(nproc)}" --target weft
[ -x "$work/bare/weft" ] && fast bare "$work/bare/weft"

# openmpi-bin alone must lead to the same build
openmpi_bin ompi-bin
pc_only plain ompi-c
PATH=$work/programs run openmpi-bin configure ompi plain ompi-bin "${options[@]}" -DMPI_C_COMPILER="$work/ompi-bin/mpicc"
run openmpi-bin diff <(sed "s|$work/bare|B|g" "$work/bare/compile_commands.json") <(sed "s|$work/ompi|B|g" "$work/ompi/compile_commands.json")
echo "openmpi-bin: done"

if compgen -G '/usr/share/vulkan/icd.d/lvp*' >/dev/null; then
    fast mesa "$weft" -u XDG_RUNTIME_DIR
else
    echo "mesa: skipped, mesa-vulkan-drivers is not installed"
fi
mkdir "$work/vendors"
fast "no PoCL" "$weft" OCL_ICD_VENDORS="$work/vendors"
run "no PoCL" bash -c "! OCL_ICD_VENDORS=$work/vendors '$weft' devices | grep -q '^opencl:'"
fast AVX2 "$weft" WEFT_CPU_ISA=avx2
run AVX2 bash -c "! WEFT_CPU_ISA=avx2 '$weft' devices | grep -q avx512"
exit $failed
