//! Segments in use, and how they are copied.

use warptrace_abi::log::ENTRY_BYTES;
use warptrace_abi::stream::{has_tag, is_open, lane_and_before};

use super::supply::Given;
use crate::MAX_READ;

/// Segments closer to each other than this are copied as one: a copy costs as much as this many bytes.
const GAP_BYTES: usize = 32 << 10;

/// The slot of a segment whose lane has looked into its slot, which may name another one by now.
pub(super) const LOOKED: u32 = u32::MAX;

/// Whose a segment is, as its header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    pub(super) stream: u32,
    pub(super) launch: u32,
    pub(super) lane: u32,
}

/// A segment in use.
#[derive(Clone, Copy, Debug)]
pub(super) struct InUse {
    pub(super) given: Given,
    /// `None` until a header was seen in it.
    pub(super) owner: Option<Owner>,
    /// Entries that were taken, its header included.
    pub(super) taken: u32,
}

impl InUse {
    pub(super) fn new(given: Given) -> Self {
        Self { given, owner: None, taken: 0 }
    }

    /// The entries that are new in the segment, which holds `bytes`. They count as taken from now on.
    pub(super) fn new_entries<'b>(&mut self, bytes: &'b [u8]) -> &'b [[u8; 16]] {
        let (entries, _) = bytes.as_chunks::<{ ENTRY_BYTES as usize }>();
        let mut first = self.taken as usize;
        let new = &entries[first..];
        let stays = |words| has_tag(words, self.given.tag) && !is_open(words);
        let count = new.iter().take_while(|entry| stays(words(entry))).count();
        self.taken += count as u32;
        if first == 0 && count > 0 {
            let header = words(&entries[0]);
            let ([stream, launch, ..], (lane, _)) = (header, lane_and_before(header));
            self.owner = Some(Owner { stream, launch, lane });
            first = 1;
        }
        &entries[first..self.taken as usize]
    }

    /// Whose the segment is, by what it holds, if its header is there. Nothing counts as taken.
    pub(super) fn owner_in(&self, bytes: &[u8]) -> Option<Owner> {
        if self.owner.is_some() {
            return self.owner;
        }
        let mut as_it_was = *self;
        as_it_was.new_entries(&bytes[..ENTRY_BYTES as usize]);
        as_it_was.owner
    }

    /// The entry behind those that were taken, if it is of a run that has not ended. It may change: it does
    /// not count as taken.
    pub(super) fn open_entry(&self, bytes: &[u8]) -> Option<[u32; 4]> {
        let (entries, _) = bytes.as_chunks::<{ ENTRY_BYTES as usize }>();
        let entry = entries.get(self.taken as usize).map(words)?;
        (self.taken > 0 && has_tag(entry, self.given.tag) && is_open(entry)).then_some(entry)
    }
}

/// All segments in use.
#[derive(Clone, Debug, Default)]
pub(super) struct AllInUse {
    /// Those in use, in any order, and some that no longer are.
    listed: Vec<InUse>,
    /// For each segment with which tag it was given, and by which slot; tag 0 if it is not in use.
    given: Vec<(u32, u32)>,
    count: usize,
}

