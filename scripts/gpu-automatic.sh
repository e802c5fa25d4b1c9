#!/usr/bin/env bash
# Measures automatic trace points beside those placed by hand, on a machine with a GPU, and counts what the simulator is
# compared with.
#
#   scripts/gpu-automatic.sh [FOLDER]
#
# FOLDER (default .device) holds `warptrace-bench` and `warptrace`, built with GPU code; nothing is built here. $OUT (default out) gets
# automatic.md: times and events of both (`points`), and `warptrace verify` of a recording of each program with automatic trace
# points beside raw; and, in $OUT/fidelity, what hardware counters see (`fidelity`), if Nsight Compute is there. DEVICE=sim takes small
# inputs, to try the script. LIMIT: seconds for each part. INPUTS: folder with real inputs.
set -uo pipefail

folder=${1:-.device}
OUT=${OUT:-out}
DEVICE=${DEVICE:-cuda}
limit=${LIMIT:-240}
scratch=$(mktemp -d -p "${SCRATCH:-/dev/shm}") || exit 2
trap 'rm -rf "$scratch"' EXIT
tool=$folder/warptrace
bench=$folder/warptrace-bench
mkdir -p "$OUT"
page=$OUT/automatic.md
code=0
if [ "$DEVICE" = sim ]; then
    quick=(--quick --runs 1)
    picture="--width 64 --depth 64" bodies="--bodies 300" walks="--walks 512 --rounds 8" nodes="--graph road:500" points="--points 100" rows="--size 64"
else
    quick=(--runs "${RUNS:-5}")
    picture="--width 1024 --depth 512" bodies="--bodies 10000" walks="--walks 131072 --rounds 64" nodes="--graph amazon:100000" points="--points 20000" rows="--size 512"
fi
[ -n "${INPUTS:-}" ] && quick+=(--inputs "$INPUTS")

"$bench" points --device "$DEVICE" "${quick[@]}" --scratch "$scratch" --out "$scratch" --time-limit "$limit" || code=1
if [ -f "$scratch/points.md" ]; then
    cp "$scratch/points.md" "$page"
else
    echo "# Automatic trace points: nothing was measured" > "$page"
fi

# row NAME ARGUMENTS...: a program recorded beside raw, and verified.
row() {
    local name=$1 events result
    shift
    if ! timeout 200 "$bench" record "$@" --automatic --codec predict --dual --device "$DEVICE" --memory 4GiB -o "$scratch/trace" > "$scratch/out" 2> "$scratch/error"; then
        code=1
    fi
    events=$(awk '$1 == "events" { print $2 }' "$scratch/out")
    result=$(sed -n 's/^result *//p' "$scratch/out")
    grep -q '^error' "$scratch/error" && result=$(grep -m 1 '^error' "$scratch/error")
    echo "| $name | $events | $result | $(timeout 200 "$tool" verify "$scratch/trace" 2>&1 | sed -n 's/^result *//p') |" >> "$page"
    tail -n 1 "$page"
}
{
    echo
    echo "## Recorded beside raw"
    echo
    echo "| program | events | the program's own check | \`verify\` |"
    echo "| --- | --: | --- | --- |"
} >> "$page"
row fractal fractal $picture
row nbody nbody $bodies
row mis mis $nodes
row mst mst $nodes
row dmr dmr $points
row matmul matmul $rows
row stress stress $walks

# The counters of all seven programs: what `masks` compares the simulator with.
if [ "$DEVICE" != sim ] && command -v ncu > /dev/null; then
    "$bench" fidelity --device "$DEVICE" --runs 2 --scratch "$scratch" --out "$OUT/fidelity" --time-limit "$limit" || code=1
else
    printf '\n%s\n' "Hardware counters: left out, there is no Nsight Compute here, or no GPU." >> "$page"
fi
cat "$page"
exit $code
