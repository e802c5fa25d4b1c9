//! Streams and inputs for several codec tests.
#![allow(dead_code, reason = "each test binary uses a part")]

use std::path::PathBuf;

use proptest::prelude::*;
use warptrace_format::Event;
use warptrace_format::codec::EclParams;

/// Valid parameters, often small ones: these provoke collisions and reach the ring's end.
pub(crate) fn params() -> impl Strategy<Value = EclParams> {
    let hash_bits = prop_oneof![3 => 4_u8..=7, 1 => 8_u8..=16];
    let window_bits = prop_oneof![3 => 6_u8..=8, 1 => 9_u8..=20];
    (hash_bits, 1_u8..=8, window_bits).prop_map(|(hash_bits, shift, window_bits)| EclParams {
        hash_bits,
        shift,
        window_bits,
    })
}

fn any_event() -> impl Strategy<Value = Event> {
    (1_u16..=255, 1_u32..).prop_map(|(location, mask)| Event { location, mask })
}

/// Noise, few distinct events, runs, and loops that lanes occasionally leave.
pub(crate) fn stream() -> impl Strategy<Value = Vec<Event>> {
    let noise = prop::collection::vec(any_event(), 0..300);
    let few = (prop::collection::vec(any_event(), 1..5), prop::collection::vec(0_usize..5, 0..400))
        .prop_map(|(events, order)| order.into_iter().map(|i| events[i % events.len()]).collect());
    let runs = prop::collection::vec((any_event(), 1_usize..300), 0..8).prop_map(|runs| {
        runs.into_iter().flat_map(|(event, times)| std::iter::repeat_n(event, times)).collect()
    });
    let body = prop::collection::vec(any_event(), 1..12);
    let leaving = prop::collection::vec(0_u32..64, 0..80);
    let loops = (body, leaving).prop_map(|(body, leaving)| {
        let mut active = u32::MAX;
        let mut events = Vec::new();
        for lane in leaving {
            active &= !1_u32.checked_shl(lane).unwrap_or(0);
            events.extend(
                body.iter()
                    .map(|event| Event { mask: event.mask & active, ..*event })
                    .filter(|event| event.mask != 0),
            );
        }
        events
    });
    prop_oneof![noise, few, runs, loops]
}

/// Streams over few byte values, where contexts recur with another next byte: a count of 0 per literal.
pub(crate) fn few_values(values: u32, events: usize, mut random: u32) -> Vec<Event> {
    let mut byte = || {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        1 + (random >> 16) % values
    };
    (0..events)
        .map(|_| Event {
            location: byte() as u16,
            mask: byte() | (byte() << 8) | (byte() << 16) | (byte() << 24),
        })
        .collect()
}

pub(crate) fn cut(events: &[Event]) -> Vec<u8> {
    events.iter().flat_map(|event| event.cut()).collect()
}

/// Reads a real input, from the folder next to the checkout or in `WARPTRACE_INPUTS`.
pub(crate) fn real_input(path: &str) -> Option<Vec<u8>> {
    let folder = std::env::var_os("WARPTRACE_INPUTS").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/inputs")),
        PathBuf::from,
    );
    let file = folder.join(path);
    match std::fs::read(&file) {
        Ok(bytes) => Some(bytes),
        Err(error) => {
            eprintln!(
                "skipped: {}: {error} (set WARPTRACE_INPUTS to the folder of real inputs)",
                file.display()
            );
            None
        }
    }
}

/// Returns each warp's events in the BFS trace, or prints a reason and returns `None` without inputs.
pub(crate) fn bfs_streams() -> Option<Vec<Vec<Event>>> {
    let packed = real_input("traces/bfs_warp_streams.bin.gz")?;
    let mut bytes = Vec::new();
    std::io::copy(&mut flate2::read::GzDecoder::new(&packed[..]), &mut bytes)
        .expect("the trace is a gzip file");
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes")) as usize;
    let mut at = 4;
    let mut streams = Vec::new();
    for _ in 0..word(0) {
        let length = word(at);
        let (events, stray) = bytes[at + 4..at + 4 + length].as_chunks();
        assert!(stray.is_empty());
        streams.push(events.iter().map(|event| Event::from_cut(*event)).collect());
        at += 4 + length;
    }
    assert_eq!(at, bytes.len());
    Some(streams)
}