impl AllInUse {
    /// None of this many.
    pub(super) fn none_of(segments: u32) -> Self {
        Self { listed: Vec::new(), given: vec![(0, 0); segments as usize], count: 0 }
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Adds segments that were given.
    pub(super) fn extend(&mut self, given: impl Iterator<Item = Given>) {
        for given in given {
            self.given[given.segment as usize] = (given.tag, given.slot);
            self.listed.push(InUse::new(given));
            self.count += 1;
        }
    }

    /// Takes note that the lane of a segment with this tag has looked into its slot: returns the slot, if that
    /// is news.
    pub(super) fn look(&mut self, segment: u32, tag: u32) -> Option<u32> {
        let given =
            self.given.get_mut(segment as usize).filter(|given| given.0 == tag && given.1 != LOOKED)?;
        Some(std::mem::replace(&mut given.1, LOOKED))
    }

    /// Removes a segment: returns its slot, or [`LOOKED`], if it was in use.
    pub(super) fn remove(&mut self, segment: u32) -> Option<u32> {
        let (tag, slot) = std::mem::take(self.given.get_mut(segment as usize)?);
        self.count -= usize::from(tag != 0);
        (tag != 0).then_some(slot)
    }

    /// Takes all out, to be [put back](Self::put_back).
    pub(super) fn take(&mut self) -> Vec<InUse> {
        self.count = 0;
        let given = &mut self.given;
        self.listed.retain_mut(|InUse { given: it, .. }| {
            let is_given = &mut given[it.segment as usize];
            let is_in_use = is_given.0 == it.tag;
            if is_in_use {
                it.slot = is_given.1;
                *is_given = (0, 0);
            }
            is_in_use
        });
        std::mem::take(&mut self.listed)
    }

    /// Puts segments back that are still in use.
    pub(super) fn put_back(&mut self, segments: Vec<InUse>) {
        for InUse { given, .. } in &segments {
            self.given[given.segment as usize] = (given.tag, given.slot);
        }
        self.count = segments.len();
        self.listed = segments;
    }

    /// Forgets those that are no longer in use, if they are many.
    pub(super) fn tidy(&mut self) {
        if self.listed.len() > 2 * self.count + 1024 {
            let given = &self.given;
            self.listed.retain(|it| given[it.given.segment as usize].0 == it.given.tag);
        }
    }
}

/// The four words of an entry.
pub(super) fn words(entry: &[u8; 16]) -> [u32; 4] {
    let (words, _) = entry.as_chunks::<4>();
    std::array::from_fn(|at| u32::from_le_bytes(words[at]))
}

/// Segments that are copied at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Piece {
    /// How many of the segments in use.
    pub(super) count: usize,
    /// What to copy: addresses and lengths. Short gaps between segments are copied too.
    pub(super) ranges: Vec<(u64, usize)>,
    /// Where each range begins in what was copied.
    starts: Vec<usize>,
}

impl Piece {
    /// The first of the segments, which are in order, as many as are copied at once. Segment 0 is at
    /// `address`.
    pub(super) fn first_of(segments: &[InUse], address: u64, bytes_each: usize) -> Self {
        let mut piece = Self::default();
        let mut copied = 0;
        for segment in segments {
            let at = address + u64::from(segment.given.segment) * bytes_each as u64;
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

    /// Where the bytes at an address are in what was copied.
    pub(super) fn position(&self, address: u64) -> usize {
        let range = self.ranges.partition_point(|(start, _)| *start <= address) - 1;
        self.starts[range] + (address - self.ranges[range].0) as usize
    }
}

#[cfg(test)]
mod tests {
    use warptrace_abi::stream::{OPEN, TAG_STEP, header_words};

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
        assert_eq!(segments.map(|segment| at(segment.given.segment)), [0, 64, 192, 256, 320]);
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
        // A gap ends what has been written.
        bytes[48..].copy_from_slice(&entry([8, 0, 0, TAG_STEP]));
        assert!(segment.new_entries(&bytes).is_empty());
        bytes[32..48].copy_from_slice(&entry([7, 0, 0, TAG_STEP]));
        assert_eq!((segment.new_entries(&bytes).len(), segment.taken), (2, 4));
    }

    #[test]
    fn an_open_entry_is_not_taken() {
        let bytes_of = |entries: [[u32; 4]; 4]| -> Vec<u8> {
            entries.iter().flatten().flat_map(|word| word.to_le_bytes()).collect()
        };
        let mut segment = in_use(7);
        let (header, old) = (header_words(3, 4, 5, 0, TAG_STEP), [9, 9, 9, (5 * TAG_STEP) | OPEN]);
        let (open, later) = ([32, 1, 0, TAG_STEP | OPEN], [32, 2, 0, TAG_STEP | OPEN]);
        assert_eq!(segment.open_entry(&bytes_of([old; 4])), None);
        let bytes = bytes_of([header, open, old, old]);
        assert_eq!((segment.new_entries(&bytes).len(), segment.taken), (0, 1));
        assert_eq!(segment.open_entry(&bytes), Some(open));
        let bytes = bytes_of([header, later, old, old]);
        assert_eq!((segment.new_entries(&bytes).len(), segment.open_entry(&bytes)), (0, Some(later)));
        let ended = [32, 3, 0, TAG_STEP];
        let bytes = bytes_of([header, ended, open, old]);
        assert_eq!((segment.new_entries(&bytes).len(), segment.open_entry(&bytes)), (1, Some(open)));
        let bytes = bytes_of([header, ended, ended, ended]);
        assert_eq!((segment.new_entries(&bytes).len(), segment.open_entry(&bytes)), (2, None));
    }
}
