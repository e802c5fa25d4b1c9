//! What a host that empties streamed logs knows of segments and of the slots that give them out.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;
use warptrace_abi::log::Entry;
use warptrace_abi::stream::{TAG_STEP, has_tag, is_original, is_sole, lane_and_before, untagged};

use super::program::below;

/// As many tags before the first one are in memory that nothing has written yet.
const OLD_TAGS: u64 = 1_000;
/// Number of the launch.
pub(crate) const LAUNCH: u32 = 0x0123_4567;

/// A segment, as the host knows it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Segment {
    /// 0: it is free.
    pub(crate) tag: u32,
    /// Whose it is or was.
    pub(crate) ticket: u64,
    /// Stream and lane, once the header has been seen.
    pub(crate) owner: Option<(u32, u32)>,
    /// Entries that have been taken, without the header.
    pub(crate) taken: usize,
    /// What was in it when it was given out, or freed.
    pub(crate) before: Vec<[u32; 4]>,
    /// What the snapshot holds.
    pub(crate) words: Vec<[u32; 4]>,
    /// Number of the snapshot in which each entry was first seen.
    pub(crate) seen: Vec<Option<u32>>,
}

/// A slot of the queue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    /// The ticket that it serves next.
    pub(crate) next: u64,
    /// The segment that it gave last, and its tag.
    pub(crate) given: Option<(usize, u32)>,
}

/// A run that was taken from a segment.
#[derive(Clone, Debug)]
pub(crate) struct Taken {
    pub(crate) stream: u32,
    pub(crate) leader: u32,
    /// For which the lane had got the segment.
    pub(crate) ticket: u64,
    pub(crate) entry: Entry,
    /// Whether there are no copies of it, and whether this is none.
    pub(crate) is_sole: bool,
    pub(crate) is_original: bool,
    /// Number of the snapshot in which it was first seen.
    pub(crate) seen: u32,
}

impl Segment {
    /// Whether these words are an entry, or a header, that was written to it.
    pub(crate) fn has(&self, words: [u32; 4]) -> bool {
        has_tag(words, self.tag)
    }

    /// Stream and lane, if the header has been seen.
    pub(crate) fn header(&self) -> Option<(u32, u32)> {
        let [stream, launch, ..] = self.words[0];
        let (lane, _) = lane_and_before(self.words[0]);
        self.seen[0].map(|_| {
            assert_eq!(launch, LAUNCH);
            (stream, lane)
        })
    }

    /// What the header says of the segment that the lane had before.
    pub(crate) fn before_of_lane(&self) -> u32 {
        lane_and_before(self.words[0]).1
    }

    pub(crate) fn run(&self, index: usize, (stream, leader): (u32, u32)) -> Taken {
        let words = self.words[index];
        Taken {
            stream,
            leader,
            ticket: self.ticket,
            entry: untagged(words),
            is_sole: is_sole(words),
            is_original: is_original(words, leader),
            seen: self.seen[index].expect("it was seen"),
        }
    }
}

/// An entry that was left from earlier.
pub(crate) fn old_entry(random: &mut ChaCha8Rng, first_tag: u32) -> [u32; 4] {
    let words = random.next_u64();
    let tag = first_tag.wrapping_sub((1 + below(random, OLD_TAGS) as u32) * TAG_STEP);
    [words as u32, (words >> 32) as u32, words as u32, tag | words as u32 & (TAG_STEP - 1)]
}
