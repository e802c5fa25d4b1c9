#!/usr/bin/env bash
# Runs programs of HeCBench alone and under `warptrace run`, on a machine with a GPU and nvcc.
#
#   scripts/gpu-hecbench.sh HECBENCH [FOLDER]
#
# HECBENCH is a checkout of https://github.com/zjin-lcf/HeCBench, or the part of it that is to be run. FOLDER (default
# .device) holds `warptrace`, built with GPU code, and `libwarptrace_shim.so`. Takes the CUDA programs in alphabetical
# order, as their Makefiles build and run them, until so many have built and run alone. The table goes to
# $OUT/hecbench.md (default out), what each program said to $OUT/hecbench.log.
#
# Variables:
#   OUT      folder for the results
#   COUNT    how many programs (default 10)
#   SKIP     programs to leave out, separated by blanks
#   POINTS   where kernels are traced, several separated by blanks (default "blocks loops")
#   ARCH     architecture for nvcc (default sm_90)
#   LIMIT    seconds for one run (default 25)
set -uo pipefail

[ $# -ge 1 ] || { sed -n '2,19p' "$0"; exit 2; }
bench=$(realpath "$1")
folder=$(realpath "${2:-.device}")
OUT=${OUT:-out}
COUNT=${COUNT:-10}
POINTS=${POINTS:-blocks loops}
ARCH=${ARCH:-sm_90}
LIMIT=${LIMIT:-25}
tool=$folder/warptrace
[ -d /usr/local/cuda/bin ] && PATH=$PATH:/usr/local/cuda/bin
mkdir -p "$OUT"
OUT=$(realpath "$OUT")
scratch=$(mktemp -d -p "${SCRATCH:-/dev/shm}") || exit 2
trap 'rm -rf "$scratch"' EXIT
log=$OUT/hecbench.log
: > "$log"
export CUDA_CACHE_PATH=${CUDA_CACHE_PATH:-$scratch/cache}

# What a program says that is no time.
answer() {
    grep -viE 'time|bandwidth|throughput|[kmgt]?flop|[mgt]i?b/s|seconds|\((us|ms|s)\)|speed' "$1"
}

# Its own figures of time, the first ones: words and a number.
times() {
    grep -iE 'time' "$1" | grep -oE '[0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)?' | awk 'NR <= 12' | tr '\n' ' '
}

# The median of the ratios of the figures that both have.
ratio() {
    awk -v a="$1" -v b="$2" 'BEGIN {
        n = split(a, x, " "); m = split(b, y, " ")
        if (n != m) { print "-"; exit }
        for (i = 1; i <= n; i++) if (x[i] > 0 && x[i] != y[i]) r[++k] = y[i] / x[i]
        if (!k) { print "-"; exit }
        for (i = 2; i <= k; i++) for (j = i; j > 1 && r[j] < r[j - 1]; j--) { t = r[j]; r[j] = r[j - 1]; r[j - 1] = t }
        printf "%.2f", r[int((k + 1) / 2)]
    }'
}

# Arguments with fewer repetitions than the Makefile gives: what is traced of each takes room.
fewer() {
    case $1 in
        accuracy) echo "8192 10000 10 5" ;;
        ace) echo 2 ;;
        adam) echo "10000 200 20" ;;
        adamw) echo "1000000 20" ;;
        addBiasResidualLayerNorm) echo 1 ;;
        adjacent) echo "10000000 5" ;;
        adv) echo "7 15 8000 5" ;;
        affine) echo "data/CT-MONO2-16-brain.raw result.raw 100" ;;
        aidw) echo "100 1 5" ;;
        all-pairs-distance) echo 2 ;;
        *) return 1 ;;
    esac
}

# What is asked of the tracer where a program repeats its kernels thousands of times.
options() {
    case $1 in
        addBiasQKV) echo "--launches 50" ;;
    esac
}

now() {
    date +%s%N
}

