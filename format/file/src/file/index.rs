//! Index of sections. An `INDX` body:
//! ```text
//! offset  size  field
//!      0     4  first        number of the first entry, counted over all index sections
//!      4     4  entries      1..=65,536
//!      8     1  compression  0 none, 1 zstd
//!      9     7  zero
//!     16     …  entries, compressed or not
//! ```
//!
//! The entries, in file order, are nine columns with one varint per entry:
//! ```text
//! offset      of the section's header, minus the end of the previous entry; for the first entry, from 0
//! length      of the section, header included
//! kind        0 LNCH, 1 FRAM, 2 ACCT, 3 ENDS, 4 MORE, 5 TEXT
//! launch      minus the previous one, as zigzag; the number is 0 for MORE and TEXT
//! track       0 except for FRAM and ACCT
//! first warp  0 except for FRAM and ACCT
//! last warp   minus the first warp; 0 except for FRAM and ACCT
//! chunks      0 except for FRAM
//! events      0 except for FRAM
//! ```

use super::error::FormatError;
use super::fields::{Fields, push_varint, unzigzag, zigzag};
use super::frame::{Compression, StoredAs, compress, decompress};
use super::limits::MAX_INDEX_ENTRIES;
use super::section::SectionKind;

/// Size of the fixed part of an index section's body, in bytes.
pub const INDEX_HEADER_BYTES: usize = 16;
/// Maximum bytes of an entry: three numbers of 64 bits, one of 2, five of 32 (one signed).
const MAX_ENTRY_BYTES: usize = 3 * 10 + 1 + 5 * 5;
/// Kinds by their number in the file.
const KINDS: [SectionKind; 6] = [
    SectionKind::Launch,
    SectionKind::Frame,
    SectionKind::Accounts,
    SectionKind::EarlyEnd,
    SectionKind::Additions,
    SectionKind::Text,
];

/// Position and contents of one section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexEntry {
    /// Launch, frame, accounts, early end, additions or text.
    pub kind: SectionKind,
    /// File offset of the section's header.
    pub offset: u64,
    /// Size of the section, header included, in bytes.
    pub length: u64,
    /// Launch number; 0 for additions and texts.
    pub launch: u32,
    /// Track; 0 except for frames and accounts.
    pub track: u32,
    /// First warp; 0 except for frames and accounts.
    pub first_warp: u32,
    /// Last warp; 0 except for frames and accounts.
    pub last_warp: u32,
    /// Chunks; 0 except for frames.
    pub chunks: u32,
    /// Events; 0 except for frames.
    pub events: u64,
}

impl IndexEntry {
    /// Returns the file offset of the first byte after the section. Saturates.
    pub const fn end(&self) -> u64 {
        self.offset.saturating_add(self.length)
    }

    /// Returns a nonzero field without a meaning for this kind.
    fn unused(&self) -> Option<(&'static str, u64)> {
        let more_warps = self.last_warp.wrapping_sub(self.first_warp);
        let of_warps = [
            ("track", self.track.into()),
            ("first warp", self.first_warp.into()),
            ("last warp", more_warps.into()),
        ];
        let of_chunks = [("chunks", self.chunks.into()), ("events", self.events)];
        let has_warps = matches!(self.kind, SectionKind::Frame | SectionKind::Accounts);
        let no_warps = (!has_warps).then_some(of_warps);
        let no_launch = (self.kind == SectionKind::Additions).then_some([("launch", u64::from(self.launch))]);
        let no_chunks = (self.kind != SectionKind::Frame).then_some(of_chunks);
        no_warps
            .into_iter()
            .flatten()
            .chain(no_launch.into_iter().flatten())
            .chain(no_chunks.into_iter().flatten())
            .find(|&(_, value): &(_, u64)| value != 0)
    }
}

