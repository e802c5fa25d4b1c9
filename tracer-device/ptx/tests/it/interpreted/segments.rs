//! Segments and slots of the queue, as known to a host that empties streamed logs.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng;
use warptrace_abi::log::Entry;
use warptrace_abi::stream::{TAG_STEP, has_tag, is_original, is_sole, lane_and_before, untagged};

use super::program::below;

/// Number of older tags that unwritten memory may hold.
const OLD_TAGS: u64 = 1_000;
pub(crate) const LAUNCH: u32 = 0x0123_4567;

/// A segment, as the host knows it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Segment {
    /// 0 if the segment is free.
    pub(crate) tag: u32,
    /// Ticket of its current or last owner.
    pub(crate) ticket: u64,
    /// Stream and lane, once the header has been seen.
    pub(crate) owner: Option<(u32, u32)>,
    /// Number of entries processed, without the header.
    pub(crate) taken: usize,
    /// Content when it was provided or freed.
    pub(crate) before: Vec<[u32; 4]>,
    /// Content in the snapshot.
    pub(crate) words: Vec<[u32; 4]>,
    /// First snapshot that has seen each entry.
    pub(crate) seen: Vec<Option<u32>>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    /// The next ticket that it serves.
    pub(crate) next: u64,
    /// The segment that it gave last, with its tag.
    pub(crate) given: Option<(usize, u32)>,
}

#[derive(Clone, Debug)]
pub(crate) struct Taken {
    pub(crate) stream: u32,
    pub(crate) leader: u32,
    /// The lane's ticket for the segment.
    pub(crate) ticket: u64,
    pub(crate) entry: Entry,
    /// Whether the run has no copies, and whether this is the original.
    pub(crate) is_sole: bool,
    pub(crate) is_original: bool,
    /// First snapshot that has seen it.
    pub(crate) seen: u32,
}

impl Segment {
    pub(crate) fn has(&self, words: [u32; 4]) -> bool {
        has_tag(words, self.tag)
    }

    pub(crate) fn header(&self) -> Option<(u32, u32)> {
        let [stream, launch, ..] = self.words[0];
        let (lane, _) = lane_and_before(self.words[0]);
        self.seen[0].map(|_| {
            assert_eq!(launch, LAUNCH);
            (stream, lane)
        })
    }

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

pub(crate) fn old_entry(random: &mut ChaCha8Rng, first_tag: u32) -> [u32; 4] {
    let words = random.next_u64();
    let tag = first_tag.wrapping_sub((1 + below(random, OLD_TAGS) as u32) * TAG_STEP);
    [words as u32, (words >> 32) as u32, words as u32, tag | words as u32 & (TAG_STEP - 1)]
}
