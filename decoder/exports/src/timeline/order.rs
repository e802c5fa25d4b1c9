//! The order of launches that did not overlap.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::error::ExportError;
use crate::source::ExportSource;

/// A launch that began after all earlier ones had ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Follows {
    pub(super) launch: u32,
    pub(super) gap: u64,
}

/// The launches that followed others, by their first and last blocks.
#[derive(Default)]
pub(super) struct Order {
    /// By launch and first block of the following launch.
    first: BTreeMap<(u32, u32), Follows>,
    /// By launch and last block of the preceding launch.
    last: BTreeMap<(u32, u32), Vec<Follows>>,
}

/// Begin and end of a launch, its number, its first block and the block that ended last.
struct Ran {
    begin: u64,
    end: u64,
    launch: u32,
    first: u32,
    last: u32,
}

impl Order {
    /// Reads when the selected launches ran. Memory: the blocks of one launch.
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
        // The launch with the latest end so far.
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

    pub(super) fn follows(&self, launch: u32, block: u32) -> Option<Follows> {
        self.first.get(&(launch, block)).copied()
    }

    pub(super) fn followed_by(&self, launch: u32, block: u32) -> Vec<Follows> {
        self.last.get(&(launch, block)).cloned().unwrap_or_default()
    }
}
