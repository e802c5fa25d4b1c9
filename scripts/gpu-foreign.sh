#!/usr/bin/env bash
# Runs CUDA programs of all kinds with and without `warptrace run`. Needs a GPU and nvcc.
#
#   scripts/gpu-foreign.sh [FOLDER]
#
# FOLDER (default .device) contains `warptrace`, built with GPU code, and `libwarptrace_shim.so`. The programs
# are examples/cuda and workloads/baseline. PROGRAMS adds programs, one `NAME|COMPILE COMMAND|RUN COMMAND` per
# line. Rust and a network are not needed. The table is $OUT/foreign.md (default out); $OUT/foreign.log has
# the output of the programs.
#
# Variables:
#   OUT      folder for the results
#   OPTIONS  lists of options of `warptrace run`, separated by semicolons (default
#            "--points blocks;--points loops")
#   ROUNDS   runs of each program with each list, alternating; the table has medians (default 1)
#   ONLY     programs to run, separated by blanks (default all)
#   ARCH     architecture for nvcc (default sm_90)
#   LIMIT    time limit of one program in seconds (default 60)
set -uo pipefail

folder=$(realpath "${1:-.device}")
OUT=${OUT:-out}
IFS=";" read -ra OPTIONS <<< "${OPTIONS:---points blocks;--points loops}"
ROUNDS=${ROUNDS:-1}
ARCH=${ARCH:-sm_90}
LIMIT=${LIMIT:-60}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
tool=$folder/warptrace
[ -d /usr/local/cuda/bin ] && PATH=$PATH:/usr/local/cuda/bin
mkdir -p "$OUT"
OUT=$(realpath "$OUT")
scratch=$(mktemp -d -p "${SCRATCH:-/dev/shm}") || exit 2
trap 'rm -rf "$scratch"' EXIT
log=$OUT/foreign.log
: > "$log"
export CUDA_CACHE_PATH=${CUDA_CACHE_PATH:-$scratch/cache}

examples="launches spmv bfs reduction cooperative constant_texture dynamic_shared calls printing trap graphs streams waiting named many"
baselines="fractal nbody matmul"

wanted() {
    [ -z "${ONLY:-}" ] || [[ " $ONLY " == *" $1 "* ]]
}

# Prints the kernel time that the program reports, in milliseconds.
kernel_ms() {
    case $1 in
        fractal | nbody | matmul) awk -F, -v name="$1" '$1 == name { print $(NF - (name == "fractal" ? 2 : 1)) }' "$2" ;;
        *) awk '$1 == "kernel_ms" { print $2 }' "$3" ;;
    esac
}

# Prints the output of a program without times.
answer() {
    case $1 in
        fractal) awk -F, '{ $6 = $7 = ""; print }' "$2" ;;
        nbody | matmul) awk -F, '{ $(NF - 1) = $NF = ""; print }' "$2" ;;
        *) cat "$2" ;;
    esac
}

ratio() {
    awk -v traced="$1" -v alone="$2" 'BEGIN { if (traced > 0 && alone > 0) printf "%.2f", traced / alone; else printf "-" }'
}

# Prints the median of the numbers in an optional file and on standard input.
median() {
    cat "$1" - 2> /dev/null | grep . | sort -g | awk '{ of[NR] = $1 } END { if (NR) print NR % 2 ? of[(NR + 1) / 2] : (of[NR / 2] + of[NR / 2 + 1]) / 2 }'
}

now() {
    date +%s%N
}

