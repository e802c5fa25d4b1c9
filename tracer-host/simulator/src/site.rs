//! Program points: where in the source a lane waits, as one number that can be compared.
//!
//! The order decides which lanes of a diverged warp run first (see `warp`). A point is packed as
//!
//! ```text
//! bits 63..56  255
//! bits 55..48  255 - rank of the file in the warp (files seen later are deeper, so they come first)
//! bits 47..28  line
//! bits 27..16  column
//! bits 15..12  kind of the operation
//! bits 11..0   location, where the operation names it
//! ```
//!
//! and in kernels that tell of their structure (`#[kernels]`) the first three parts are
//!
//! ```text
//! bits 63..48  line of the kernel: where the outermost function was called, or the lane's own
//! bit  47      1 outside of functions
//! bits 46..44  7 - depth of calls (deeper ones come first)
//! bits 43..28  line
//! ```
//!
//! so that equal numbers mean the same operation at the same place and u64::MAX is no point.

use std::cell::{Cell, RefCell};

use warptrace_device::simt::host::{Site, WarpOp};

/// Larger than every program point.
pub(crate) const NO_POINT: u64 = u64::MAX;
const FILE_SHIFT: u32 = 48;
const LINE_SHIFT: u32 = 28;
const LINE_MAX: u32 = (1 << 20) - 1;
const COLUMN_SHIFT: u32 = 16;
const COLUMN_MAX: u32 = (1 << 12) - 1;
const KIND_SHIFT: u32 = 12;
const LOCATION_MASK: u64 = (1 << KIND_SHIFT) - 1;
const KERNEL_SHIFT: u32 = 47;
const DEPTH_SHIFT: u32 = 44;
const MAX_DEPTH: u32 = 7;
/// Last line that is told from others in kernels that tell of their structure.
const STRUCTURED_LINE_MAX: u32 = (1 << 16) - 1;
/// Top of points in kernels that do not tell of their structure.
const PLAIN: u64 = 255 << 56;
const MAX_RANK: usize = 255;
const CACHE_ENTRIES: usize = 256;

#[derive(Clone, Copy)]
struct Entry {
    site: Option<Site>,
    file: u32,
    position: u64,
}

/// How a lane has come to where it is, in a kernel that tells of its structure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Calls {
    /// How many functions it is in.
    pub(crate) depth: u32,
    /// Line of the kernel in which the outermost of them was called.
    pub(crate) line: u32,
}

/// Numbers the files and caches the position of each site, per thread of the simulator.
pub(crate) struct SiteTable {
    /// Direct mapped by the address of the `Location`, which never changes. One source place may have several
    /// addresses (one per codegen unit), so equality is decided on the packed number, never on the address.
    cache: Box<[Cell<Entry>]>,
    files: RefCell<Vec<&'static str>>,
}

/// The file's part of a point, with the depth of calls.
#[inline]
pub(crate) fn file(point: u64) -> u64 {
    point >> FILE_SHIFT
}

/// The column's part of a point.
#[inline]
pub(crate) fn column(point: u64) -> u64 {
    point >> COLUMN_SHIFT & u64::from(COLUMN_MAX)
}

/// Whether a point is the end of a loop's body, from which lanes jump back or leave the loop.
#[inline]
pub(crate) fn is_join(point: u64) -> bool {
    point >> KIND_SHIFT & 15 == kind(WarpOp::Join)
}

/// Whether a point belongs to code whose order of points says all about its structure.
#[inline]
pub(crate) fn is_structured(point: u64) -> bool {
    is_join(point) || point >> KIND_SHIFT & 15 == kind(WarpOp::Located { location: 0 })
}

/// The files in which a warp has met operations, in the order of the first meeting.
#[derive(Default)]
pub(crate) struct FileOrder {
    files: RefCell<Vec<u32>>,
}

impl SiteTable {
    pub(crate) fn new() -> Self {
        let empty = Entry { site: None, file: 0, position: 0 };
        Self { cache: (0..CACHE_ENTRIES).map(|_| Cell::new(empty)).collect(), files: RefCell::default() }
    }

