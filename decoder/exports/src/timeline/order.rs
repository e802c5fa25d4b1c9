//! Which launches followed which.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::error::ExportError;
use crate::source::ExportSource;

/// A launch that began when all that began before had ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Follows {
    /// Its number.
    pub(super) launch: u32,
    /// For how long none ran before, in nanoseconds.
    pub(super) gap: u64,
}

/// Which launches followed which, by their first and last blocks.
#[derive(Default)]
pub(super) struct Order {
    /// By launch and block: of the first block of one that follows.
    first: BTreeMap<(u32, u32), Follows>,
    /// Of the last block of one that is followed.
    last: BTreeMap<(u32, u32), Vec<Follows>>,
}

/// When a launch ran: begin and end, its number, its first block and the one that ended last.
struct Ran {
    begin: u64,
    end: u64,
    launch: u32,
    first: u32,
    last: u32,
}

impl Order {
    /// Reads when the selected launches ran. Memory: the blocks of one launch at a time.
    pub(super) fn new(source: &ExportSource<'_>) -> Result<Self, ExportError> {
        let mut ran = Vec::new();
        for info in source.launches() {
            let Some(found) = source.blocks(info)? else { continue };
            let first = found.blocks.iter().min_by_key(|block| (block.begin_nanoseconds, block.block));
            let last =
                found.blocks.iter().max_by_key(|block| (block.end_nanoseconds(), Reverse(block.block)));
            if let (Some(first), Some(last)) = (first, last) {
                let (begin, launch) = (found.begin, info.number());
                let end = begin.saturating_add(found.nanoseconds);
                ran.push(Ran { begin, end, launch, first: first.block, last: last.block });
            }
        }
        ran.sort_by_key(|ran| (ran.begin, ran.launch));
        let mut order = Self::default();
        // The one that ended last so far.
        let mut before: Option<&Ran> = None;
        for ran in &ran {
            if let Some((before, gap)) = before.and_then(|it| Some((it, ran.begin.checked_sub(it.end)?))) {
                let follows = Follows { launch: ran.launch, gap };
                order.first.insert((ran.launch, ran.first), follows);
                order.last.entry((before.launch, before.last)).or_default().push(follows);
            }
            if before.is_none_or(|before| ran.end >= before.end) {
                before = Some(ran);
            }
        }
        Ok(order)
    }

    /// Returns whom a block's launch followed, if the block is its first.
    pub(super) fn follows(&self, launch: u32, block: u32) -> Option<Follows> {
        self.first.get(&(launch, block)).copied()
    }

    /// Returns which launches followed that of the block, if the block is its last.
    pub(super) fn followed_by(&self, launch: u32, block: u32) -> Vec<Follows> {
        self.last.get(&(launch, block)).cloned().unwrap_or_default()
    }
}
