//! Assignment of segments to lanes: the host's side of the queue (`warptrace_abi::stream`).

use std::collections::VecDeque;

use warptrace_abi::stream::{SLOT_BYTES, TAG_STEP, slot_words};

/// A segment that was given to a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Given {
    pub(super) segment: u32,
    /// Tag of the entries that the lane writes.
    pub(super) tag: u32,
    /// Queue slot that names the segment.
    pub(super) slot: u32,
}

/// Slots to write: the offset of the first one in the queue, and their bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Slots {
    pub(super) offset: u64,
    pub(super) bytes: Vec<u8>,
}

/// The supply of segments. Each is free, given to a ticket, or in use by the lane that took the ticket.
///
/// A lane may read its slot long after it took its ticket, when later tickets have wrapped around the queue.
/// So a slot is rewritten only after the header of its segment was seen, or the segment is free again. A
/// taken ticket whose slot cannot be written yet is skipped, so that later tickets need not wait.
#[derive(Debug)]
pub(super) struct Supply {
    /// For each queue slot, whether a lane may still read it.
    awaited: Vec<bool>,
    /// Whether lanes have given up, so that some slots may never be read.
    patience_lost: bool,
    /// The last tag of each segment.
    tags: Vec<u32>,
    free: Vec<u32>,
    /// The next ticket that gets a segment. All lower tickets have got one or are skipped.
    next: u64,
    skipped: Vec<u64>,
    /// Number of tickets known to be taken.
    tickets: u64,
    /// Given segments whose tickets are not known to be taken, ordered by ticket.
    waiting: VecDeque<(u64, Given)>,
}

impl Supply {
    /// Returns a supply of free segments that were never given.
    pub(super) fn new(segments: u32) -> Self {
        Self::after(segments, 0, 0)
    }

    /// Returns a supply of free segments, for memory with tags up to `tag` and a queue with `tickets` taken.
    pub(super) fn after(segments: u32, tag: u32, tickets: u64) -> Self {
        Self {
            awaited: vec![false; segments.next_power_of_two() as usize],
            patience_lost: false,
            tags: vec![tag; segments as usize],
            // Taken from the end.
            free: (0..segments).rev().collect(),
            next: tickets,
            skipped: Vec::new(),
            tickets,
            waiting: VecDeque::new(),
        }
    }

    /// Returns the number of queue slots, a power of two.
    pub(super) fn slots(&self) -> u32 {
        self.awaited.len() as u32
    }

    pub(super) fn segments(&self) -> u32 {
        self.tags.len() as u32
    }

    /// Returns true if a taken ticket has no segment, because none is free or its slot cannot be written.
    pub(super) fn is_short(&self) -> bool {
        self.free.is_empty() && self.tickets > self.next || !self.skipped.is_empty()
    }

    pub(super) fn last_tag(&self) -> u32 {
        self.tags.iter().copied().max().unwrap_or_default()
    }

    /// Frees segments. Adjacent ones are given together, so that they are copied together.
    pub(super) fn free(&mut self, segments: &[u32]) {
        self.free.extend(segments.iter().rev());
    }

    /// Registers that a lane has read a slot, or that no lane will read it.
    pub(super) fn slot_was_read(&mut self, slot: u32) {
        self.awaited[slot as usize] = false;
    }

    /// Registers that lanes have given up. From now on, unread slots are rewritten if lanes wait for them: a
    /// lane that reads too late takes another ticket.
    pub(super) fn lose_patience(&mut self) {
        self.patience_lost = true;
    }

    /// Registers that no kernel runs: only slots of tickets that no lane has taken can still be read.
    pub(super) fn all_slots_were_read(&mut self) {
        self.awaited.fill(false);
        self.waiting.iter().for_each(|(_, given)| self.awaited[given.slot as usize] = true);
        self.skipped.clear();
        self.patience_lost = false;
    }

    /// Gives free segments to the next possible tickets. Returns the writes to the queue, in order.
    pub(super) fn give(&mut self) -> Vec<Slots> {
        let mut writes: Vec<Slots> = Vec::new();
        let mut skipped = std::mem::take(&mut self.skipped);
        skipped.retain(|&ticket| !self.give_to(ticket, &mut writes));
        self.skipped = skipped;
        while !self.free.is_empty() {
            if !self.give_to(self.next, &mut writes) {
                // No lane has taken this ticket, so it is not skipped. The segments remain free.
                if self.next >= self.tickets {
                    break;
                }
                self.skipped.push(self.next);
            }
            self.next += 1;
        }
        writes
    }

    /// Gives a free segment to a ticket, by appending to `writes`. Returns false if this is not possible yet.
    fn give_to(&mut self, ticket: u64, writes: &mut Vec<Slots>) -> bool {
        let slots = self.slots();
        let slot = (ticket & u64::from(slots - 1)) as u32;
        if self.awaited[slot as usize] && !(self.patience_lost && self.tickets > ticket) {
            return false;
        }
        let Some(segment) = self.free.pop() else { return false };
        let tag = &mut self.tags[segment as usize];
        // There are 2^26 tags. Entries of the previous use of a tag were overwritten long ago.
        *tag = match tag.wrapping_add(TAG_STEP) {
            0 => TAG_STEP,
            tag => tag,
        };
        let given = Given { segment, tag: *tag, slot };
        self.awaited[slot as usize] = true;
        let words = slot_words(segment, given.tag, ticket, slots).map(u32::to_le_bytes);
        let offset = u64::from(slot) * u64::from(SLOT_BYTES);
        match writes.last_mut() {
            Some(last) if last.offset + last.bytes.len() as u64 == offset => {
                last.bytes.extend(words.as_flattened());
            }
            _ => writes.push(Slots { offset, bytes: words.as_flattened().to_vec() }),
        }
        // Skipped tickets are taken, so they come before all that are not.
        let at = if ticket < self.next { 0 } else { self.waiting.len() };
        self.waiting.insert(at, (ticket, given));
        true
    }

