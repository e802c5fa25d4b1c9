#!/usr/bin/env python3
"""Measures from outside how much device memory recordings take.

    scripts/gpu-memory.py [FOLDER]

FOLDER (default .device) holds `warptrace`, built with GPU code. The table goes to $OUT/memory.md (default out).

Device memory is what NVML says of the whole GPU, asked about a thousand times a second, so the machine must be idle. The most
that was in use during a recording, less the most during the same program of which no launch is recorded (its session takes
1 MiB, which is added), is what the tracer takes.
"""

import ctypes
import os
import re
import subprocess
import sys
import threading
import time

PROGRAMS = {
    "fractal": "--width 1024 --depth 512",
    "nbody": "--bodies 20000 --steps 1",
    "matmul": "--size 1024",
    "mis": "--graph road:100000",
    "mst": "--graph amazon:20000 --random-weights",
    "dmr": "--points 20000",
    "stress": "--walks 131072 --rounds 16",
}
LIMITS = [64, 256, 1024]
POLICIES = os.environ.get("POLICIES", "stop ring stream").split()


class Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


nvml = ctypes.CDLL("libnvidia-ml.so.1")
device = ctypes.c_void_p()
assert nvml.nvmlInit_v2() == 0 and nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)) == 0


def used():
    memory = Memory()
    assert nvml.nvmlDeviceGetMemoryInfo(device, ctypes.byref(memory)) == 0
    return memory.used


def peak(command):
    """Runs a command; answers the most bytes that were in use meanwhile, and its output."""
    idle, most, done = used(), [0], threading.Event()

    def watch():
        while not done.is_set():
            most[0] = max(most[0], used())
            time.sleep(0.0002)

    watcher = threading.Thread(target=watch)
    watcher.start()
    run = subprocess.run(command, capture_output=True, text=True, timeout=120)
    done.set()
    watcher.join()
    # The driver frees memory with a delay.
    started = time.time()
    while used() > idle and time.time() - started < 2:
        time.sleep(0.01)
    return most[0], run.stdout + run.stderr


def wait_until_idle():
    """What other processes leave behind goes away in its own time."""
    last, since = used(), time.time()
    while time.time() - since < 2:
        time.sleep(0.05)
        now = used()
        if now != last:
            last, since = now, time.time()


def main():
    wait_until_idle()
    folder = sys.argv[1] if len(sys.argv) > 1 else ".device"
    out = os.environ.get("OUT", "out")
    os.makedirs(out, exist_ok=True)
    trace = "/dev/shm/memory.wtrc"
    tool = [folder + "/warptrace-bench", "record"]
    common = ["--codec", "predict", "--device", "cuda", "--no-check", "-o", trace]
    lines = [
        "# Device memory from outside",
        "",
        "Made by `scripts/gpu-memory.py`, commit " + os.environ.get("WARPTRACE_COMMIT", "unknown") + ". MiB beyond the limit that"
        " recordings take: NVML's most less that of the same program of which nothing is recorded.",
        "",
        "| program | policy | " + " | ".join(f"{limit} MiB" for limit in LIMITS) + " |",
        "| --- | --- |" + " --: |" * len(LIMITS),
    ]
    worst = 0
    for program, options in PROGRAMS.items():
        command = tool + [program] + options.split() + common
        subprocess.run(command + ["--launch", "999999..", "--memory", "1MiB"], capture_output=True)
        base = max(peak(command + ["--launch", "999999..", "--memory", "1MiB"])[0] for _ in range(2)) - (1 << 20)
        for policy in POLICIES:
            cells = []
            for limit in LIMITS:
                most, told = peak(command + ["--policy", policy, "--memory", f"{limit}MiB"])
                if "error" in told:
                    needed = re.search(r"takes at least ([0-9.]+ [MG]iB)", told)
                    cells.append("refused: needs " + needed[1] if needed else told.strip().replace("\n", " "))
                    continue
                beyond = (most - base) / (1 << 20) - limit
                worst = max(worst, beyond)
                cells.append(f"{beyond:+.1f}")
            lines.append(f"| {program} | {policy} | " + " | ".join(cells) + " |")
            print(lines[-1], flush=True)
            with open(out + "/memory.md", "w") as file:
                file.write("\n".join(lines + ["", f"At most {worst:.1f} MiB beyond the limit."]) + "\n")


main()
