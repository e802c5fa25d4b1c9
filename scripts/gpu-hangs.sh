#!/bin/sh
# Records programs that hang: output of `run` after SIGINT, and output of `top` and `verify` for the files.
# Usage: gpu-hangs.sh TOOL PROGRAMS OUT. TOOL is `warptrace`. PROGRAMS contains the binaries lock, roles,
# named and fault, the Triton kernel flag.py, and hangs, which is tracer-host/shim/tests/programs/hangs.c
# linked with the driver.
set -u
tool=$1 programs=$2 out=$3
ptx=$(cd "$(dirname "$0")/.." && pwd)/tracer-host/shim/tests/data/hangs.ptx
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader

now() { date +%s%N; }
since() { echo "$((($(now) - $1) / 1000000)) ms"; }

# Both the program and the tool receive SIGINT, as from a keyboard.
hang() {
    echo "== $*"
    "$tool" run -o "$out/h.wtrc" -- "$@" >"$out/log" 2>&1 &
    process=$!
    sleep 3
    start=$(now)
    child=$(pgrep -P $process | head -1)
    kill -INT $process
    [ -n "$child" ] && kill -INT "$child"
    wait $process
    echo "exit code $?, $(since "$start") after SIGINT"
    cat "$out/log"
    "$tool" top "$out/h.wtrc" 2>&1 | head -1
    "$tool" verify "$out/h.wtrc" 2>&1 | grep -E '^(decoded|accounts|result|  -)'
}

hang "$programs/lock" 0
hang "$programs/roles" 0
hang "$programs/named" hang
for kernel in "grid_barrier 4 64" "ring_of_flags 3 32" "passed_over 1 64" "specialised 1 64" "lock_order 2 32" \
    "missing_lane 1 32" "two_ways 2 64" "in_a_function 1 32" "chain 8 32" "two_ways 2000 256"; do
    # shellcheck disable=SC2086
    hang "$programs/hangs" "$ptx" $kernel 60
done

echo "== fault"
"$tool" run -o "$out/h.wtrc" -- "$programs/fault"
"$tool" top "$out/h.wtrc" 2>&1 | head -2

# Python does not end by SIGINT while it waits for the GPU. Ask for its position until the kernel is launched.
echo "== python3 flag.py 0"
"$tool" run -o "$out/h.wtrc" -- python3 "$programs/flag.py" 0 >"$out/log" 2>&1 &
process=$!
for _ in $(seq 12); do
    sleep 3
    start=$(now)
    kill -USR1 $process
    for _ in $(seq 80); do
        grep -q "had not ended" "$out/log" && break 2
        sleep 0.02
    done
done
echo "$(since "$start") after it was asked"
sleep 2
cat "$out/log"
kill -INT $process
sleep 1
kill -INT $process
wait $process
echo "exit code $?"

echo "== where"
"$tool" run -o "$out/h.wtrc" -- "$programs/roles" 0 >"$out/log" 2>&1 &
process=$!
sleep 3
start=$(now)
"$tool" where $process
since "$start"
kill -TERM $process
wait $process
echo "exit code $?"

echo "== run --launch-limit 2 --on-hang stop lock 0"
"$tool" run --launch-limit 2 --on-hang stop -o "$out/h.wtrc" -- "$programs/lock" 0
echo "exit code $?"
echo "== lock"
"$tool" run -o "$out/h.wtrc" -- "$programs/lock"
"$tool" verify "$out/h.wtrc" | tail -1
