#!/usr/bin/env bash
# Measures streamed recordings, windows and interruptions. Needs a GPU.
#
#   scripts/gpu-streamed.sh [FOLDER]
#
# FOLDER (default .device) contains `warptrace` and `warptrace-bench`, built with GPU code. Traces are written
# to SCRATCH (default /dev/shm, to exclude the disk), the table to $OUT/streamed.md (default out). DEVICE=sim
# tests the script with small inputs.
#
# Untraced runs are the same program with an empty window. gpu-memory.py measures device memory.
set -uo pipefail

folder=${1:-.device}
OUT=${OUT:-out}
DEVICE=${DEVICE:-cuda}
scratch=$(mktemp -d -p "${SCRATCH:-/dev/shm}") || exit 2
trap 'rm -rf "$scratch"; kill $(jobs -p) 2> /dev/null' EXIT
tool=$folder/warptrace
mkdir -p "$OUT"
table=$OUT/streamed.md
limit=${LIMIT:-200}
if [ "$DEVICE" = sim ]; then
    few=512 some=512 many=1024 rounds=8 picture="--width 64 --depth 64" bodies="--bodies 300 --steps 1"
    points=100 sizes="16MiB 64MiB" least=8MiB
else
    few=131072 some=524288 many=8388608 rounds=64 picture="--width 2048 --depth 1024" bodies="--bodies 50000 --steps 2"
    points=20000 sizes="64MiB 256MiB 1GiB" least=64MiB
fi
code=0

# Prints the value of a line in the output of `record`.
value() {
    awk -v name="$1" '$1 == name { sub(/^[a-z ]*[a-z] +/, ""); sub(/, .*/, ""); print; exit }' "$scratch/out"
}

# record ARGUMENTS...: records into the scratch folder.
record() {
    timeout 100 "$tool-bench" record "$@" --device "$DEVICE" --no-check -o "$scratch/trace" > "$scratch/out" 2> "$scratch/error"
}

# row NAME MEMORY ARGUMENTS...: records a program and appends its row to the table.
row() {
    local name=$1 memory=$2 lost result
    shift 2
    if [ "$SECONDS" -gt "$limit" ]; then
        echo "| $name | $memory | left out: the time is used up | | | | | |" >> "$table"
        code=1
        return
    fi
    record "$@" --memory "$memory"
    lost=$(sed -n 's/^warning: \([0-9,]*\) of .*/\1/p' "$scratch/error")
    result=$(timeout 100 "$tool" verify "$scratch/trace" 2>&1 | sed -n 's/^result *//p')
    grep -q '^error' "$scratch/error" && result=$(grep '^error' "$scratch/error")
    echo "| $name | $memory | $(value events) | ${lost:-0} | $(value kernels) | $(value whole) | $(value 'in') | $result |" >> "$table"
    tail -n 1 "$table"
}

{
    echo "# Streamed recordings"
    echo
    [ "$DEVICE" = sim ] || nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
    echo
    echo "Made by \`scripts/gpu-streamed.sh\`, commit ${WARPTRACE_COMMIT:-unknown}. Kernels: with the time that warps wait."
    echo
    echo "| program | memory | events | lost | kernels | whole run | file | \`verify\` |"
    echo "| --- | --: | --: | --: | --: | --: | --: | --- |"
} > "$table"

record fractal $picture --launch 9.. --memory "$least" # The driver compiles.
stream="--codec predict --policy stream"
for size in $sizes; do
    row "stress, $some walks" "$size" stress --walks $some --rounds $rounds $stream
done
for size in $sizes; do
    row "fractal" "$size" fractal $picture $stream
done
row "fractal, raw" 256MiB fractal $picture --codec raw --policy stream
row "DMR, $points points, beside raw" 256MiB dmr --points $points $stream --dual
row "stress, $few walks, beside raw" 256MiB stress --walks $few --rounds $rounds $stream --dual
row "stress, $few walks, no lane waits, beside raw" 256MiB stress --walks $few --rounds $rounds $stream --dual --stall-limit 0
row "stress, $some walks, \`stop\`" 1GiB stress --walks $some --rounds $rounds --codec predict
row "stress, $some walks, \`ring\`" 1GiB stress --walks $some --rounds $rounds --codec predict --policy ring
for policy in stop ring; do
    row "fractal, \`$policy\`" 1GiB fractal $picture --codec predict --policy $policy
    row "DMR, $points points, \`$policy\`" 1GiB dmr --points $points --codec predict --policy $policy
