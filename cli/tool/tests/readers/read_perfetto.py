"""Reads an export with the classes of Perfetto's own messages: prints tracks and their slices as JSON."""

import json
import sys

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent

trace = Trace()
with open(sys.argv[1], "rb") as file:
    trace.ParseFromString(file.read())

names, arguments, texts = {}, {}, {}
tracks, order, open_slices = {}, [], {}


def value(annotation):
    kind = annotation.WhichOneof("value")
    found = getattr(annotation, kind)
    return texts[found] if kind == "string_value_iid" else found


def described(event):
    annotations = event.debug_annotations
    return {arguments[a.name_iid] if a.HasField("name_iid") else a.name: value(a) for a in annotations}


for number, packet in enumerate(trace.packet):
    assert packet.trusted_packet_sequence_id == 1
    assert packet.sequence_flags == (3 if number == 0 else 2)
    if packet.HasField("interned_data"):
        data = packet.interned_data
        names.update((entry.iid, entry.name) for entry in data.event_names)
        arguments.update((entry.iid, entry.name) for entry in data.debug_annotation_names)
        texts.update((entry.iid, entry.str.decode()) for entry in data.debug_annotation_string_values)
    elif packet.HasField("track_descriptor"):
        track = packet.track_descriptor
        assert track.uuid not in tracks and (not track.parent_uuid or track.parent_uuid in tracks)
        parents = tracks[track.parent_uuid]["path"] if track.parent_uuid else []
        tracks[track.uuid] = {"path": parents + [track.name], "slices": [], "marks": []}
        if track.HasField("counter"):
            tracks[track.uuid] |= {"counts": [], "unit": track.counter.unit_name, "description": track.description}
        order.append(track.uuid)
    else:
        event = packet.track_event
        track = tracks[event.track_uuid]
        name = names[event.name_iid] if event.HasField("name_iid") else event.name
        if event.type == TrackEvent.TYPE_SLICE_BEGIN:
            begun = [name, packet.timestamp, None, described(event), list(event.categories)]
            begun += [list(event.flow_ids), list(event.terminating_flow_ids)]
            open_slices.setdefault(event.track_uuid, []).append(begun)
        elif event.type == TrackEvent.TYPE_SLICE_END:
            begun = open_slices[event.track_uuid].pop()
            begun[2] = packet.timestamp
            track["slices"].append(begun)
        elif event.type == TrackEvent.TYPE_COUNTER:
            track["counts"].append([packet.timestamp, event.double_counter_value])
        else:
            assert event.type == TrackEvent.TYPE_INSTANT
            track["marks"].append([name, packet.timestamp, described(event)])
assert not any(open_slices.values())
json.dump([tracks[uuid] for uuid in order], sys.stdout)
