//! Accounting, section by section, in order of warp.

use std::collections::VecDeque;
use std::ops::Range;

use warptrace_format::account::WarpAccount;
use warptrace_format::file::{AccountRun, Accounts, IndexEntry};

use crate::error::DecodeError;
use crate::file::TraceFile;

/// Consecutive warps, and the account of each; `None` if the file has none.
pub type AccountOfWarps = (Range<u32>, Option<WarpAccount>);

/// What a cursor found for the next warps.
#[derive(Debug)]
pub(crate) enum Accounted {
    /// The warps of this range have this account each.
    Account(Range<u32>, WarpAccount),
    /// The warps of this range have no accounting.
    Missing(Range<u32>),
    /// The warps of this range have accounting that cannot be read.
    Damaged(Range<u32>, DecodeError),
}

impl Accounted {
    /// The warps, and their account: none if it is missing or damaged.
    ///
    /// # Errors
    /// It was not read, since the file asks for too much work. That says nothing of the warps.
    pub(crate) fn or_missing(self) -> Result<(Range<u32>, Option<WarpAccount>), DecodeError> {
        match self {
            Self::Account(warps, account) => Ok((warps, Some(account))),
            Self::Damaged(_, error @ DecodeError::TooMuchWork { .. }) => Err(error),
            Self::Missing(warps) | Self::Damaged(warps, _) => Ok((warps, None)),
        }
    }
}

/// Goes through the accounting of one launch and track, with one section in memory.
#[derive(Debug)]
pub(crate) struct AccountCursor<'a> {
    file: &'a TraceFile,
    sections: &'a [IndexEntry],
    /// Runs of the section that was read last, the first of which begins at `first`.
    runs: VecDeque<AccountRun>,
    first: u32,
    /// Warps before this are those of a section that could not be read, and no other section counts for them.
    damaged_end: u32,
}

impl TraceFile {
    /// The accounts of all warps of a launch on a track, in order. Memory: one accounting section.
    ///
    /// # Errors
    /// The file has no such launch or track. A damaged section comes out of the iterator, which then ends.
    pub fn accounts(
        &self,
        launch: u32,
        track: u32,
    ) -> Result<impl Iterator<Item = Result<AccountOfWarps, DecodeError>>, DecodeError> {
        let (mut rest, mut cursor) =
            (0..self.resolve(launch, track)?.0.warps(), AccountCursor::new(self, launch, track));
        Ok(std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let next = match cursor.next(rest.clone()) {
                // The steps of warps one by one, as they are for whoever goes through them.
                Accounted::Account(warps, account) => {
                    self.work.spend_warps(&warps, &account).map(|_| (warps, Some(account)))
                }
                Accounted::Missing(warps) => Ok((warps, None)),
                Accounted::Damaged(_, error) => Err(error),
            };
            rest.start = next.as_ref().map_or(rest.end, |(warps, _)| warps.end);
            Some(next)
        }))
    }
}

impl<'a> AccountCursor<'a> {
    pub(crate) fn new(file: &'a TraceFile, launch: u32, track: u32) -> Self {
        let sections = file.account_sections(launch, track);
        Self { file, sections, runs: VecDeque::new(), first: 0, damaged_end: 0 }
    }

    /// Gives what there is for a beginning of `warps`, which is not empty. Calls ask for ascending warps.
    /// What is returned covers at least one warp and none beyond `warps`; where sections overlap, the one
    /// that begins first counts.
    pub(crate) fn next(&mut self, warps: Range<u32>) -> Accounted {
        let (from, to) = (warps.start, warps.end);
        if from < self.damaged_end {
            return Accounted::Missing(from..self.damaged_end.min(to));
        }
        self.skip_to(from);
        if self.runs.is_empty() {
            while self.sections.first().is_some_and(|section| section.last_warp < from) {
                self.sections = &self.sections[1..];
            }
            match self.sections.first() {
                Some(section) if section.first_warp <= from => {
                    let end = section.last_warp.saturating_add(1);
                    self.sections = &self.sections[1..];
                    match self.load(section) {
                        Ok(Accounts { header, runs, .. }) => {
                            (self.first, self.runs) = (header.first_warp, runs.into());
                            self.skip_to(from);
                        }
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
        match self.runs.front() {
            Some(run) => Accounted::Account(from..(self.first + run.warps).min(to), run.account),
            // No section that was read ends before the warp.
            None => Accounted::Missing(from..to),
        }
    }

    fn load(&self, section: &IndexEntry) -> Result<Accounts, DecodeError> {
        // Whether there are steps left, before the section is unpacked.
        self.file.work.spend(0)?;
        let accounts = self.file.load_accounts(section)?;
        self.file.work.spend_accounts(&accounts)?;
        Ok(accounts)
    }

    /// Leaves out the runs that end before a warp.
    fn skip_to(&mut self, warp: u32) {
        while let Some(run) = self.runs.front()
            && self.first + run.warps <= warp
        {
            self.first += run.warps;
            self.runs.pop_front();
        }
    }
}
