//! The table of a frame: what each chunk is, column by column, and which payload it has.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::SECTION;
use super::encode::ChunkRef;
use super::header::ChunkEntry;
use crate::file::error::FormatError;
use crate::file::fields::{Fields, push_varint, unzigzag, zigzag};

/// Stands for "the next payload that no chunk before has" in the column of payloads; payload n is n + 1.
const NEW: u32 = 0;

/// The contents of a frame: the columns of `chunks`, which are sorted, then the distinct payloads.
pub(super) fn encode(chunks: &[ChunkRef<'_>]) -> Vec<u8> {
    let mut distinct = Distinct::default();
    let mut columns: [Vec<u8>; 4] = Default::default();
    let [warps, sequences, payloads, events] = &mut columns;
    let first_warp = chunks.first().map_or(0, |chunk| chunk.warp);
    let mut before = (first_warp, None);
    for chunk in chunks {
        push_varint(warps, u64::from(chunk.warp - before.0));
        let expected = expected_sequence(before, chunk.warp);
        push_varint(sequences, u64::from(chunk.sequence) - u64::from(expected));
        before = (chunk.warp, Some(chunk.sequence));

        let (number, events_before) = distinct.number(chunk.payload, chunk.events);
        push_varint(payloads, number.map_or(u64::from(NEW), |number| u64::from(number) + 1));
        push_varint(events, zigzag(i64::from(chunk.events) - i64::from(events_before)));
    }
    let bytes = distinct.payloads.iter().map(|payload| payload.len() + 3).sum::<usize>();
    let mut contents = Vec::with_capacity(columns.iter().map(Vec::len).sum::<usize>() + bytes);
    columns.iter().for_each(|column| contents.extend_from_slice(column));
    distinct.payloads.iter().for_each(|payload| push_varint(&mut contents, payload.len() as u64));
    distinct.payloads.iter().for_each(|payload| contents.extend_from_slice(payload));
    contents
}

/// The least sequence number that a chunk of `warp` can have after `before`, a chunk's warp and sequence.
fn expected_sequence(before: (u32, Option<u32>), warp: u32) -> u32 {
    match before {
        (same, Some(sequence)) if same == warp => sequence.saturating_add(1),
        _ => 0,
    }
}

/// The payloads of a frame in order of their first chunk.
#[derive(Default)]
struct Distinct<'a> {
    numbers: HashMap<&'a [u8], u32, BuildHasherDefault<Mix>>,
    payloads: Vec<&'a [u8]>,
    /// Events of the last chunk with each payload.
    events: Vec<u32>,
}

impl<'a> Distinct<'a> {
    /// The payload's number unless it is new, and the events of the chunk that had it last (0 if it is new).
    fn number(&mut self, payload: &'a [u8], events: u32) -> (Option<u32>, u32) {
        let next = self.payloads.len() as u32;
        let number = *self.numbers.entry(payload).or_insert(next);
        if number == next {
            self.payloads.push(payload);
            self.events.push(events);
            return (None, 0);
        }
        let before = std::mem::replace(&mut self.events[number as usize], events);
        (Some(number), before)
    }
}

/// A hash that is cheap for payloads of a few bytes: multiply and fold, eight bytes at a time. Equal payloads are found
/// by comparison, so a bad hash costs time only.
#[derive(Default)]
struct Mix(u64);

impl Mix {
    fn mix(&mut self, word: u64) {
        // An odd number without a pattern: the fraction of the golden ratio in 64 bits.
        let product = u128::from(self.0 ^ word) * 0x9e37_79b9_7f4a_7c15;
        self.0 = product as u64 ^ (product >> 64) as u64;
    }
}

impl Hasher for Mix {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| self.mix(u64::from_le_bytes(*word)));
        self.mix(rest.iter().fold(1, |word, &byte| (word << 8) | u64::from(byte)));
    }

    fn write_usize(&mut self, length: usize) {
        self.mix(length as u64 + 1);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// What a table says.
pub(super) struct Parsed {
    pub(super) entries: Vec<ChunkEntry>,
    /// For each chunk the number of its payload.
    pub(super) numbers: Vec<u32>,
    /// Where each payload begins behind the table, and where the last one ends.
    pub(super) starts: Vec<u32>,
    /// Where the payloads begin in the contents.
    pub(super) payloads_at: usize,
}

/// Reads the table of `chunks` chunks at the start of `contents`, which stand at file offset `at`. The caller has
/// checked that `chunks` is within the format's limit.
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
        // After the last possible number there is none.
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
        // Lengths that pass 32 bits pass the contents too, and are refused below.
        starts.push(end as u32);
    }
    if end != payload_bytes as u64 {
        let expected = format!("{payload_bytes}, the bytes behind the table");
        return Err(fields.invalid("sum of payload lengths", fields.offset(), end, expected));
    }
    for (entry, &number) in entries.iter_mut().zip(&numbers) {
        entry.length = lengths[number as usize];
    }
    Ok(Parsed { entries, numbers, starts, payloads_at: contents.len() - payload_bytes })
}
