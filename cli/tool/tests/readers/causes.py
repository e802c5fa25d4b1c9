"""Charges each idle lane slot to the event after which the absent lane diverged from those that are active; prints sums as JSON.

causes.py EVENTS.csv INFO.json: from the CSV of `decode`, with a matrix of the last event that each two lanes of a
warp shared. Nothing of it is how the tool computes them.
"""

import collections
import csv
import json
import sys

events, info = sys.argv[1:3]
with open(info) as file:
    known = json.load(file)
launches = {launch["launch"]: launch for launch in known["launches"]}
# Slots are instructions if all locations have a number of instructions.
code = {point["id"]: point["code"] for point in known["metadata"]["locations"]}
weights = {number: found["instructions"] for number, found in code.items()} if all(code.values()) else {}

charges = collections.Counter()
divergences = collections.Counter()
reconvergences = collections.defaultdict(lambda: [0, 0])
BEGIN = 0


def count(events, lanes):
    """Counts a warp of `lanes` lanes: its events are pairs of a location and the set of active lanes."""
    all_lanes = set(range(lanes))
    last = [[0] * 32 for _ in range(32)]
    parted = {}
    location = lambda number: events[number - 1][0] if number else BEGIN
    for number, (here, active) in enumerate(events, 1):
        for cause, sides in parted.items():
            if sides and sides[0] & active and sides[1] & active:
                parted[cause] = None
                met = reconvergences[location(cause), here]
                met[0] += 1
                met[1] += number - cause - 1
        absent = collections.defaultdict(set)
        for lane in all_lanes - active:
            absent[max(last[lane][other] for other in active)].add(lane)
        for cause, lanes_left in absent.items():
            charges[location(cause), here] += len(lanes_left) * weights.get(here, 1)
            if cause not in parted:
                divergences[location(cause)] += 1
                shared = events[cause - 1][1] if cause else all_lanes
                parted[cause] = (shared & active, lanes_left)
        for one in active:
            for other in active:
                last[one][other] = number


warps = collections.defaultdict(list)
with open(events, newline="") as file:
    for row in csv.DictReader(file):
        key = tuple(int(row[name]) for name in ["launch", "block_x", "block_y", "block_z", "warp"])
        if int(row["location"]):
            mask = int(row["mask"], 0)
            warps[key].append((int(row["location"]), {lane for lane in range(32) if mask >> lane & 1}))
for key, found in warps.items():
    x, y, z = launches[key[0]]["block"]
    count(found, min(32, x * y * z - 32 * key[4]))

causes = {}
for (cause, place), idle in charges.items():
    row = causes.setdefault(cause, {"location": cause, "idle": 0, "places": {}, "reconvergences": {}})
    row["idle"] += idle
    row["places"][str(place)] = idle
    row["divergences"] = divergences[cause]
for (cause, place), (times, between) in reconvergences.items():
    causes[cause]["reconvergences"][str(place)] = [times, between]
json.dump({"causes": list(causes.values())}, sys.stdout)
