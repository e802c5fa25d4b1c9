//! Segments in use, and copies of them.

use warptrace_abi::log::ENTRY_BYTES;
use warptrace_abi::stream::{has_tag, lane_and_before};

use super::supply::Given;
use crate::MAX_READ;

/// Segments closer than this are copied together: the fixed cost of a copy corresponds to this many bytes.
const GAP_BYTES: usize = 32 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) stream: u32,
    pub(super) launch: u32,
    pub(super) lane: u32,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct InUse {
    pub(super) segment: u32,
    pub(super) tag: u32,
    /// The queue slot that names the segment; `None` once its lane has read the slot, which can be rewritten.
    pub(super) slot: Option<u32>,
    /// `None` until its header was seen.
    pub(super) owner: Option<Owner>,
    /// Number of entries taken, including the header.
    pub(super) taken: u32,
    /// Whether all entries were taken and no lane writes to it any more.
    pub(super) is_free: bool,
}

impl InUse {
    pub(super) fn new(Given { segment, tag, slot }: Given) -> Self {
        Self { segment, tag, slot: Some(slot), owner: None, taken: 0, is_free: false }
    }

    /// Takes the new entries from the segment's content, `bytes`, and returns them without the header.
    pub(super) fn new_entries<'b>(&mut self, bytes: &'b [u8]) -> &'b [[u8; 16]] {
        let (entries, _) = bytes.as_chunks::<{ ENTRY_BYTES as usize }>();
        let mut first = self.taken as usize;
        let new = &entries[first..];
        let count = new.iter().take_while(|entry| has_tag(words(entry), self.tag)).count();
        self.taken += count as u32;
        if first == 0 && count > 0 {
            let header = words(&entries[0]);
            let ([stream, launch, ..], (lane, _)) = (header, lane_and_before(header));
            self.owner = Some(Owner { stream, launch, lane });
            first = 1;
        }
        &entries[first..self.taken as usize]
    }

    /// Returns the owner from the header in `bytes`, if it is present. Takes no entries.
    pub(super) fn owner_in(&self, bytes: &[u8]) -> Option<Owner> {
        if self.owner.is_some() {
            return self.owner;
        }
        let mut as_it_was = *self;
        as_it_was.new_entries(&bytes[..ENTRY_BYTES as usize]);
        as_it_was.owner
    }
}

#[derive(Clone, Debug, Default)]
pub(super) struct AllInUse {
    /// Segments in use, unordered. Removed ones may stay until [`take`](Self::take) or [`tidy`](Self::tidy).
    listed: Vec<InUse>,
    /// Tag and slot of each segment, the slot as in [`InUse`]; `None` if the segment is not in use.
    states: Vec<Option<(u32, Option<u32>)>>,
    count: usize,
}

impl AllInUse {
    pub(super) fn none_of(segments: u32) -> Self {
        Self { listed: Vec::new(), states: vec![None; segments as usize], count: 0 }
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    pub(super) fn extend(&mut self, given: impl Iterator<Item = Given>) {
        for given in given {
            self.states[given.segment as usize] = Some((given.tag, Some(given.slot)));
            self.listed.push(InUse::new(given));
            self.count += 1;
        }
    }

    /// Registers that the lane of a segment with this tag has read its slot. Returns the slot the first time.
    pub(super) fn take_slot(&mut self, segment: u32, tag: u32) -> Option<u32> {
        let state = self.states.get_mut(segment as usize)?.as_mut();
        state.filter(|(given, _)| *given == tag)?.1.take()
    }

    /// Removes a segment. Returns its slot, as in [`InUse`], if it was in use.
    pub(super) fn remove(&mut self, segment: u32) -> Option<Option<u32>> {
        let (_, slot) = self.states.get_mut(segment as usize)?.take()?;
        self.count -= 1;
        Some(slot)
    }

    /// Removes all segments, to be [put back](Self::put_back).
    pub(super) fn take(&mut self) -> Vec<InUse> {
        self.count = 0;
        let states = &mut self.states;
        self.listed.retain_mut(|it| match states[it.segment as usize].take_if(|(tag, _)| *tag == it.tag) {
            Some((_, slot)) => {
                it.slot = slot;
                true
            }
            None => false,
        });
        std::mem::take(&mut self.listed)
    }

    pub(super) fn put_back(&mut self, segments: Vec<InUse>) {
        for it in &segments {
            self.states[it.segment as usize] = Some((it.tag, it.slot));
        }
        self.count = segments.len();
        self.listed = segments;
    }

    /// Drops entries of segments that are no longer in use, if there are many.
    pub(super) fn tidy(&mut self) {
        if self.listed.len() > 2 * self.count + 1024 {
            let states = &self.states;
            self.listed.retain(|it| states[it.segment as usize].is_some_and(|(tag, _)| tag == it.tag));
        }
    }
}

pub(super) fn words(entry: &[u8; 16]) -> [u32; 4] {
    let (words, _) = entry.as_chunks::<4>();
    std::array::from_fn(|at| u32::from_le_bytes(words[at]))
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) count: usize,
    /// Addresses and lengths to copy, including short gaps between segments.
    pub(super) ranges: Vec<(u64, usize)>,
    /// Start of each range in the copy.
    starts: Vec<usize>,
}

