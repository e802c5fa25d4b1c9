//! Table of a frame: columns that describe each chunk and its payload.

use std::ops::Range;

use super::SECTION;
use super::encode::Chunks;
use super::header::ChunkEntry;
use super::runs::WarpRun;
use crate::file::error::FormatError;
use crate::file::fields::{Fields, push_varint, unzigzag, zigzag};

/// Value in the column of payloads for a new one; payload n is n + 1.
pub(super) const NEW: u32 = 0;
/// Payloads hashed before their lookup. Small ones are then still in the cache.
const HASHED_AT_ONCE: usize = 256;

#[derive(Default)]
pub(super) struct FrameTable {
    /// Warps, sequences, payloads, events.
    columns: [Vec<u8>; 4],
    distinct: Distinct,
    contents: Vec<u8>,
}

impl FrameTable {
    pub(super) fn encode<'a>(&mut self, mut chunks: impl Chunks<'a>) -> &[u8] {
        let Self { columns, distinct, contents } = self;
        distinct.clear(chunks.len());
        for column in columns.iter_mut() {
            column.clear();
            column.reserve(chunks.len());
        }
        let [warps, sequences, payloads, events] = columns;
        let mut before = None;
        let mut ahead = chunks.clone();
        let mut hashes = [0; HASHED_AT_ONCE];
        while chunks.len() > 0 {
            // Payloads are scattered in memory: hashing several overlaps the accesses.
            hashes.iter_mut().zip(ahead.by_ref()).for_each(|(to, chunk)| *to = hash(chunk.payload));
            for (&hash, chunk) in hashes.iter().zip(chunks.by_ref()) {
                let (warp, sequence) = before.unwrap_or((chunk.warp, None));
                push_varint(warps, u64::from(chunk.warp - warp));
                let expected = expected_sequence((warp, sequence), chunk.warp);
                push_varint(sequences, u64::from(chunk.sequence) - u64::from(expected));
                before = Some((chunk.warp, Some(chunk.sequence)));

                let (number, events_before) = distinct.number(chunk.payload, hash, chunk.events);
                push_varint(payloads, number.map_or(u64::from(NEW), |number| u64::from(number) + 1));
                push_varint(events, zigzag(i64::from(chunk.events) - i64::from(events_before)));
            }
        }
        contents.clear();
        let table: usize = columns.iter().map(Vec::len).sum();
        // A length takes at most three bytes.
        contents.reserve(table + 3 * distinct.ends.len() + distinct.bytes.len());
        columns.iter().for_each(|column| contents.extend_from_slice(column));
        let mut start = 0;
        for &end in &distinct.ends {
            push_varint(contents, (end - start) as u64);
            start = end;
        }
        contents.extend_from_slice(&distinct.bytes);
        contents
    }
}

#[inline]
fn expected_sequence(before: (u32, Option<u32>), warp: u32) -> u32 {
    match before {
        (same, Some(sequence)) if same == warp => sequence.saturating_add(1),
        _ => 0,
    }
}

/// Distinct payloads of a frame in order of their first chunk, with a hash table that is at most half full.
#[derive(Default)]
struct Distinct {
    /// Payload number plus 1, or 0 if free, from the first slot of its hash on.
    slots: Vec<u32>,
    shift: u32,
    hashes: Vec<u64>,
    bytes: Vec<u8>,
    ends: Vec<usize>,
    events: Vec<u32>,
}

impl Distinct {
    fn clear(&mut self, most: usize) {
        let bits = (2 * most.max(1)).next_power_of_two().trailing_zeros();
        self.shift = u64::BITS - bits;
        self.slots.clear();
        self.slots.resize(1 << bits, 0);
        self.hashes.clear();
        self.bytes.clear();
        self.ends.clear();
        self.events.clear();
    }

    /// Returns the payload's number unless it is new, and the events of the last chunk with it.
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "some bits of a hash; a frame has fewer chunks than 2^32"
    )]
    fn number(&mut self, payload: &[u8], hash: u64, events: u32) -> (Option<u32>, u32) {
        let mut slot = (hash >> self.shift) as usize;
        loop {
            let Some(number) = self.slots[slot].checked_sub(1) else {
                self.hashes.push(hash);
                self.bytes.extend_from_slice(payload);
                self.ends.push(self.bytes.len());
                self.events.push(events);
                self.slots[slot] = self.ends.len() as u32;
                return (None, 0);
            };
            let at = number as usize;
            if self.hashes[at] == hash && self.payload(at) == payload {
                return (Some(number), std::mem::replace(&mut self.events[at], events));
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
    }

    #[inline]
    fn payload(&self, number: usize) -> &[u8] {
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[number]]
    }
}