# row NAME COMMAND...: runs a program untraced and traced, and prints its table rows.
row() {
    local name=$1 options code begun alone_wall traced_wall same verified events launches alone traced inside round
    shift
    {
        echo "== $name: $*"
        # The first run fills the compilation cache of the driver.
        timeout "$LIMIT" "$@" > /dev/null 2>&1
        begun=$(now)
        timeout "$LIMIT" "$@" > "$scratch/alone.out" 2> "$scratch/alone.err"
        code=$?
        alone_wall=$((($(now) - begun) / 1000000))
        cat "$scratch/alone.out" "$scratch/alone.err"
        echo "exit code $code"
    } >> "$log"
    alone=$(kernel_ms "$name" "$scratch/alone.out" "$scratch/alone.err")
    rm -f "$scratch"/kernels.*
    # Runs alternate, so that changes of the GPU's state affect all of them. The run for the table follows.
    for ((round = 1; round < ROUNDS; round++)); do
        timeout "$LIMIT" "$@" > "$scratch/a" 2> "$scratch/b"
        kernel_ms "$name" "$scratch/a" "$scratch/b" >> "$scratch/kernels.alone"
        for options in "${OPTIONS[@]}"; do
            # shellcheck disable=SC2086 # A list of options.
            timeout "$LIMIT" "$tool" run -o "$scratch/t.wtrc" $options -- "$@" > "$scratch/a" 2> "$scratch/b"
            kernel_ms "$name" "$scratch/a" "$scratch/b" >> "$scratch/kernels.${options// /}"
        done
    done
    alone=$(echo "$alone" | median "$scratch/kernels.alone")
    for options in "${OPTIONS[@]}"; do
        {
            echo "-- $name, $options"
            # shellcheck disable=SC2086
            timeout "$LIMIT" "$tool" run -o "$scratch/t.wtrc" $options -- "$@" > /dev/null 2>&1
            rm -f "$scratch/t.wtrc"
            begun=$(now)
            # shellcheck disable=SC2086
            timeout "$LIMIT" "$tool" run -o "$scratch/t.wtrc" $options -- "$@" > "$scratch/traced.out" 2> "$scratch/traced.err"
            traced_code=$?
            traced_wall=$((($(now) - begun) / 1000000))
            cat "$scratch/traced.out" "$scratch/traced.err"
            echo "exit code $traced_code"
            timeout "$LIMIT" "$tool" verify "$scratch/t.wtrc" > "$scratch/verify" 2>&1
            echo $? > "$scratch/verified"
            cat "$scratch/verify"
            timeout "$LIMIT" "$tool" top "$scratch/t.wtrc" 2>&1 | head -12
        } >> "$log"
        same=no
        answer "$name" "$scratch/alone.out" > "$scratch/a"
        answer "$name" "$scratch/traced.out" > "$scratch/b"
        [ "$code" = "$traced_code" ] && cmp -s "$scratch/a" "$scratch/b" && same=yes
        verified=$([ "$(cat "$scratch/verified")" = 0 ] && echo yes || echo no)
        events=$(sed -n 's/^decoded *events: \([0-9]*\).*/\1/p' "$scratch/verify")
        launches=$(sed -n 's/.*launches: \([0-9]*\).*/\1/p' "$scratch/verify" | head -1)
        traced=$(kernel_ms "$name" "$scratch/traced.out" "$scratch/traced.err" | median "$scratch/kernels.${options// /}")
        echo "| $name | $options | $same | $verified | ${launches:--} | ${events:--} | ${alone:--} | ${traced:--} | $(ratio "${traced:-0}" "${alone:-0}") | $alone_wall | $traced_wall |"
    done
}

{
    echo "# Programs of others under \`warptrace run\`"
    echo
    echo "Made by \`scripts/gpu-foreign.sh\`, commit ${WARPTRACE_COMMIT:-unknown}. $(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2> /dev/null); $(nvcc --version 2> /dev/null | sed -n 's/.*release \([^,]*\),.*/nvcc \1/p')."
    echo "Programs are compiled by \`nvcc -O3 -lineinfo -arch=$ARCH\` and run unchanged: alone, and traced. *Same*: the same output and exit code. *Kernel* is the program's own figure, the median"
    echo "between device events around its launches, of $ROUNDS runs in turns; traced this includes what the tracer does between launches. *Whole* is the program's wall time, milliseconds; one run each, after one that warms up."
    echo
    echo "| program | options | same | verified | launches | events | kernel alone, ms | traced, ms | ratio | whole alone, ms | traced, ms |"
    echo "| --- | --- | --- | --- | --: | --: | --: | --: | --: | --: | --: |"
    for name in $baselines $examples; do
        wanted "$name" || continue
        source=$root/examples/cuda/$name.cu flags=
        if [ -f "$root/workloads/baseline/$name.cu" ]; then
            source=$root/workloads/baseline/$name.cu
            [ "$name" = fractal ] && flags=--fmad=false
        fi
        if nvcc -O3 -lineinfo -arch="$ARCH" $flags -o "$scratch/$name" "$source" >> "$log" 2>&1; then
            row "$name" "$scratch/$name"
        else
            echo "| $name | nvcc failed | | | | | | | | | |"
        fi
    done
    if wanted cupy && python3 -c 'import cupy' 2> /dev/null; then
        row cupy python3 "$root/examples/cuda/cupy_program.py"
    fi
    while IFS='|' read -r name compile command; do
        [ -n "$name" ] && wanted "$name" || continue
        if (cd "$scratch" && eval "$compile") >> "$log" 2>&1; then
            row "$name" bash -c "cd '$scratch' && $command"
        else
            echo "| $name | did not compile | | | | | | | | | |"
        fi
    done <<< "${PROGRAMS:-}"
} | tee "$OUT/foreign.md"