{
    echo "# HeCBench under \`warptrace run\`"
    echo
    echo "Made by \`scripts/gpu-hecbench.sh\`, commit ${WARPTRACE_COMMIT:-unknown}, HeCBench ${HECBENCH_COMMIT:-unknown}. $(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2> /dev/null); $(nvcc --version 2> /dev/null | sed -n 's/.*release \([^,]*\),.*/nvcc \1/p')."
    echo "Programs are built by their Makefiles with \`ARCH=$ARCH EXTRA_CFLAGS=-lineinfo\`, and run as these say, most with fewer repetitions. *Same*: the same exit code and output, lines about times aside. *Own figure*: the first time that the program"
    echo "tells of itself, alone; and the median ratio of all that it tells, traced to alone: most are host times around many launches, and hold what the tracer does between these. *Kernel*: device time of a recorded launch,"
    echo "ms in the mean. Of addBiasQKV the first 50 launches of each kernel are recorded (\`--launches 50\`). *Whole*: wall time in seconds. A run may take $LIMIT s."
    echo
    echo "| program | points | same | verified | launches | events | lost | own figure, alone | ratio | kernel, traced | whole alone | traced | not traced |"
    echo "| --- | --- | --- | --- | --: | --: | --: | --- | --: | --: | --: | --: | --- |"
    done=0
    for source in "$bench"/src/*-cuda; do
        [ "$done" -ge "$COUNT" ] && break
        name=$(basename "$source" -cuda)
        [[ " ${SKIP:-} " == *" $name "* ]] && continue
        echo "== $name" >> "$log"
        if ! timeout 120 make -C "$source" ARCH="$ARCH" EXTRA_CFLAGS=-lineinfo >> "$log" 2>&1; then
            echo "| $name | does not build | | | | | | | | | | | |"
            continue
        fi
        command=$(make -s -C "$source" -n run ARCH="$ARCH" EXTRA_CFLAGS=-lineinfo 2> /dev/null | sed -n 's/^ *\(\.\/.*\)/\1/p' | head -1)
        fewer "$name" > "$scratch/fewer" && command="${command%% *} $(cat "$scratch/fewer")"
        cd "$source" || exit 2
        begun=$(now)
        timeout "$LIMIT" $command > "$scratch/alone.out" 2>&1
        code=$?
        alone=$((($(now) - begun) / 1000000))
        { echo "$command"; cat "$scratch/alone.out"; echo "exit code $code"; } >> "$log"
        if [ "$code" -ne 0 ]; then
            echo "| $name | does not run alone: exit code $code | | | | | | | | | | | |"
            continue
        fi
        done=$((done + 1))
        for points in $POINTS; do
            begun=$(now)
            timeout "$((2 * LIMIT))" "$tool" run -o "$scratch/t.wtrc" --points "$points" $(options "$name") -- $command > "$scratch/traced.out" 2> "$scratch/traced.err"
            traced_code=$?
            traced=$((($(now) - begun) / 1000000))
            timeout "$LIMIT" "$tool" verify "$scratch/t.wtrc" > "$scratch/verify" 2>&1
            verified=$?
            { echo "-- $name, points $points"; cat "$scratch/traced.out" "$scratch/traced.err" "$scratch/verify"; echo "exit code $traced_code"; } >> "$log"
            grep -v '^warptrace: ' "$scratch/traced.err" >> "$scratch/traced.out"
            same=no
            [ "$traced_code" = "$code" ] && cmp -s <(answer "$scratch/alone.out") <(answer "$scratch/traced.out") && same=yes
            field() { sed -n "s/.*$1: \([0-9]*\).*/\1/p" "$scratch/verify" | head -1; }
            untraced=$(sed -n 's/^warptrace: not traced: //p' "$scratch/traced.err" | head -2 | cut -c1-100 | paste -sd ';')
            echo "| $name | $points | $same | $([ "$verified" = 0 ] && echo yes || echo no) | $(field 'launches') | $(sed -n 's/^decoded *events: \([0-9]*\).*/\1/p' "$scratch/verify") | $(field 'events lost') | $(grep -iE 'time' "$scratch/alone.out" | head -1 | grep -oE '[0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)? *\(?[a-zµ]*\)?' | tail -1 | tr -d '()') | $(ratio "$(times "$scratch/alone.out")" "$(times "$scratch/traced.out")") | $(sed -n 's/.*events of \([0-9]*\) launch.*kernels took \([0-9.]*\) ms.*/\1 \2/p' "$scratch/traced.err" | awk '$1 > 0 { printf "%.4f", $2 / $1; exit }') | $(awk -v t="$alone" 'BEGIN { printf "%.2f", t / 1000 }') | $(awk -v t="$traced" 'BEGIN { printf "%.2f", t / 1000 }') | ${untraced:-} |"
            rm -f "$scratch/t.wtrc"
        done
    done
} | tee "$OUT/hecbench.md"
