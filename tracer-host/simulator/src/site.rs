//! Program points: the source position where a lane waits, as a number that can be compared.
//!
//! The order decides which lanes of a diverged warp run first (see `warp`). A point is packed as
//!
//! ```text
//! bits 63..48  line of the kernel: the call of the outermost function, or the lane's line
//! bit  47      1 outside of functions
//! bits 46..44  7 - depth of calls (deeper ones come first)
//! bits 43..28  line
//! bits 27..16  column
//! bits 15..12  kind of the operation
//! bits 11..0   location, if the operation names it
//! ```
//!
//! Equal numbers mean the same operation at the same position. `u64::MAX` is not a point.

use std::cell::Cell;

use warptrace_device::simt::host::{Site, WarpOp};

/// Larger than every program point.
pub(crate) const NO_POINT: u64 = u64::MAX;
const CALLED_SHIFT: u32 = 48;
const KERNEL_SHIFT: u32 = 47;
const DEPTH_SHIFT: u32 = 44;
const LINE_SHIFT: u32 = 28;
const COLUMN_SHIFT: u32 = 16;
const KIND_SHIFT: u32 = 12;
const COLUMN_MAX: u32 = (1 << 12) - 1;
/// Maximum distinguishable line.
const LINE_MAX: u32 = (1 << 16) - 1;
const LOCATION_MASK: u64 = (1 << KIND_SHIFT) - 1;
const MAX_DEPTH: u32 = 7;
const CACHE_ENTRIES: usize = 256;

#[derive(Clone, Copy)]
struct Entry {
    site: Option<Site>,
    line: u32,
    column: u32,
}

/// Functions that a lane is in, as reported by `Lane::call`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Calls {
    pub(crate) depth: u32,
    /// Line of the kernel with the call of the outermost function.
    pub(crate) line: u32,
}

/// Cache of the position of each site. One per thread of the simulator.
pub(crate) struct SiteTable {
    /// Direct-mapped by the address of the `Location`, which never changes. A position may have several
    /// addresses (one per codegen unit), so points are compared by packed number.
    cache: Box<[Cell<Entry>]>,
}

impl SiteTable {
    pub(crate) fn new() -> Self {
        let empty = Entry { site: None, line: 0, column: 0 };
        Self { cache: (0..CACHE_ENTRIES).map(|_| Cell::new(empty)).collect() }
    }

    /// Returns the program point of `op` at `site` for a lane in these calls.
    #[inline]
    pub(crate) fn point(&self, site: Site, op: WarpOp, calls: Calls) -> u64 {
        let address = std::ptr::from_ref(site).addr();
        // A `Location` is 8-byte aligned. The shift by 8 mixes in bits in which neighbours differ.
        let slot = &self.cache[((address >> 3) ^ (address >> 8)) % CACHE_ENTRIES];
        let mut entry = slot.get();
        if !entry.site.is_some_and(|known| std::ptr::eq(known, site)) {
            let (line, column) = (site.line().min(LINE_MAX), site.column().min(COLUMN_MAX));
            entry = Entry { site: Some(site), line, column };
            slot.set(entry);
        }
        let location = match op {
            WarpOp::Located { location } => u64::from(location) & LOCATION_MASK,
            _ => 0,
        };
        let Entry { line, column, .. } = entry;
        let called = if calls.depth == 0 { line } else { calls.line.min(LINE_MAX) };
        u64::from(called) << CALLED_SHIFT
            | u64::from(calls.depth == 0) << KERNEL_SHIFT
            | u64::from(MAX_DEPTH - calls.depth.min(MAX_DEPTH)) << DEPTH_SHIFT
            | u64::from(line) << LINE_SHIFT
            | u64::from(column) << COLUMN_SHIFT
            | kind(op) << KIND_SHIFT
            | location
    }
}

/// Rank of operations at the same position: an operation that a helper is likely to execute first comes
/// first. Never 15, so no point equals [`NO_POINT`].
#[inline]
const fn kind(op: WarpOp) -> u64 {
    match op {
        WarpOp::Converge => 0,
        WarpOp::Ballot { .. } => 1,
        WarpOp::MatchAny { .. } => 2,
        WarpOp::Shuffle { .. } => 3,
        WarpOp::SyncWarp { .. } => 4,
        WarpOp::SyncThreads => 5,
        WarpOp::Yield => 6,
        WarpOp::Rejoin => 7,
        WarpOp::Join => 8,
        WarpOp::Located { .. } => 9,
    }
}

#[cfg(test)]
mod tests {
    use core::panic::Location;

    use super::*;

    #[test]
    fn points_follow_the_source_within_a_file() {
        let table = SiteTable::new();
        let first = Location::caller();
        let (second, third) = (Location::caller(), Location::caller());
        let point = |site| table.point(site, WarpOp::Converge, Calls::default());
        assert!(point(first) < point(second), "an earlier line comes first");
        assert!(point(second) < point(third), "an earlier column comes first");
        assert_eq!(point(second), point(second));
        assert!(
            point(first) < table.point(first, WarpOp::Yield, Calls::default()),
            "kinds at one site are told apart"
        );
        assert!(point(third) < NO_POINT);
    }

    #[test]
    fn a_called_function_comes_where_it_was_called() {
        let table = SiteTable::new();
        let (before, caller) = (Location::caller(), Location::caller());
        let (after, function) = (Location::caller(), Location::caller());
        let point = |site: Site, depth, called: Site| {
            let calls = Calls { depth, line: called.line() };
            table.point(site, WarpOp::Located { location: 3 }, calls)
        };
        let kernel = |site| point(site, 0, site);
        assert_eq!(before.line(), caller.line(), "lines count");
        let called = point(function, 1, caller);
        assert!(called < kernel(after) && called < kernel(caller), "though it stands below");
        assert!(point(function, 1, caller) < point(before, 1, after), "calls are in order");
        assert!(point(function, 2, caller) < called);
        assert_eq!(
            point(function, 7, caller),
            point(function, 300, caller),
            "deeper calls are not told apart"
        );
    }

    #[test]
    fn a_join_comes_before_the_locations_at_its_position() {
        let table = SiteTable::new();
        let site = Location::caller();
        let point = |op| table.point(site, op, Calls::default());
        let [first, second] = [1, 2].map(|location| point(WarpOp::Located { location }));
        assert!(point(WarpOp::Join) < first && first < second);
    }
}