/// Returns a hash that is cheap for short payloads. They are compared, so a bad hash costs only time.
#[inline]
fn hash(payload: &[u8]) -> u64 {
    // An odd number without a pattern: the fraction of the golden ratio in 64 bits.
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    #[expect(clippy::cast_possible_truncation, reason = "both halves of the product are used")]
    let mix = |hash: u64, word: u64| {
        let product = u128::from(hash ^ word) * u128::from(FACTOR);
        product as u64 ^ (product >> 64) as u64
    };
    let (words, rest) = payload.as_chunks::<8>();
    let hash = words.iter().fold(payload.len() as u64 + 1, |hash, word| mix(hash, u64::from_le_bytes(*word)));
    let rest = rest.iter().fold(1, |word, &byte| (word << 8) | u64::from(byte));
    mix(hash, rest).wrapping_mul(FACTOR)
}

pub(super) struct Parsed {
    pub(super) entries: Vec<ChunkEntry>,
    pub(super) numbers: Vec<u32>,
    pub(super) runs: Vec<WarpRun>,
    pub(super) classes: Vec<Range<u32>>,
    /// Start of each payload, then the end of the last one.
    pub(super) starts: Vec<u32>,
    pub(super) payloads_at: usize,
}

/// Decodes the table of `chunks` chunks at the start of `contents`. The caller has checked their number.
pub(super) fn parse(contents: &[u8], chunks: u32, first_warp: u32, at: u64) -> Result<Parsed, FormatError> {
    let mut fields = Fields::new(SECTION, contents, at);
    let mut entries = Vec::with_capacity(chunks as usize);
    let mut warp = first_warp;
    for number in 0..chunks {
        let offset = fields.offset();
        let step = fields.varint32("chunk warp")?;
        warp = match warp.checked_add(step) {
            Some(warp) if number > 0 || step == 0 => warp,
            _ => {
                return Err(fields.invalid(
                    "chunk warp",
                    offset,
                    u64::from(step),
                    "a step from the first warp on",
                ));
            }
        };
        entries.push(ChunkEntry { warp, sequence: 0, events: 0, length: 0 });
    }
    let mut before = (first_warp, None);
    for entry in &mut entries {
        let offset = fields.offset();
        let expected = expected_sequence(before, entry.warp);
        let skipped = fields.varint32("chunk sequence")?;
        // No number follows the largest one.
        let sequence = expected.checked_add(skipped).filter(|_| before != (entry.warp, Some(u32::MAX)));
        entry.sequence = sequence.ok_or_else(|| {
            fields.invalid("chunk sequence", offset, u64::from(skipped), "a sequence number of 32 bits")
        })?;
        before = (entry.warp, Some(entry.sequence));
    }
    let mut numbers = Vec::with_capacity(chunks as usize);
    let mut distinct = 0;
    for _ in 0..chunks {
        let offset = fields.offset();
        let number = fields.varint32("chunk payload")?;
        if number > distinct {
            let expected = format!("at most {distinct}, the payloads so far");
            return Err(fields.invalid("chunk payload", offset, u64::from(number), expected));
        }
        numbers.push(if number == NEW { distinct } else { number - 1 });
        distinct += u32::from(number == NEW);
    }
    let mut events_before = vec![0u32; distinct as usize];
    for (entry, &number) in entries.iter_mut().zip(&numbers) {
        let offset = fields.offset();
        let difference = unzigzag(fields.varint("chunk events")?);
        let last = &mut events_before[number as usize];
        entry.events = i64::from(*last)
            .checked_add(difference)
            .and_then(|events| u32::try_from(events).ok())
            .filter(|&events| events > 0)
            .ok_or_else(|| {
                fields.invalid("chunk events", offset, *last as u64, "a sum of 1 to 2^32 - 1 events")
            })?;
        *last = entry.events;
    }
    let (lengths, starts) = parse_lengths(&mut fields, distinct)?;
    for (entry, &number) in entries.iter_mut().zip(&numbers) {
        entry.length = lengths[number as usize];
    }
    let (runs, classes) = (Vec::new(), Vec::new());
    let payloads_at = contents.len() - fields.rest().len();
    Ok(Parsed { entries, numbers, runs, classes, starts, payloads_at })
}

/// Reads the lengths of `distinct` payloads, which are the rest of the contents. Returns them and the starts.
pub(super) fn parse_lengths(
    fields: &mut Fields<'_>,
    distinct: u32,
) -> Result<(Vec<u32>, Vec<u32>), FormatError> {
    let mut lengths = Vec::with_capacity(distinct as usize);
    for _ in 0..distinct {
        let offset = fields.offset();
        let length = fields.varint32("chunk length")?;
        let entry = ChunkEntry { warp: 0, sequence: 0, events: 1, length };
        if let Err((field, value, expected)) = entry.check() {
            return Err(fields.invalid(field, offset, value, expected));
        }
        lengths.push(length);
    }
    let payload_bytes = fields.rest().len();
    let mut starts = Vec::with_capacity(lengths.len() + 1);
    let mut end = 0u64;
    starts.push(0);
    for &length in &lengths {
        end += u64::from(length);
        // Lengths over 32 bits exceed the contents and are rejected below.
        starts.push(u32::try_from(end).unwrap_or(u32::MAX));
    }
    if end != payload_bytes as u64 {
        let expected = format!("{payload_bytes}, the bytes behind the table");
        return Err(fields.invalid("sum of payload lengths", fields.offset(), end, expected));
    }
    Ok((lengths, starts))
}
