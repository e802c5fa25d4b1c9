//! Reads Perfetto's format: the tracks of a file and their slices, as `readers/read_perfetto.py` prints them.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use super::{lossy, mis, shared_axis};
use crate::support::{Folder, read_with, run, text};

/// Fields of a message of Protocol Buffers, by number.
struct Message<'a>(Vec<(u64, Field<'a>)>);

enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Message<'a> {
    fn read(mut bytes: &'a [u8]) -> Self {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let key = varint(&mut bytes);
            let field = match key & 7 {
                0 => Field::Number(varint(&mut bytes)),
                1 => Field::Number(u64::from_le_bytes(bytes.split_off(..8).unwrap().try_into().unwrap())),
                2 => {
                    let length = varint(&mut bytes) as usize;
                    Field::Bytes(bytes.split_off(..length).unwrap())
                }
                other => panic!("wire type {other}"),
            };
            fields.push((key >> 3, field));
        }
        Self(fields)
    }

    fn all(&self, number: u64) -> impl Iterator<Item = &Field<'a>> {
        self.0.iter().filter(move |(found, _)| *found == number).map(|(_, field)| field)
    }

    fn numbers(&self, number: u64) -> Vec<u64> {
        let numbers = self.all(number).map(|field| match field {
            Field::Number(value) => *value,
            Field::Bytes(_) => panic!("field {number} is no number"),
        });
        numbers.collect()
    }

    fn number(&self, number: u64) -> Option<u64> {
        self.numbers(number).last().copied()
    }

    fn bytes(&self, number: u64) -> Vec<&'a [u8]> {
        let bytes = self.all(number).map(|field| match field {
            Field::Bytes(bytes) => *bytes,
            Field::Number(_) => panic!("field {number} is a number"),
        });
        bytes.collect()
    }

    fn texts(&self, number: u64) -> Vec<String> {
        self.bytes(number).into_iter().map(|bytes| String::from_utf8(bytes.to_vec()).unwrap()).collect()
    }

    fn messages(&self, number: u64) -> Vec<Self> {
        self.bytes(number).into_iter().map(Self::read).collect()
    }

    fn names(&self, number: u64) -> impl Iterator<Item = (u64, String)> {
        self.messages(number).into_iter().map(|name| (name.number(1).unwrap(), name.texts(2).remove(0)))
    }
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let byte = *bytes.split_off_first().unwrap();
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    value
}

/// Returns the tracks of a file. The first one has a mark with facts on the whole trace.
pub(super) fn tracks(path: &Path) -> Vec<Value> {
    let bytes = std::fs::read(path).unwrap();
    let [mut names, mut arguments, mut strings] = [const { BTreeMap::new() }; 3];
    let (mut tracks, mut places, mut open) =
        (Vec::<Value>::new(), BTreeMap::<u64, usize>::new(), BTreeMap::new());
    for (number, packet) in Message::read(&bytes).messages(1).into_iter().enumerate() {
        assert_eq!(packet.number(10), Some(1));
        assert_eq!(packet.number(13), Some(if number == 0 { 3 } else { 2 }));
        let time = packet.number(8).unwrap_or(0);
        if let [interned] = &packet.messages(12)[..] {
            names.extend(interned.names(2));
            arguments.extend(interned.names(3));
            strings.extend(interned.names(29));
        } else if let [track] = &packet.messages(60)[..] {
            let parent = track.number(5).map(|parent| tracks[places[&parent]]["path"].clone());
            let mut path = parent.unwrap_or_else(|| json!([]));
            path.as_array_mut().unwrap().push(track.texts(2).remove(0).into());
            let mut value = json!({ "path": path, "slices": [], "marks": [] });
            if let [counter] = &track.messages(8)[..] {
                value["counts"] = json!([]);
                value["unit"] = counter.texts(6).remove(0).into();
                value["description"] = track.texts(14).remove(0).into();
            }
            assert_eq!(places.insert(track.number(1).unwrap(), tracks.len()), None);
            tracks.push(value);
        } else {
            let event = packet.messages(11).remove(0);
            let place = places[&event.number(11).unwrap()];
            let name = match event.number(10) {
                Some(iid) => names[&iid].clone(),
                None => event.texts(23).pop().unwrap_or_default(),
            };
            let mut described = serde_json::Map::new();
            for annotation in event.messages(4) {
                let name = match annotation.number(1) {
                    Some(iid) => arguments[&iid].clone(),
                    None => annotation.texts(10).remove(0),
                };
                let number = annotation.number(3).or(annotation.number(7)).map(Value::from);
                let text = annotation.number(17).map(|iid| strings[&iid].clone());
                let text = text.or_else(|| annotation.texts(6).pop()).map(Value::from);
                described.insert(name, number.or(text).unwrap());
            }
            let list = |value: Value, field: &str, tracks: &mut Vec<Value>| {
                tracks[place][field].as_array_mut().unwrap().push(value);
            };
            match event.number(9).unwrap() {
                1 => {
                    let flows = [47, 48].map(|number| event.numbers(number));
                    let slice = json!([name, time, null, described, event.texts(22), flows[0], flows[1]]);
                    open.entry(place).or_insert_with(Vec::new).push(slice);
                }
                2 => {
                    let mut slice = open.get_mut(&place).unwrap().pop().unwrap();
                    slice[2] = time.into();
                    list(slice, "slices", &mut tracks);
                }
                3 => list(json!([name, time, described]), "marks", &mut tracks),
                4 => {
                    let value = f64::from_bits(event.number(44).unwrap());
                    list(json!([time, value]), "counts", &mut tracks);
                }
                other => panic!("type {other}"),
            }
        }
    }
    assert!(open.values().all(Vec::is_empty));
    tracks
}

pub(super) fn about(tracks: &[Value]) -> &Value {
    &tracks[0]["marks"][0][2]
}

#[test]
fn the_classes_that_perfetto_publishes_read_the_same() {
    let folder = Folder::new();
    let traces = [
        mis(&folder),
        lossy(&folder, &["--policy", "ring"]),
        shared_axis::record(&folder, "blocks", &[]),
        shared_axis::record(&folder, "all", &[]),
    ];
    for trace in traces {
        let out = folder.at("out.pftrace");
        assert_eq!(run(&["export", text(&trace), "--to", "perfetto", "-o", text(&out)]).0, 0);
        let imports = "perfetto.protos.perfetto.trace.perfetto_trace_pb2";
        let Some(expected) = read_with("read_perfetto.py", imports, &[text(&out)]) else { return };
        assert!(Value::from(tracks(&out)) == expected, "{}", trace.display());
    }
}
