#!/bin/sh
# Compares the cost of recording between two versions of the tool: launches with repeating warps, launches
# with different warps, irregular programs, and steps of a training.
# Usage: gpu-classes.sh BASE NEW OUT. BASE and NEW contain `warptrace` and `warptrace-bench`.
# ROUNDS: recordings of each program. POINTS: trace points of the training. NEW_OPTIONS: options of recordings
# with NEW, so that both folders may contain the same version.
set -u
base=$1 new=$2 out=$3
here=$(dirname "$0")
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader

each() {
    echo "== $*"
    for round in $(seq "${ROUNDS:-3}"); do
        for tool in "$base" "$new"; do
            name=$(basename "$tool")
            options=
            [ "$tool" = "$new" ] && options=${NEW_OPTIONS:-}
            # shellcheck disable=SC2086
            "$tool/warptrace-bench" record "$@" $options --no-check -o "$out/$name-$1.wtrc" >"$out/log" 2>&1
            echo "$name $round: $(grep -E '^(events|memory|kernels|encoding|copy|write|whole run) ' "$out/log" | tr -s ' ' | tr '\n' ';')"
        done
    done
    for tool in "$base" "$new"; do
        name=$(basename "$tool")
        ls -l "$out/$name-$1.wtrc" | awk '{print "bytes", $5}'
        "$new/warptrace" verify "$out/$name-$1.wtrc" | tr -s ' ' | tr '\n' ';'
        echo
    done
}

each triad --elements 33554432 --grid 131072x256 --passes 20
each matmul --size 8192
each stress --walks 1048576
each fractal --width 4096
each mis --graph amazon:400727
each mis --graph road:264346
each mst --graph rmat12
each dmr --points 20000

echo "== training"
python3 "$here/gpu-training.py"
for points in ${POINTS:-functions loops blocks}; do
    for tool in "$base" "$new" "$base" "$new"; do
        name=$(basename "$tool")
        options=
        [ "$tool" = "$new" ] && options=${NEW_OPTIONS:-}
        # shellcheck disable=SC2086
        echo "$name $points: $("$tool/warptrace" run $options --points "$points" -o "$out/$name.wtrc" -- python3 "$here/gpu-training.py" 2>"$out/err")"
        grep 'events of' "$out/err" | sed 's/.*wtrc: //'
        ls -l "$out/$name.wtrc" | awk '{print "bytes", $5}'
    done
    "$new/warptrace" verify "$out/$(basename "$new").wtrc" | tr -s ' ' | tr '\n' ';'
    echo
done
python3 "$here/gpu-training.py"
rm -f "$out"/*.wtrc
