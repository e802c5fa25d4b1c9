//! Accounting, section by section, in order of warp.

use std::ops::Range;

use warptrace_format::file::IndexEntry;
use warptrace_format::pool::WarpAccount;

use crate::error::DecodeError;
use crate::file::TraceFile;

/// What a cursor found for the next warps.
#[derive(Debug)]
pub(crate) enum Accounted<'a> {
    /// The accounts of the warps from `first` on.
    Accounts {
        /// First of the warps.
        first: u32,
        /// One account a warp.
        accounts: &'a [WarpAccount],
    },
    /// The warps of this range have no accounting.
    Missing(Range<u32>),
    /// The warps of this range have accounting that cannot be read.
    Damaged(Range<u32>, DecodeError),
}

/// Goes through the accounting of one launch and track, with one section in memory.
#[derive(Debug)]
pub(crate) struct AccountCursor<'a> {
    file: &'a TraceFile,
    sections: &'a [IndexEntry],
    first: u32,
    loaded: Vec<WarpAccount>,
    /// Warps before this are those of a section that could not be read, and no other section counts for them.
    damaged_end: u32,
}

impl<'a> AccountCursor<'a> {
    pub(crate) fn new(file: &'a TraceFile, launch: u32, track: u32) -> Self {
        let sections = file.account_sections(launch, track);
        Self { file, sections, first: 0, loaded: Vec::new(), damaged_end: 0 }
    }

    /// Gives what there is for a beginning of `warps`, which is not empty. Calls ask for ascending warps.
    /// Every answer covers at least one warp and none beyond `warps`; where sections overlap, the one that
    /// begins first counts.
    pub(crate) fn next(&mut self, warps: Range<u32>) -> Accounted<'_> {
        let (from, to) = (warps.start, warps.end);
        if from < self.damaged_end {
            return Accounted::Missing(from..self.damaged_end.min(to));
        }
        if !self.covers(from) {
            self.loaded.clear();
            while self.sections.first().is_some_and(|section| section.last_warp < from) {
                self.sections = &self.sections[1..];
            }
            match self.sections.first() {
                Some(section) if section.first_warp <= from => {
                    let end = section.last_warp.saturating_add(1);
                    self.sections = &self.sections[1..];
                    match self.file.load_accounts(section) {
                        Ok((header, accounts)) => (self.first, self.loaded) = (header.first_warp, accounts),
                        Err(error) => {
                            self.damaged_end = end;
                            return Accounted::Damaged(from..end.min(to), error);
                        }
                    }
                }
                next => {
                    return Accounted::Missing(from..next.map_or(to, |section| section.first_warp.min(to)));
                }
            }
        }
        let skip = (from - self.first) as usize;
        let count = ((to - from) as usize).min(self.loaded.len() - skip);
        Accounted::Accounts { first: from, accounts: &self.loaded[skip..skip + count] }
    }

    fn covers(&self, warp: u32) -> bool {
        warp.checked_sub(self.first).is_some_and(|at| (at as usize) < self.loaded.len())
    }
}