    /// The program point of `op` at `site`, for the warp that `order` belongs to. `calls` are those of the lane, if
    /// the kernel tells of its structure.
    #[inline]
    pub(crate) fn point(&self, order: &FileOrder, site: Site, op: WarpOp, calls: Option<Calls>) -> u64 {
        let address = std::ptr::from_ref(site).addr();
        // A `Location` is 8-byte aligned; the shift by 5 mixes in bits that neighbours in one table differ
        // in.
        let slot = &self.cache[((address >> 3) ^ (address >> 8)) % CACHE_ENTRIES];
        let mut entry = slot.get();
        if !entry.site.is_some_and(|known| std::ptr::eq(known, site)) {
            entry = self.enter(site);
            slot.set(entry);
        }
        let location = match op {
            WarpOp::Located { location } => u64::from(location) & LOCATION_MASK,
            _ => 0,
        };
        let rest = entry.position & ((1 << LINE_SHIFT) - 1) | kind(op) << KIND_SHIFT | location;
        let line = entry.position >> LINE_SHIFT;
        let Some(Calls { depth, line: called }) = calls else {
            return PLAIN | order.depth(entry.file) << FILE_SHIFT | line << LINE_SHIFT | rest;
        };
        let line = line.min(STRUCTURED_LINE_MAX.into());
        let of_kernel = if depth == 0 { line } else { called.min(STRUCTURED_LINE_MAX).into() };
        let outside = u64::from(depth == 0) << KERNEL_SHIFT;
        let deeper = u64::from(MAX_DEPTH - depth.min(MAX_DEPTH)) << DEPTH_SHIFT;
        of_kernel << FILE_SHIFT | outside | deeper | line << LINE_SHIFT | rest
    }

    #[cold]
    fn enter(&self, site: Site) -> Entry {
        let mut files = self.files.borrow_mut();
        let file = files.iter().position(|&known| known == site.file()).unwrap_or_else(|| {
            files.push(site.file());
            files.len() - 1
        });
        let column = site.column().min(COLUMN_MAX);
        let line = site.line().min(LINE_MAX);
        let position = (u64::from(line) << LINE_SHIFT) | (u64::from(column) << COLUMN_SHIFT);
        Entry { site: Some(site), file: file as u32, position }
    }
}

impl FileOrder {
    /// Forgets the files, for the next block.
    pub(crate) fn clear(&self) {
        self.files.borrow_mut().clear();
    }

    /// 255 for the file that the warp met first, less for each later one.
    #[inline]
    fn depth(&self, file: u32) -> u64 {
        let rank = self.files.borrow().iter().position(|&known| known == file);
        (MAX_RANK - rank.unwrap_or_else(|| self.append(file)).min(MAX_RANK)) as u64
    }

    #[cold]
    fn append(&self, file: u32) -> usize {
        let mut files = self.files.borrow_mut();
        files.push(file);
        files.len() - 1
    }
}

/// Ties at one place go to the operation that a helper is likely to do first. Never 15, so no point is
/// [`NO_POINT`].
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
        let (table, order) = (SiteTable::new(), FileOrder::default());
        let first = Location::caller();
        let (second, third) = (Location::caller(), Location::caller());
        let point = |site| table.point(&order, site, WarpOp::Converge, None);
        assert!(point(first) < point(second), "an earlier line comes first");
        assert!(point(second) < point(third), "an earlier column comes first");
        assert_eq!(point(second), point(second));
        assert!(
            point(first) < table.point(&order, first, WarpOp::Yield, None),
            "kinds at one site are told apart"
        );
        assert!(point(third) < NO_POINT);
    }

    #[test]
    fn a_called_function_comes_where_it_was_called() {
        let (table, order) = (SiteTable::new(), FileOrder::default());
        let (before, caller) = (Location::caller(), Location::caller());
        let (after, function) = (Location::caller(), Location::caller());
        let point = |site: Site, depth, called: Site| {
            let calls = Calls { depth, line: called.line() };
            table.point(&order, site, WarpOp::Located { location: 3 }, Some(calls))
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
        let (table, order) = (SiteTable::new(), FileOrder::default());
        let site = Location::caller();
        let point = |op| table.point(&order, site, op, Some(Calls::default()));
        let [first, second] = [1, 2].map(|location| point(WarpOp::Located { location }));
        assert!(point(WarpOp::Join) < first && first < second);
        assert!(is_join(point(WarpOp::Join)) && is_structured(point(WarpOp::Join)));
        assert!(!is_join(first) && is_structured(first) && !is_structured(point(WarpOp::Converge)));
    }

    #[test]
    fn a_file_met_later_counts_as_deeper_and_comes_first() {
        let table = SiteTable::new();
        let here = Location::caller();
        // The standard library's own call site stands for a helper file.
        let helper = std::panic::catch_unwind(helper_site).unwrap();
        let kernel_first = FileOrder::default();
        let kernel = table.point(&kernel_first, here, WarpOp::Converge, None);
        assert!(table.point(&kernel_first, helper, WarpOp::Converge, None) < kernel);
        let helper_first = FileOrder::default();
        let helper_point = table.point(&helper_first, helper, WarpOp::Converge, None);
        assert!(table.point(&helper_first, here, WarpOp::Converge, None) < helper_point);
    }

    #[track_caller]
    fn helper_site() -> Site {
        Location::caller()
    }
}
