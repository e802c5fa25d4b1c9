//! Merged runs, and which of them fit into a chunk.

use warptrace_abi::log::{ENTRY_BYTES, Entry};
use warptrace_format::chunk::CHUNK_HEADER_BYTES;

use crate::codec::Codec;

/// Bytes of a merged run: those of a log entry, so that one takes the other's room.
pub(crate) const RUN_BYTES: u32 = ENTRY_BYTES;
const _: () = assert!(RUN_BYTES == 16);

/// Bytes of a chunk's payload that a stretch does not use, for what an encoder keeps back.
const SLACK: u32 = 64;
/// Bytes of an event with `raw`.
const RAW_BYTES: u32 = 6;
/// Bytes by which an event can lengthen `ecl`, at most.
const ECL_BYTES: u32 = 11;
/// Bytes of a run with `predict`, if all counts of a chunk add up to less than 2^24.
const PREDICT_RUN_BYTES: u32 = 12;
/// Stands for the bytes of a run that may be too long for any chunk.
const ANY_LENGTH: u32 = u32::MAX;

/// The words of a merged run.
#[inline(always)]
pub(crate) const fn merged_words(entry: Entry) -> [u32; 4] {
    [entry.mask, entry.location as u32, entry.count, 0]
}

/// How often a merged run repeats.
#[inline(always)]
pub(crate) const fn merged_count(words: [u32; 4]) -> u64 {
    words[2] as u64 | (words[3] as u64) << 32
}

/// Bytes that a run takes at most, in a chunk with so much `room`; more than any chunk has if that is not
/// known.
#[inline(always)]
pub(crate) const fn max_bytes(codec: Codec, count: u64, room: u32) -> u32 {
    match codec {
        Codec::Raw if count < 1 << 20 => RAW_BYTES * count as u32,
        Codec::Ecl if count < 1 << 20 => ECL_BYTES * count as u32,
        Codec::Predict if count < (1 << 24) / (room as u64 / PREDICT_RUN_BYTES as u64 + 1) => {
            PREDICT_RUN_BYTES
        }
        _ => ANY_LENGTH,
    }
}

/// Bytes of a chunk's payload that a stretch may take.
#[inline(always)]
pub(crate) const fn room(chunk_bytes: u32) -> u32 {
    chunk_bytes - CHUNK_HEADER_BYTES - SLACK
}

/// Runs of a stretch with `predict`, where each run fits into a chunk.
#[inline(always)]
pub(crate) const fn predict_runs(room: u32) -> u32 {
    room / PREDICT_RUN_BYTES
}
