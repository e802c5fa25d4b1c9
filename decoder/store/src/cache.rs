//! A cache of an object's blocks.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// Bytes of a block. Requests cover whole blocks.
pub(crate) const BLOCK: u64 = 8 << 10;

/// Maximum number of sequential streams of reads that are tracked.
const STREAMS: usize = 16;

const MOST_AHEAD: u64 = 2 << 20;

#[derive(Debug, Default)]
pub(crate) struct Cache {
    blocks: HashMap<u64, (Arc<[u8]>, u64)>,
    by_use: BTreeMap<u64, u64>,
    uses: u64,
    bytes: u64,
    pub(crate) in_flight: HashSet<u64>,
    /// End and total bytes of the last streams of reads, the latest last.
    streams: Vec<(u64, u64)>,
}

impl Cache {
    pub(crate) fn get(&mut self, block: u64) -> Option<Arc<[u8]>> {
        let (bytes, used) = self.blocks.get_mut(&block)?;
        self.uses += 1;
        self.by_use.remove(used);
        self.by_use.insert(self.uses, block);
        *used = self.uses;
        Some(bytes.clone())
    }

    pub(crate) fn is_known(&self, block: u64) -> bool {
        self.blocks.contains_key(&block) || self.in_flight.contains(&block)
    }

    /// Adds a block. Drops the least recently used blocks while there are more than `most` bytes.
    pub(crate) fn keep(&mut self, block: u64, bytes: Arc<[u8]>, most: u64) {
        self.uses += 1;
        self.bytes += bytes.len() as u64;
        self.by_use.insert(self.uses, block);
        if let Some((old, used)) = self.blocks.insert(block, (bytes, self.uses)) {
            self.bytes -= old.len() as u64;
            self.by_use.remove(&used);
        }
        while self.bytes > most {
            let Some((_, oldest)) = self.by_use.pop_first() else { break };
            if let Some((old, _)) = self.blocks.remove(&oldest) {
                self.bytes -= old.len() as u64;
            }
        }
    }

    /// Notes a read of `length` bytes at `offset`. Returns the number of bytes to read ahead: as many as the
    /// preceding reads of the stream have read, so that at most half of all bytes are wasted.
    pub(crate) fn ahead(&mut self, offset: u64, length: u64) -> u64 {
        let end = offset.saturating_add(length);
        let goes_on = |(before, _): &(u64, u64)| *before <= offset && offset - *before < BLOCK;
        let Some(at) = self.streams.iter().rposition(goes_on) else {
            if self.streams.len() == STREAMS {
                self.streams.remove(0);
            }
            self.streams.push((end, length));
            return 0;
        };
        let (_, read) = self.streams.remove(at);
        self.streams.push((end, read.saturating_add(length)));
        // A walk over single headers does not read ahead.
        if read < BLOCK { 0 } else { read.min(MOST_AHEAD) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_longest_ago_goes_first() {
        let mut cache = Cache::default();
        let block = |byte: u8| Arc::<[u8]>::from(vec![byte; 10]);
        for number in 0..3 {
            cache.keep(number, block(number as u8), 30);
        }
        assert!(cache.get(0).is_some());
        cache.keep(3, block(3), 30);
        assert!(cache.get(1).is_none());
        assert_eq!([0, 2, 3].map(|number| cache.get(number).unwrap()[0]), [0, 2, 3]);
        cache.keep(3, block(4), 30);
        assert_eq!((cache.bytes, cache.by_use.len()), (30, 3));
        assert_eq!(cache.get(3).unwrap()[0], 4);
    }

    #[test]
    fn only_reads_that_go_on_read_ahead() {
        let mut cache = Cache::default();
        assert_eq!(cache.ahead(0, 100_000), 0);
        assert_eq!(cache.ahead(1_000_000, 100_000), 0);
        assert_eq!(cache.ahead(100_000, 100_000), 100_000);
        assert_eq!(cache.ahead(1_100_010, 50_000), 100_000);
        assert_eq!(cache.ahead(200_000, 100_000), 200_000);
        assert_eq!(cache.ahead(300_000, 100 << 20), 300_000);
        assert_eq!(cache.ahead(300_000 + (100 << 20), 100_000), MOST_AHEAD);
        assert_eq!(cache.ahead(u64::MAX - 100, 16), 0);
        assert_eq!(cache.ahead(u64::MAX - 84, 84), 0);
    }
}
