//! Logs of addresses and values built by hand. Chunks hold them unchanged, lane after lane.

use warptrace_abi::data::{DataEntry, Owner, accesses};
use warptrace_encode::native::Schedule;
use warptrace_format::account::WarpAccount;

use super::{ECL, PREDICT, ROOM};
use crate::device_memory::{DeviceMemory, Encoded, LogWriter, Room};
use crate::made_runs::{LANES, Numbers};

/// A stream's logs, and the time at which each log stopped, if it did.
struct Logs {
    lanes: Vec<Vec<[u32; 4]>>,
    lost_from: Vec<Option<u32>>,
}

impl Logs {
    /// Returns logs of random lengths up to `most`; one in `rarity` lanes has no entries.
    fn random(numbers: &mut Numbers, most: u64, rarity: u64) -> Self {
        let lanes = (0..LANES as u32).map(|lane| {
            let length = if numbers.below(rarity) == 0 { 0 } else { numbers.below(most + 1) };
            let entry = |numbers: &mut Numbers| {
                let (site, time) = (1 + numbers.below(9) as u16, numbers.below(1 << 32) as u32);
                let (count, base) = (1 + numbers.below(1023) as u32, numbers.below(u64::MAX));
                let step = if count == 1 { 0 } else { numbers.below(90) as i32 - 40 };
                match numbers.below(3) {
                    0 => DataEntry::Header { mask: 1 << lane | 1 << 31, site, time, spread: None },
                    1 => DataEntry::Values { site, of: Owner::Group(1 + lane), count, base, step },
                    _ => DataEntry::Values { site, of: Owner::Lane(lane), count, base, step },
                }
            };
            (0..length).map(|_| entry(numbers).to_words()).collect()
        });
        Self { lanes: lanes.collect(), lost_from: vec![None; LANES] }
    }

    fn expected(&self) -> Vec<[u32; 4]> {
        let mut entries = self.lanes.concat();
        let first = self.lost_from.iter().flatten().min().filter(|_| !entries.is_empty());
        entries.extend(first.map(|time| DataEntry::Cut { time: *time }.to_words()));
        entries
    }
}

fn memory(streams: &[Logs], room: Room) -> DeviceMemory {
    let room = Room { data_track: 1, ..room };
    let warps = streams.len() as u32;
    let memory = DeviceMemory::new(room, warps, 32, 2);
    let mut writer = LogWriter::new(memory);
    for (logs, stream) in streams.iter().zip(warps..) {
        for (lane, runs) in (0..).zip(&logs.lanes) {
            runs.iter().for_each(|words| writer.append(stream, lane, *words));
        }
        (0..).zip(&logs.lost_from).for_each(|(lane, time)| writer.lose(stream, lane, time.map(u64::from)));
    }
    writer.finish()
}

fn check(encoded: &Encoded, streams: &[Logs], each: usize) {
    for (warp, logs) in (0..).zip(streams) {
        let expected = logs.expected();
        let of_warp = || encoded.chunks.iter().filter(|(header, _)| (header.track, header.warp) == (1, warp));
        let bytes: Vec<u8> = of_warp().flat_map(|(_, payload)| payload.clone()).collect();
        let words: Vec<[u32; 4]> = bytes
            .as_chunks::<16>()
            .0
            .iter()
            .map(|entry| std::array::from_fn(|at| u32::from_le_bytes(entry.as_chunks::<4>().0[at])))
            .collect();
        assert!(words == expected, "warp {warp}: {} of {} entries", words.len(), expected.len());
        for (header, payload) in of_warp() {
            let is_last = header.sequence as usize == expected.len().div_ceil(each) - 1;
            assert!(payload.len() == 16 * each || is_last, "chunks but the last are full");
            assert_eq!((header.runs, header.padding), (0, streams.len() as u32 + warp));
        }
        let recorded = expected.iter().map(|words| u64::from(accesses(words[1]))).sum();
        let chunks = expected.len().div_ceil(each) as u32;
        let account = WarpAccount { attempted: recorded, recorded, lost: 0, chunks, finished: 1 };
        assert_eq!(encoded.streams[streams.len() + warp as usize].account, account, "warp {warp}");
        let empty = WarpAccount { finished: 1, ..WarpAccount::default() };
        assert_eq!(encoded.streams[warp as usize].account, empty);
    }
}

/// A case has the maximum entries of a log, the rarity of empty logs and the chunk size in bytes.
pub(super) fn check_copies(cases: &[(u64, u64, u32)]) {
    let mut numbers = Numbers(9);
    for (most, rarity, chunk_bytes) in cases.iter().copied() {
        let mut streams: Vec<Logs> = (0..5).map(|_| Logs::random(&mut numbers, most, rarity)).collect();
        for (number, logs) in streams.iter_mut().enumerate().skip(1).step_by(2) {
            logs.lost_from[number * 3] = Some(5000);
            logs.lost_from[number] = Some(4000 + 2 * number as u32);
        }
        let each = (chunk_bytes as usize - 32) / 16;
        for codec in [PREDICT, ECL] {
            let ample = Room { chunk_bytes, chunks: 4000, ..ROOM };
            let mut natively = memory(&streams, ample);
            let native = natively.encode_natively(codec, Schedule::Sequential);
            check(&native, &streams, each);
            let by_kernels = memory(&streams, ample).encode_by_kernels(codec);
            native.assert_same(&by_kernels);
            assert_eq!((native.rounds.len(), by_kernels.rounds.len()), (1, 1));
            assert!(
                native
                    .rounds
                    .iter()
                    .chain(&by_kernels.rounds)
                    .all(|claims| { (claims.merged_entries, claims.serial) == (0, 0) })
            );
            for chunks in [1, 2, 7] {
                let few = Room { chunks, ..ample };
                let in_rounds = memory(&streams, few).encode_by_kernels(codec);
                native.assert_same(&in_rounds);
                native.assert_same(&memory(&streams, few).encode_natively(codec, Schedule::Parallel));
                let needed: usize = streams.iter().map(|logs| logs.expected().len().div_ceil(each)).sum();
                assert_eq!(in_rounds.rounds.len(), needed.div_ceil(chunks as usize).max(1));
            }
        }
    }
}

#[test]
fn data_is_copied_by_kernels_as_natively() {
    check_copies(&[(3, 4, 512), (40, 3, 512), (0, 1, 512)]);
}