done
row "stress, $few walks, \`ring\`, beside raw" 256MiB stress --walks $few --rounds $rounds --codec predict --policy ring --dual
row "fractal, \`ring\`, beside raw" 256MiB fractal $picture --codec predict --policy ring --dual
row "DMR, $points points, \`ring\`, beside raw" 256MiB dmr --points $points --codec predict --policy ring --dual
row "stress, $many walks" 1GiB stress --walks $many --rounds $rounds $stream
row "stress, $many walks, raw" 256MiB stress --walks $many --rounds $rounds --codec raw --policy stream

{
    echo
    echo "## Untraced, and windows"
    echo
    echo "Kernels of five runs of each, in turn, in the order of their times. Untraced: no launch is in the window."
    echo
    echo "| program | untraced | one block in 64 |"
    echo "| --- | --- | --- |"
} >> "$table"
for program in "fractal $picture" "nbody $bodies"; do
    for run in 1 2 3 4 5; do
        record $program --codec predict --launch 99.. && value kernels >> "$scratch/untraced"
        record $program --codec predict --blocks 1/64 && value kernels >> "$scratch/window"
    done
    echo "| $program | $(sort -n "$scratch/untraced" | paste -sd ';' | sed 's/;/; /g') | $(sort -n "$scratch/window" | paste -sd ';' | sed 's/;/; /g') |" >> "$table"
    rm -f "$scratch/untraced" "$scratch/window"
done
for walks in $some $many; do
    record stress --walks $walks --rounds $rounds --codec predict --launch 99..
    echo "| stress, $walks walks | $(value kernels) | |" >> "$table"
done

{
    echo
    echo "## What the link and the disk can do"
    echo
    echo '```text'
    [ "$DEVICE" = sim ] || python3 - 2>&1 << 'END'
import cupy, time
size = 1 << 30
device, host = cupy.zeros(size, cupy.uint8), cupy.cuda.alloc_pinned_memory(size)
for _ in range(3):
    started = time.time()
    cupy.cuda.runtime.memcpy(host.ptr, device.data.ptr, size, cupy.cuda.runtime.memcpyDeviceToHost)
    print(f"device to host: {size / (time.time() - started) / 1e9:.1f} GB/s")
END
    for folder in "$scratch" /tmp; do
        written=$(dd if=/dev/zero of="$folder/disk.test" bs=4M count=512 conv=fsync 2>&1 | tail -n 1 | sed 's/.*, //')
        rm -f "$folder/disk.test"
        echo "$([ "$folder" = /tmp ] && echo /tmp || echo 'the folder of traces'): $written"
    done
    echo '```'
    echo
    echo "## A kernel that is interrupted"
    echo
    echo '```text'
} >> "$table"
"$tool-bench" record stress --walks $many --rounds $rounds $stream --device "$DEVICE" --no-check -o "$scratch/trace" > /dev/null 2> "$scratch/error" &
recorder=$!
[ "$DEVICE" = sim ] && sleep 0.3 || sleep 3
started=$(date +%s%N)
kill -INT $recorder 2> /dev/null
wait $recorder
status=$?
{
    echo "SIGINT: exit code $status after $((($(date +%s%N) - started) / 1000000)) ms"
    cut -c1-150 "$scratch/error" | sed "s|$scratch|SCRATCH|"
    "$tool" verify "$scratch/trace" | cut -c1-150
    echo '```'
} >> "$table"

{
    echo
    echo "## compute-sanitizer"
    echo
    echo "| tool | program | |"
    echo "| --- | --- | --- |"
} >> "$table"
if command -v compute-sanitizer > /dev/null && [ "$DEVICE" != sim ]; then
    for checker in memcheck racecheck; do
        for program in "fractal --width 64 --depth 64" "stress --walks 512 --rounds 8 --dual" "dmr --points 100 --dual" "mis --counted" "mst --dual" "stress --walks 512 --rounds 8 --blocks 1/2" "stress --walks 16384 --rounds 8 --memory 256MiB --dual"; do
            found=$(timeout 40 compute-sanitizer --tool $checker "$tool-bench" record $program $stream --device "$DEVICE" --no-check -o "$scratch/trace" 2>&1 | sed -n 's/^=* *\(.*SUMMARY.*\)/\1/p')
            echo "| $checker | $program | $found |" >> "$table"
        done
    done
else
    echo "| skipped | compute-sanitizer is not there | |" >> "$table"
fi
cat "$table"
exit $code
