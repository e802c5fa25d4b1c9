//! Accounting, section by section, in order of warp.

use std::collections::VecDeque;
use std::ops::Range;

use warptrace_format::account::WarpAccount;
use warptrace_format::file::{AccountRun, Accounts, IndexEntry};

use crate::error::DecodeError;
use crate::file::TraceFile;
use crate::work::Work;

/// Steps that are charged together.
const CHARGED_AT_ONCE: u64 = 1 << 16;

/// Consecutive warps, and the account of each; `None` if the file has no account for them.
pub type AccountOfWarps = (Range<u32>, Option<WarpAccount>);

#[derive(Debug)]
pub(crate) enum Accounted {
    Account(Range<u32>, WarpAccount),
    Missing(Range<u32>),
    Damaged(Range<u32>, DecodeError),
}

impl Accounted {
    /// Returns the warps and their account; `None` if it is missing or damaged. Fails only if the work limit
    /// was reached before the section was read.
    pub(crate) fn or_missing(self) -> Result<(Range<u32>, Option<WarpAccount>), DecodeError> {
        match self {
            Self::Account(warps, account) => Ok((warps, Some(account))),
            Self::Damaged(_, error @ DecodeError::TooMuchWork { .. }) => Err(error),
            Self::Missing(warps) | Self::Damaged(warps, _) => Ok((warps, None)),
        }
    }
}

/// A cursor over the accounting of one launch and track. Holds one section in memory.
#[derive(Debug)]
pub(crate) struct AccountCursor<'a> {
    file: &'a TraceFile,
    sections: &'a [IndexEntry],
    /// Runs of the current section; the first begins at `first`.
    runs: VecDeque<AccountRun>,
    first: u32,
    /// Warps before this one are in a section that could not be read. They count as missing.
    damaged_end: u32,
}

impl TraceFile {
    /// Returns the accounts of all warps of a launch on a track, in order. Memory: one accounting section.
    /// Fails if the file has no such launch or track; the iterator ends with the error of a damaged section.
    pub fn accounts(
        &self,
        launch: u32,
        track: u32,
    ) -> Result<impl Iterator<Item = Result<AccountOfWarps, DecodeError>>, DecodeError> {
        let (mut rest, mut cursor) =
            (0..self.resolve(launch, track)?.0.warps(), AccountCursor::new(self, launch, track));
        let mut steps = 0;
        Ok(std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let next = match cursor.next(rest.clone()) {
                // Charges the steps of single warps, because callers visit them one by one.
                Accounted::Account(warps, account) => {
                    steps += Work::steps_of_warps(&warps, &account);
                    Ok((warps, Some(account)))
                }
                Accounted::Missing(warps) => Ok((warps, None)),
                Accounted::Damaged(_, error) => Err(error),
            };
            rest.start = next.as_ref().map_or(rest.end, |(warps, _)| warps.end);
            // All threads share the counter.
            if (steps >= CHARGED_AT_ONCE || rest.is_empty())
                && let Err(error) = self.work.spend(std::mem::take(&mut steps))
            {
                rest.start = rest.end;
                return Some(Err(error));
            }
            Some(next)
        }))
    }
}

impl<'a> AccountCursor<'a> {
    pub(crate) fn new(file: &'a TraceFile, launch: u32, track: u32) -> Self {
        let sections = file.account_sections(launch, track);
        Self { file, sections, runs: VecDeque::new(), first: 0, damaged_end: 0 }
    }

    /// Returns the result for the first warps of `warps`, at least one. `warps` must not be empty and must
    /// ascend from call to call. If sections overlap, the first counts.
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
            // Cannot happen: sections that end before the warp are not read.
            None => Accounted::Missing(from..to),
        }
    }

    fn load(&self, section: &IndexEntry) -> Result<Accounts, DecodeError> {
        // Checks the work limit before the section is unpacked.
        self.file.work.spend(0)?;
        let accounts = self.file.load_accounts(section)?;
        self.file.work.spend_accounts(&accounts)?;
        Ok(accounts)
    }

    fn skip_to(&mut self, warp: u32) {
        while let Some(run) = self.runs.front()
            && self.first + run.warps <= warp
        {
            self.first += run.warps;
            self.runs.pop_front();
        }
    }
}
