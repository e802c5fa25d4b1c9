#!/usr/bin/env bash
# Records kernels that trap, write out of bounds or hang, and checks the traces. Needs a GPU.
#
#   scripts/gpu-faults.sh [FOLDER]
#
# FOLDER (default .device) contains `warptrace` and `warptrace-bench`, built with GPU code. The report is
# $OUT/faults.md (default out). DEVICE=sim tests the script on the simulator.
set -uo pipefail

tool=${1:-.device}/warptrace
OUT=${OUT:-out}
DEVICE=${DEVICE:-cuda}
scratch=$(mktemp -d -p "${SCRATCH:-/dev/shm}") || exit 2
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$OUT"
trace=$scratch/trace
threads=${THREADS:-65536}
turns=${TURNS:-2000}
culprit=$((threads / 2 + 37))
warp=$((culprit / 32 % 4)) block=$((culprit / 128))

now() { date +%s%N; }

# Prints the events in the trace and the last events of the culprit's lane.
look() {
    local last
    "$tool" verify "$trace" 2>&1 | sed -n 's/^decoded *//p; s/^accounts *//p' | paste -sd ';' | sed 's/;/; /g'
    last=$("$tool" decode "$trace" --block "$block" --warp "$warp" 2> /dev/null | awk -v digit=$((32 - culprit % 32)) \
        'length($2) == 32 && substr($2, digit, 1) == "1" { n++; at[n % 3] = $NF } END { print n " events of the lane, the last: " at[(n + 1) % 3] " " at[(n + 2) % 3] " " at[n % 3] }')
    echo "$last"
}

{
    echo "# Kernels that fail or hang"
    echo
    echo "Made by \`scripts/gpu-faults.sh\`, commit ${WARPTRACE_COMMIT:-unknown}. $threads threads take $turns turns and up to three more; thread $culprit then traps, writes out of bounds, or waits for ever."
    echo "It has $((turns + culprit % 4 + 2)) events, or with the wait one more run."
    for how in trap stray; do
        [ "$how $DEVICE" = "stray sim" ] && continue
        for way in "--policy stop" "--policy stop --host-logs" "--policy stream"; do
            echo
            echo "## $how, $way"
            echo '```'
            timeout 60 "$tool-bench" record fault --how $how --threads "$threads" --turns "$turns" --culprit "$culprit" --codec predict $way --device "$DEVICE" -o "$trace" 2>&1 | cut -c1-300
            look
            echo '```'
        done
    done
    for policy in stop stream; do
        echo
        echo "## hang, --policy $policy"
        echo '```'
        "$tool-bench" record fault --how hang --threads "$threads" --turns "$turns" --culprit "$culprit" --codec predict --policy $policy --device "$DEVICE" -o "$trace" > "$scratch/out" 2>&1 &
        recorder=$!
        sleep "${HANG:-3}"
        began=$(now)
        kill -INT $recorder
        wait $recorder
        code=$?
        head -n 6 "$scratch/out"
        echo "exit code $code, $(( ($(now) - began) / 1000000 )) ms after the signal"
        look
        echo '```'
    done
    if [ "$DEVICE" = cuda ]; then
        echo
        echo "## stress at full load, interrupted, 1 GiB"
        echo '```'
        for after in 3 6; do
            "$tool-bench" record stress --walks 8388608 --rounds 64 --codec predict --policy stream --memory 1GiB --device cuda --no-check -o "$trace" > "$scratch/out" 2>&1 &
            recorder=$!
            sleep $after
            began=$(now)
            kill -INT $recorder
            wait $recorder
            echo "exit code $?, $(( ($(now) - began) / 1000000 )) ms after the signal"
            head -n 2 "$scratch/out"
            "$tool" verify "$trace" 2>&1 | tail -n 4
        done
        echo '```'
    fi
} | tee "$OUT/faults.md"
