//! Missing events and the reasons, by launch and by warp.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use warptrace_format::account::WarpAccount;
use warptrace_format::file::{EarlyEnd, LaunchInfo, LossPosition, LossReason};

use crate::accounts::AccountCursor;
use crate::error::DecodeError;
use crate::file::TraceFile;

/// Maximum number of warps that a [`Loss`] lists.
pub(crate) const NAMED_WARPS: usize = 8;

/// The end of a launch, as far as the file records it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LaunchEnd {
    /// The launch ran to its end.
    Completed,
    /// The launch failed with this message.
    Failed {
        /// Message from the device or the recorder.
        message: String,
    },
    /// The recording was ended while the kernel ran.
    Interrupted,
    /// Like `Interrupted`; the file also has the positions of its warps.
    Running,
    /// The file has no accounts of the launch, for example because the recording was killed.
    Unknown,
}

impl LaunchEnd {
    /// Returns the name used in JSON.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed { .. } => "failed",
            Self::Interrupted => "interrupted",
            Self::Running => "running",
            Self::Unknown => "unknown",
        }
    }
}

/// Warps of a launch and track that lack events for the same reason.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Loss {
    /// The reason.
    pub reason: LossReason,
    /// Number of warps.
    pub warps: u64,
    /// Number of missing events; `None` if unknown.
    pub events: Option<u64>,
    /// The first of the warps, at most 8. Empty for warps that were not chosen.
    pub first_warps: Vec<u32>,
}

/// Missing events of a launch and track; see [`TraceFile::losses`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LaunchLosses {
    /// Warps that were chosen for recording.
    pub chosen_warps: u32,
    /// Events in the file.
    pub recorded: u64,
    /// Losses in the order of their reasons: for each at most one of known and one of unknown size.
    pub losses: Vec<Loss>,
}

impl LaunchLosses {
    /// Returns the number of counted lost events. Warps that did not finish may lack more.
    pub fn lost(&self) -> u64 {
        self.losses.iter().filter_map(|loss| loss.events).fold(0, u64::saturating_add)
    }

    /// Returns true if only warps that were not chosen are missing.
    pub fn is_none(&self) -> bool {
        self.losses.iter().all(|loss| loss.reason == LossReason::NotChosen)
    }
}

/// Consecutive warps that lack events; see [`TraceFile::lossy_warps`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LossyWarps {
    /// Linear index of the first warp.
    pub first: u32,
    /// Linear index of the last warp.
    pub last: u32,
    /// Number of chosen warps in this range. The other fields refer only to these.
    pub chosen: u32,
    /// The reason.
    pub reason: LossReason,
    /// Events that each of them lacks; `None` if unknown.
    pub events: Option<u64>,
}

impl LossyWarps {
    /// Returns the number of events that the warps lack together; `None` if unknown.
    pub fn total(&self) -> Option<u64> {
        self.events.map(|events| events.saturating_mul(self.chosen.into()))
    }

