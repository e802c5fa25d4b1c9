//! Division of a session's device memory for streamed logs.

use warptrace_abi::log::ENTRY_BYTES;
use warptrace_abi::stream::{MAX_SEGMENTS, MAX_STREAM_ENTRIES, MIN_STREAM_ENTRIES, SLOT_BYTES, StreamState};
use warptrace_format::file::LaunchInfo;

use crate::session::SessionError;

/// Alignment of the segments and their queue. Segments are aligned to their own length.
const ALIGN: u64 = (MAX_STREAM_ENTRIES * ENTRY_BYTES) as u64;
/// Preferred segments for each lane that may hold one: it fills one, others are copied or wait to be given.
const SEGMENTS_PER_LANE: u64 = 3;
/// Minimum share of tables, 1 / `TABLES_SHARE` of the memory: launches can follow each other without a scan.
const TABLES_SHARE: u64 = 32;
const STATE_BYTES: u64 = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Needs {
    /// Lanes that may hold a segment at once, counted for each track.
    pub(super) lanes: u64,
    /// Bytes of tables: lost events of streams, and spans and left lanes of recorded warps.
    pub(super) tables: u64,
}

impl Needs {
    /// Returns the needs of a launch with `resident` threads on the device at once.
    pub(super) fn new(info: &LaunchInfo, tracks: u32, span_bytes: u64, resident: u64) -> Self {
        // Counts recorded warps only. The last warp of a block counts as full.
        let threads = 32 * u64::from(info.chosen().count());
        let resident = resident.max(32 * u64::from(info.warps_per_block()));
        let lanes = u64::from(tracks) * threads.min(resident);
        Self { lanes, tables: table_bytes(info, tracks, span_bytes) }
    }
}

/// Returns the bytes of a launch's tables: 8 per stream, and 4 plus a span per recorded warp.
pub(super) fn table_bytes(info: &LaunchInfo, tracks: u32, span_bytes: u64) -> u64 {
    (u64::from(info.chosen().count()) * (8 * u64::from(tracks) + span_bytes + 4)).next_multiple_of(16)
}

/// Layout of the memory. Offsets in bytes from its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Partition {
    pub(super) state: u64,
    /// Tables of launches: offset and size in bytes.
    pub(super) tables: u64,
    pub(super) table_bytes: u64,
    pub(super) queue: u64,
    /// Segments: offset, number, and entries of each.
    pub(super) segments: u64,
    pub(super) segment_count: u32,
    pub(super) segment_entries: u32,
}

impl Partition {
    /// Divides `bytes` bytes of memory for launches that need at most `needs` each, into the longest segments
    /// that fit in sufficient number. If the memory is too small, the error has a sufficient size.
    pub(super) fn new(bytes: u64, needs: Needs) -> Result<Self, SessionError> {
        let enough = |partition: &Self, each: u64| u64::from(partition.segment_count) > each * needs.lanes;
        let mut entries = MAX_STREAM_ENTRIES;
        while entries > MIN_STREAM_ENTRIES {
            if let Some(found) = Self::with(bytes, needs.tables, entries)
                && enough(&found, SEGMENTS_PER_LANE)
            {
                return Ok(found);
            }
            entries /= 2;
        }
        match Self::with(bytes, needs.tables, entries) {
            Some(found) if enough(&found, 1) => Ok(found),
            _ => Err(SessionError::Memory {
                streams: needs.lanes.div_ceil(32),
                needed: Some(Self::least(needs)),
                limit: bytes,
            }),
        }
    }

    fn least(needs: Needs) -> u64 {
        let each = u64::from(MIN_STREAM_ENTRIES * ENTRY_BYTES + 2 * SLOT_BYTES);
        let bytes = (needs.lanes + 2) * each + needs.tables + STATE_BYTES + 4 * ALIGN;
        (bytes + bytes / (TABLES_SHARE - 1) + 1).next_multiple_of(1 << 20)
    }

    fn with(bytes: u64, table_bytes: u64, segment_entries: u32) -> Option<Self> {
        let table_bytes = table_bytes.max(bytes / TABLES_SHARE).next_multiple_of(16);
        let queue = STATE_BYTES + table_bytes;
        let segment_bytes = u64::from(segment_entries * ENTRY_BYTES);
        // The number of slots is the next power of two of the number of segments.
        let mut slots = 1_u64 << 24;
        loop {
            let segments = (queue + slots * u64::from(SLOT_BYTES)).next_multiple_of(ALIGN);
            let count = bytes.saturating_sub(segments) / segment_bytes;
            if count > slots / 2 || slots == 1 {
                let segment_count = count.min(slots).min(u64::from(MAX_SEGMENTS)) as u32;
                return (segment_count > 0).then_some(Self {
                    state: 0,
                    tables: STATE_BYTES,
                    table_bytes,
                    queue,
                    segments,
                    segment_count,
                    segment_entries,
                });
            }
            slots /= 2;
        }
    }
}

const _: () = assert!(size_of::<StreamState>() as u64 <= STATE_BYTES);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_the_memory_is_used_and_no_more() {
        for bytes in [1 << 20, 64 << 20, (256 << 20) + 12_345, 1 << 30, 20 << 30] {
            for lanes in [1, 64, 10_000, 270_336] {
                for tables in [16, 5_000, 600_000] {
                    let Ok(found) = Partition::new(bytes, Needs { lanes, tables }) else { continue };
                    let segment_bytes = u64::from(found.segment_entries * ENTRY_BYTES);
                    let end = found.segments + u64::from(found.segment_count) * segment_bytes;
                    let slots = u64::from(found.segment_count.next_power_of_two());
                    assert!(end <= bytes, "{found:?}");
                    assert!(
                        found.queue + slots * 8 <= found.segments && found.segments.is_multiple_of(ALIGN)
                    );
                    assert!(found.table_bytes >= tables && found.tables + found.table_bytes <= found.queue);
                    assert!(u64::from(found.segment_count) > lanes);
                    let few = found.segment_count == MAX_SEGMENTS || found.segment_count.is_power_of_two();
                    assert!(few || end + segment_bytes > bytes, "{found:?}");
                }
            }
        }
    }

    #[test]
    fn what_is_said_to_be_needed_will_do() {
        for lanes in [1, 32, 1_000, 270_336, 2 * 270_336] {
            for tables in [16, 100_000, 4 << 20] {
                let needs = Needs { lanes, tables };
                let least = Partition::least(needs);
                assert!(Partition::new(least, needs).is_ok(), "{needs:?} {least}");
            }
        }
        let error = Partition::new(1 << 20, Needs { lanes: 270_336, tables: 16 }).unwrap_err().to_string();
        assert!(error.contains("8448 warps") && error.contains("MiB"), "{error}");
    }

    #[test]
    fn a_card_full_of_lanes_fits_into_64_mib() {
        let found = Partition::new(64 << 20, Needs { lanes: 270_336, tables: 4 << 18 }).unwrap();
        assert_eq!(found.segment_entries, 4);
        assert!(
            Partition::new(1 << 30, Needs { lanes: 270_336, tables: 4 << 18 }).unwrap().segment_entries >= 32
        );
    }
}