/// Encodes the body of one index section. `first` is the number of its first entry. Fails for no entry or too
/// many, for sections that overlap, and for fields that are invalid for their kind.
pub fn encode_index(
    first: u32,
    entries: &[IndexEntry],
    compression: Compression,
) -> Result<Vec<u8>, FormatError> {
    let invalid = |field, value, expected: &'static str| {
        Err(FormatError::invalid(SectionKind::Index.name(), field, 0, value, expected))
    };
    let count = u32::try_from(entries.len()).unwrap_or(u32::MAX);
    let mut columns: [Vec<u8>; 9] = Default::default();
    let (mut end, mut launch) = (0, 0);
    for entry in entries {
        let Some(gap) = entry.offset.checked_sub(end) else {
            return invalid("offset", entry.offset, "at least the end of the entry before");
        };
        let Some(more_warps) = entry.last_warp.checked_sub(entry.first_warp) else {
            return invalid("last warp", u64::from(entry.last_warp), "at least the first warp");
        };
        let Some(kind) = KINDS.iter().position(|&kind| kind == entry.kind) else {
            return invalid("kind", 0, "LNCH, FRAM, ACCT, ENDS, MORE or TEXT");
        };
        if let Some((field, value)) = entry.unused() {
            return invalid(field, value, "0 in an entry of this kind");
        }
        let launch_step = i64::from(entry.launch) - i64::from(launch);
        (end, launch) = (entry.end(), entry.launch);
        let [track, first_warp, last_warp, chunks] =
            [entry.track, entry.first_warp, more_warps, entry.chunks].map(u64::from);
        let numbers = [
            gap,
            entry.length,
            kind as u64,
            zigzag(launch_step),
            track,
            first_warp,
            last_warp,
            chunks,
            entry.events,
        ];
        for (column, number) in columns.iter_mut().zip(numbers) {
            push_varint(column, number);
        }
    }
    let (columns, mut packed) = (columns.concat(), Vec::new());
    let (stored_as, stored) = compress(SectionKind::Index.name(), &columns, compression, &mut packed)?;
    let mut body = Vec::with_capacity(INDEX_HEADER_BYTES + stored.len());
    body.extend_from_slice(&first.to_le_bytes());
    body.extend_from_slice(&count.to_le_bytes());
    body.extend_from_slice(&[stored_as.to_byte(), 0, 0, 0, 0, 0, 0, 0]);
    parse_header(&mut Fields::new(SectionKind::Index.name(), &body, 0))?;
    body.extend_from_slice(stored);
    Ok(body)
}

fn parse_header(fields: &mut Fields<'_>) -> Result<(u32, u32, StoredAs), FormatError> {
    let first = fields.u32("first")?;
    let count_at = fields.offset();
    let count = fields.u32("entries")?;
    fields.limit("entries", 4, u64::from(count), u64::from(MAX_INDEX_ENTRIES))?;
    if count == 0 {
        return Err(fields.invalid("entries", count_at, 0, "at least 1"));
    }
    Ok((first, count, fields.stored_as::<7>()?))
}