    /// Returns the position of the missing events among a warp's events: the end for uncounted events.
    pub const fn position(&self) -> LossPosition {
        match self.events {
            Some(_) => self.reason.position(),
            None => LossPosition::End,
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Reasons {
    counted: LossReason,
    no_account: LossReason,
}

impl Reasons {
    pub(crate) fn new(file: &TraceFile, launch: u32) -> Self {
        let is_early = file.early_end(launch).is_some();
        Self {
            counted: LossReason::of_policy(&file.metadata().policy),
            no_account: if is_early { LossReason::Died } else { LossReason::Unknown },
        }
    }

    /// Returns the reasons and numbers of missing events of a warp with this account, or with none.
    pub(crate) fn missing(
        self,
        account: Option<&WarpAccount>,
    ) -> impl Iterator<Item = (LossReason, Option<u64>)> {
        let lost = account.map_or(0, |account| account.lost);
        let unfinished = match account {
            Some(account) => (account.finished == 0).then_some(LossReason::Died),
            None => Some(self.no_account),
        };
        let counted = (lost > 0).then_some((self.counted, Some(lost)));
        counted.into_iter().chain(unfinished.map(|reason| (reason, None)))
    }
}

/// The warps that lack events, in order; see [`TraceFile::lossy_warps`]. Ends after the first error.
#[derive(Debug)]
pub struct LossyWarpsIter<'a> {
    file: &'a TraceFile,
    launch: &'a LaunchInfo,
    reasons: Reasons,
    cursor: AccountCursor<'a>,
    rest: Range<u32>,
    ready: VecDeque<LossyWarps>,
}

impl TraceFile {
    /// Returns the reason why a launch did not run to its end, if the file has one.
    pub fn early_end(&self, launch: u32) -> Option<&EarlyEnd> {
        self.early_ends.get(&launch)
    }

    /// Returns how a launch ended; `None` if the file has no such launch. A launch with accounts, or not
    /// chosen for recording, completed unless the file has an early end for it.
    pub fn launch_end(&self, launch: u32) -> Option<LaunchEnd> {
        let info = self.launch(launch)?;
        let is_accounted = !self.account_sections(launch, 0).is_empty();
        Some(match self.early_end(launch) {
            Some(EarlyEnd::Failed { message, .. }) => LaunchEnd::Failed { message: message.clone() },
            Some(EarlyEnd::Interrupted) => LaunchEnd::Interrupted,
            Some(EarlyEnd::Running { .. }) => LaunchEnd::Running,
            None if is_accounted || !info.is_recorded() => LaunchEnd::Completed,
            // No record of the end, or a kind of end from a later version.
            _ => LaunchEnd::Unknown,
        })
    }

    /// Sums the losses of a launch on a track by reason. Reads only the accounting; damaged accounts count as
    /// missing. Fails without the launch or track, or above the work limit ([`unlimited`](Self::unlimited)).
    ///
    /// ```no_run
    /// use warptrace_decoder::TraceFile;
    /// let trace = TraceFile::open("run.wtrc")?;
    /// for loss in trace.losses(0, 0)?.losses {
    ///     println!("{} warps, {:?} events: {}", loss.warps, loss.events, loss.reason);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn losses(&self, launch: u32, track: u32) -> Result<LaunchLosses, DecodeError> {
        let info = self.resolve_any(launch, track)?;
        let mut sums: BTreeMap<(LossReason, bool), Loss> = BTreeMap::new();
        let (reasons, mut cursor) = (Reasons::new(self, launch), AccountCursor::new(self, launch, track));
        let mut rest = 0..info.warps();
        while !rest.is_empty() {
            let (warps, account) = cursor.next(rest.clone()).or_missing()?;
            rest.start = warps.end;
            let Some(warps) = chosen_within(info, &warps) else { continue };
            let chosen = u64::from(info.chosen_in(&warps));
            for (reason, events) in reasons.missing(account.as_ref()) {
                let loss = sums.entry((reason, events.is_none())).or_insert_with(|| Loss {
                    reason,
                    warps: 0,
                    events: events.map(|_| 0),
                    first_warps: Vec::new(),
                });
                loss.warps += chosen;
                let more = events.unwrap_or(0).saturating_mul(chosen);
                loss.events = loss.events.map(|sum| sum.saturating_add(more));
                let named = NAMED_WARPS.saturating_sub(loss.first_warps.len());
                let indices = info.chosen_before(warps.start)..info.chosen_before(warps.end);
                loss.first_warps.extend(indices.take(named).filter_map(|index| info.chosen_warp(index)));
            }
        }
        let chosen_warps = info.chosen().count();
        if chosen_warps < info.warps() {
            let (reason, warps) = (LossReason::NotChosen, u64::from(info.warps() - chosen_warps));
            sums.insert((reason, true), Loss { reason, warps, events: None, first_warps: Vec::new() });
        }
        let recorded = self.totals(launch, track).events;
        Ok(LaunchLosses { chosen_warps, recorded, losses: sums.into_values().collect() })
    }

    /// Returns the chosen warps of a launch and track that lack events, in order of warp. Consecutive warps
    /// with equal losses are one item; a warp with two reasons is returned twice. Reads only the accounting,
    /// one section at a time. Fails without the launch or track; the iterator fails above the work limit.
    pub fn lossy_warps(&self, launch: u32, track: u32) -> Result<LossyWarpsIter<'_>, DecodeError> {
        let info = self.resolve_any(launch, track)?;
        Ok(LossyWarpsIter {
            file: self,
            launch: info,
            reasons: Reasons::new(self, launch),
            cursor: AccountCursor::new(self, launch, track),
            rest: 0..info.warps(),
            ready: VecDeque::new(),
        })
    }
}

impl LossyWarpsIter<'_> {
    fn refill(&mut self) -> Result<(), DecodeError> {
        let (warps, account) = self.cursor.next(self.rest.clone()).or_missing()?;
        self.rest.start = warps.end;
        let Some(warps) = chosen_within(self.launch, &warps) else { return Ok(()) };
        let chosen = self.launch.chosen_in(&warps);
        for (reason, events) in self.reasons.missing(account.as_ref()) {
            let (first, last) = (warps.start, warps.end - 1);
            let goes_on = |before: &&mut LossyWarps| {
                (before.reason, before.events, before.last.checked_add(1)) == (reason, events, Some(first))
            };
            match self.ready.iter_mut().rfind(goes_on) {
                Some(before) => {
                    before.last = last;
                    before.chosen += chosen;
                }
                None => {
                    self.file.work.spend_rows(1)?;
                    self.ready.push_back(LossyWarps { first, last, chosen, reason, events });
                }
            }
        }
        Ok(())
    }
}

impl Iterator for LossyWarpsIter<'_> {
    type Item = Result<LossyWarps, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        // Up to two items, of different reasons, may still grow.
        while self.ready.len() < 3 && !self.rest.is_empty() {
            if let Err(error) = self.refill() {
                self.rest = 0..0;
                self.ready.clear();
                return Some(Err(error));
            }
        }
        self.ready.pop_front().map(Ok)
    }
}

impl std::iter::FusedIterator for LossyWarpsIter<'_> {}

/// Returns the part of a range from its first to its last chosen warp; `None` if none was chosen.
pub(crate) fn chosen_within(info: &LaunchInfo, range: &Range<u32>) -> Option<Range<u32>> {
    let indices = info.chosen_before(range.start)..info.chosen_before(range.end);
    let last = indices.end.checked_sub(1).filter(|last| *last >= indices.start)?;
    Some(info.chosen_warp(indices.start)?..info.chosen_warp(last)? + 1)
}