    /// Returns the segments taken since the last call. There may be more tickets than segments.
    pub(super) fn taken(&mut self, tickets: u64) -> impl Iterator<Item = Given> {
        self.tickets = tickets;
        let taken = self.waiting.partition_point(|(ticket, _)| *ticket < tickets);
        self.waiting.drain(..taken).map(|(_, given)| given)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(writes: &[Slots]) -> Vec<(u64, Vec<u32>)> {
        let words =
            |bytes: &[u8]| bytes.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect();
        writes.iter().map(|slots| (slots.offset, words(&slots.bytes))).collect()
    }

    #[test]
    fn segments_go_round_with_new_tags() {
        let mut supply = Supply::new(3);
        assert_eq!((supply.slots(), supply.segments()), (4, 3));
        let round = 1 << 24;
        assert_eq!(
            words(&supply.give()),
            [(0, vec![round, TAG_STEP, 1 | round, TAG_STEP, 2 | round, TAG_STEP])]
        );
        assert_eq!(supply.give(), []);
        let taken: Vec<Given> = supply.taken(2).collect();
        let given = |segment: u32| Given { segment, tag: TAG_STEP, slot: segment };
        assert_eq!(taken, [given(0), given(1)]);
        assert_eq!((supply.waiting.len(), supply.next), (1, 3));
        supply.free(&[0, 1]);
        (0..2).for_each(|slot| supply.slot_was_read(slot));
        // The end of the queue lies between them.
        assert_eq!(
            words(&supply.give()),
            [(24, vec![round, 2 * TAG_STEP]), (0, vec![1 | (2 * round), 2 * TAG_STEP])]
        );
        let taken: Vec<u32> = supply.taken(9).map(|given| given.segment).collect();
        assert_eq!((taken, supply.waiting.len()), (vec![2, 0, 1], 0));
        assert_eq!(supply.taken(9).count(), 0);
        assert_eq!(supply.last_tag(), 2 * TAG_STEP);
    }

    #[test]
    fn a_slot_that_no_lane_has_read_stays() {
        let mut supply = Supply::new(3);
        let all_of = |writes: &[Slots]| words(writes).iter().map(|(_, words)| words.len() / 2).sum::<usize>();
        assert_eq!(all_of(&supply.give()), 3);
        assert_eq!(supply.taken(5).count(), 3);
        // The lane with ticket 0 is slow; others fill their segments repeatedly.
        supply.free(&[1, 2]);
        (1..3).for_each(|slot| supply.slot_was_read(slot));
        // Ticket 3 has slot 3. Ticket 4, for slot 0, was taken and is skipped. Ticket 5 has slot 1.
        assert_eq!((all_of(&supply.give()), supply.skipped.clone()), (2, vec![4]));
        assert_eq!(supply.taken(6).map(|given| given.slot).collect::<Vec<_>>(), [3, 1]);
        // Ticket 8, also for slot 0, was not taken, and waits for its turn.
        supply.free(&[1, 2]);
        [1, 3].iter().for_each(|slot| supply.slot_was_read(*slot));
        assert_eq!((all_of(&supply.give()), supply.skipped.clone()), (2, vec![4]));
        supply.free(&[1]);
        assert_eq!((all_of(&supply.give()), supply.next), (0, 8));
        // The lane has read its slot, and ticket 4 is served first.
        supply.slot_was_read(0);
        assert_eq!((all_of(&supply.give()), supply.skipped.len()), (1, 0));
        assert_eq!(supply.taken(6).map(|given| given.slot).collect::<Vec<_>>(), [0]);
    }

    #[test]
    fn where_lanes_have_given_up_none_waits_for_those_that_never_read() {
        let mut supply = Supply::new(2);
        assert_eq!(supply.give().len(), 1);
        assert_eq!(supply.taken(2).count(), 2);
        supply.free(&[1]);
        supply.slot_was_read(1);
        assert_eq!(supply.give(), []);
        supply.lose_patience();
        assert_eq!(supply.give(), [], "no lane waits for it");
        assert_eq!(supply.taken(3).count(), 0);
        assert_eq!(words(&supply.give()), [(0, vec![1 | (2 << 24), 2 * TAG_STEP])]);
        // The kernel has ended: the other slot is also free.
        assert_eq!(supply.taken(3).count(), 1);
        supply.free(&[0, 1]);
        supply.all_slots_were_read();
        assert_eq!(words(&supply.give()).len(), 2);
    }

    #[test]
    fn no_tag_is_0() {
        let mut supply = Supply::after(1, u32::MAX - (TAG_STEP - 1), 1 << 40);
        assert_eq!(words(&supply.give()), [(0, vec![1 << 24, TAG_STEP])]);
    }
}