/// Decodes the body of an index section at file offset `at`: the number of its first entry, and its entries.
/// Offsets in errors are as if they were stored uncompressed. Rejects fields that are invalid for their kind.
pub fn decode_index(body: &[u8], at: u64) -> Result<(u32, Vec<IndexEntry>), FormatError> {
    let section = SectionKind::Index.name();
    let header = &body[..body.len().min(INDEX_HEADER_BYTES)];
    let (first, count, stored_as) = parse_header(&mut Fields::new(section, header, at))?;
    let stored = body.get(INDEX_HEADER_BYTES..).unwrap_or_default();
    let stored_at = at.saturating_add(INDEX_HEADER_BYTES as u64);
    let plain = decompress(section, stored_as, stored, count as usize * MAX_ENTRY_BYTES, stored_at)?;
    let mut fields = Fields::new(section, &plain, stored_at);
    let none = IndexEntry {
        kind: SectionKind::Launch,
        offset: 0,
        length: 0,
        launch: 0,
        track: 0,
        first_warp: 0,
        last_warp: 0,
        chunks: 0,
        events: 0,
    };
    let mut entries = vec![none; count as usize];
    for entry in &mut entries {
        entry.offset = fields.varint("offset")?;
    }
    let mut end = 0u64;
    for entry in &mut entries {
        let offset = fields.offset();
        entry.length = fields.varint("length")?;
        let gap = entry.offset;
        let placed = end.checked_add(gap).and_then(|at| Some((at, at.checked_add(entry.length)?)));
        (entry.offset, end) =
            placed.ok_or_else(|| fields.invalid("offset", offset, gap, "an end within 64 bits"))?;
    }
    for entry in &mut entries {
        let offset = fields.offset();
        let kind = fields.varint("kind")?;
        entry.kind =
            usize::try_from(kind).ok().and_then(|kind| KINDS.get(kind).copied()).ok_or_else(|| {
                fields.invalid(
                    "kind",
                    offset,
                    kind,
                    "0 (LNCH), 1 (FRAM), 2 (ACCT), 3 (ENDS), 4 (MORE) or 5 (TEXT)",
                )
            })?;
    }
    let mut launch = 0;
    for entry in &mut entries {
        let offset = fields.offset();
        let step = fields.varint("launch")?;
        launch = i64::from(launch)
            .checked_add(unzigzag(step))
            .and_then(|launch| u32::try_from(launch).ok())
            .ok_or_else(|| fields.invalid("launch", offset, step, "a step to a number of 32 bits"))?;
        entry.launch = launch;
    }
    for entry in &mut entries {
        entry.track = fields.varint32("track")?;
    }
    for entry in &mut entries {
        entry.first_warp = fields.varint32("first warp")?;
    }
    for entry in &mut entries {
        let offset = fields.offset();
        let more = fields.varint32("last warp")?;
        entry.last_warp = entry.first_warp.checked_add(more).ok_or_else(|| {
            fields.invalid("last warp", offset, u64::from(more), "a step to a number of 32 bits")
        })?;
    }
    for entry in &mut entries {
        entry.chunks = fields.varint32("chunks")?;
    }
    for entry in &mut entries {
        entry.events = fields.varint("events")?;
    }
    fields.end()?;
    if let Some((field, value)) = entries.iter().find_map(IndexEntry::unused) {
        return Err(fields.invalid(field, stored_at, value, "0 in an entry of this kind"));
    }
    Ok((first, entries))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> IndexEntry {
        IndexEntry {
            kind: SectionKind::Frame,
            offset: 0x0102,
            length: 0x0304,
            launch: 5,
            track: 1,
            first_warp: 6,
            last_warp: 7,
            chunks: 8,
            events: 9,
        }
    }

    #[test]
    fn index_bytes_are_frozen() {
        let body = encode_index(3, &[entry()], Compression::None).unwrap();
        assert_eq!(
            body,
            [3, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x82, 2, 0x84, 6, 1, 10, 1, 6, 1, 8, 9]
        );
        assert_eq!(decode_index(&body, 0), Ok((3, vec![entry()])));
        for length in 0..body.len() {
            assert!(decode_index(&body[..length], 0).is_err(), "length {length}");
        }
    }

    #[test]
    fn entries_come_back_with_and_without_compression() {
        let entries: Vec<_> = (0..2000u32)
            .map(|number| IndexEntry {
                kind: SectionKind::Frame,
                // Some gaps, for sections that an index does not list.
                offset: u64::from(number) * 0x400 + 24,
                length: 0x400 - u64::from(number % 5 / 4),
                launch: if number % 7 == 0 { u32::MAX } else { number / 3 },
                track: number % 2,
                first_warp: if number == 99 { u32::MAX } else { number },
                last_warp: u32::MAX,
                chunks: u32::MAX - number,
                events: u64::MAX - u64::from(number),
            })
            .map(|entry| match entry.offset / 0x400 % 4 {
                0 => IndexEntry { track: 0, first_warp: 0, last_warp: 0, ..without_chunks(entry, KINDS[0]) },
                1 => entry,
                2 => IndexEntry { track: 0, first_warp: 0, last_warp: 0, ..without_chunks(entry, KINDS[3]) },
                _ => without_chunks(entry, KINDS[2]),
            })
            .collect();
        for compression in [Compression::None, Compression::Zstd(3)] {
            let body = encode_index(9, &entries, compression).unwrap();
            assert_eq!(decode_index(&body, 0), Ok((9, entries.clone())));
        }
    }

    fn without_chunks(entry: IndexEntry, kind: SectionKind) -> IndexEntry {
        IndexEntry { kind, chunks: 0, events: 0, ..entry }
    }

    #[test]
    fn fields_without_a_meaning_are_zero() {
        // One entry's bytes from its kind on: kind, launch, track, first warp, last warp, chunks, events.
        let bytes = |kind: u8, rest: [u8; 5]| {
            let good = encode_index(0, &[entry()], Compression::None).unwrap();
            [&good[..20], &[kind, 10], &rest].concat()
        };
        let refused = |kind, rest| match decode_index(&bytes(kind, rest), 0) {
            Err(FormatError::Invalid { field, value: 7, .. }) => field,
            other => panic!("{other:?}"),
        };
        assert!(
            decode_index(&bytes(0, [0; 5]), 0).is_ok() && decode_index(&bytes(2, [1, 1, 1, 0, 0]), 0).is_ok()
        );
        for (at, name) in ["track", "first warp", "last warp", "chunks", "events"].into_iter().enumerate() {
            let mut rest = [0; 5];
            rest[at] = 7;
            assert_eq!([refused(0, rest), refused(3, rest)], [name; 2]);
            if at >= 3 {
                assert_eq!(refused(2, rest), name);
            }
            assert!(decode_index(&bytes(1, rest), 0).is_ok(), "a frame has {name}");
        }
        for kind in [KINDS[0], KINDS[2], KINDS[3], KINDS[4], KINDS[5]] {
            let error = encode_index(0, &[IndexEntry { kind, ..entry() }], Compression::None).unwrap_err();
            assert!(matches!(error, FormatError::Invalid { field: "track" | "chunks", .. }), "{error}");
        }
        let of_launch = IndexEntry {
            kind: SectionKind::Additions,
            launch: 1,
            track: 0,
            first_warp: 0,
            last_warp: 0,
            chunks: 0,
            events: 0,
            ..entry()
        };
        let error = encode_index(0, &[of_launch], Compression::None).unwrap_err();
        assert!(matches!(error, FormatError::Invalid { field: "launch", .. }), "{error}");
    }

    #[test]
    fn numbers_beyond_their_range_are_refused() {
        let good = encode_index(0, &[entry()], Compression::None).unwrap();
        let refused = |at: usize, bytes: &[u8], old: usize, name: &str| {
            let bad = [&good[..at], bytes, &good[at + old..]].concat();
            match decode_index(&bad, 0) {
                Err(FormatError::Invalid { field, .. }) => assert_eq!(field, name),
                other => panic!("{name}: {other:?}"),
            }
        };
        let over32 = [0xff, 0xff, 0xff, 0xff, 0x1f];
        let most64 = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1];
        refused(8, &[2], 1, "compression");
        refused(9, &[1], 1, "reserved");
        refused(16, &most64, 2, "offset");
        refused(20, &[6], 1, "kind");
        refused(21, &[1], 1, "launch");
        refused(21, &most64, 1, "launch");
        for (at, name) in [(22, "track"), (23, "first warp"), (24, "last warp"), (25, "chunks")] {
            refused(at, &over32, 1, name);
        }
        refused(24, &[0xff, 0xff, 0xff, 0xff, 0xf], 1, "last warp");
        let overlapping = [entry(), IndexEntry { offset: entry().offset + 1, ..entry() }];
        assert!(encode_index(0, &overlapping, Compression::None).is_err());
        let backwards = [IndexEntry { last_warp: 5, ..entry() }];
        assert!(encode_index(0, &backwards, Compression::None).is_err());
        let unlisted = [IndexEntry { kind: SectionKind::Trailer, ..entry() }];
        assert!(encode_index(0, &unlisted, Compression::None).is_err());
    }

    #[test]
    fn a_count_that_the_body_does_not_hold_is_refused() {
        let mut body = encode_index(0, &[entry()], Compression::None).unwrap();
        body[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(matches!(decode_index(&body, 0), Err(FormatError::TooLarge { field: "entries", .. })));
        body[4..8].copy_from_slice(&2u32.to_le_bytes());
        assert!(decode_index(&body, 0).is_err());
        assert!(encode_index(0, &[], Compression::None).is_err());
    }
}