impl Piece {
    /// Returns the first segments, in order, that one copy can take. Segment 0 is at `address`.
    pub(super) fn first_of(segments: &[InUse], address: u64, bytes_each: usize) -> Self {
        let mut piece = Self::default();
        let mut copied = 0;
        for segment in segments {
            let at = address + u64::from(segment.segment) * bytes_each as u64;
            let longer =
                piece.ranges.last().map(|(start, length)| (at - start) as usize - length + bytes_each);
            let joins = longer.filter(|longer| longer - bytes_each <= GAP_BYTES);
            let more = joins.unwrap_or(bytes_each);
            if copied + more > MAX_READ {
                break;
            }
            match piece.ranges.last_mut() {
                Some((_, length)) if joins.is_some() => *length += more,
                _ => {
                    piece.ranges.push((at, bytes_each));
                    piece.starts.push(copied);
                }
            }
            copied += more;
            piece.count += 1;
        }
        piece
    }

    /// Returns the position of an address in the copy.
    pub(super) fn position(&self, address: u64) -> usize {
        let range = self.ranges.partition_point(|(start, _)| *start <= address) - 1;
        self.starts[range] + (address - self.ranges[range].0) as usize
    }
}

#[cfg(test)]
mod tests {
    use warptrace_abi::stream::{TAG_STEP, header_words};

    use super::*;

    fn in_use(segment: u32) -> InUse {
        InUse::new(Given { segment, tag: TAG_STEP, slot: segment })
    }

    #[test]
    fn near_segments_are_copied_together() {
        let far = 2 + (GAP_BYTES / 64) as u32;
        let segments = [0, 1, 3, 3 + far, 4 + far].map(in_use);
        let piece = Piece::first_of(&segments, 1 << 20, 64);
        assert_eq!(piece.count, 5);
        let second = (1 << 20) + u64::from(3 + far) * 64;
        assert_eq!(piece.ranges, [(1 << 20, 4 * 64), (second, 2 * 64)]);
        let at = |segment: u32| piece.position((1 << 20) + u64::from(segment) * 64);
        assert_eq!(segments.map(|segment| at(segment.segment)), [0, 64, 192, 256, 320]);
    }

    #[test]
    fn a_piece_is_not_too_long() {
        let segments: Vec<InUse> = (0..MAX_READ as u32 / 2048 + 5).map(in_use).collect();
        let piece = Piece::first_of(&segments, 0, 2048);
        assert_eq!((piece.count, piece.ranges), (MAX_READ / 2048, vec![(0, MAX_READ)]));
    }

    #[test]
    fn entries_are_new_once_and_only_with_the_tag() {
        let entry =
            |words: [u32; 4]| -> Vec<u8> { words.iter().flat_map(|word| word.to_le_bytes()).collect() };
        let mut segment = in_use(7);
        let old = entry([1, 2, 3, 5 * TAG_STEP]);
        let mut bytes = [old.clone(), old.clone(), old.clone(), old].concat();
        assert!(segment.new_entries(&bytes).is_empty() && segment.owner.is_none());
        bytes[..16].copy_from_slice(&entry(header_words(3, 4, 5, 0, TAG_STEP)));
        bytes[16..32].copy_from_slice(&entry([9, 0, 0, TAG_STEP | 3]));
        let found: Vec<u32> = segment.new_entries(&bytes).iter().map(|entry| words(entry)[0]).collect();
        assert_eq!(found, [9]);
        assert_eq!(segment.owner, Some(Owner { stream: 3, launch: 4, lane: 5 }));
        // A gap ends the written entries.
        bytes[48..].copy_from_slice(&entry([8, 0, 0, TAG_STEP]));
        assert!(segment.new_entries(&bytes).is_empty());
        bytes[32..48].copy_from_slice(&entry([7, 0, 0, TAG_STEP]));
        assert_eq!((segment.new_entries(&bytes).len(), segment.taken), (2, 4));
    }
}
