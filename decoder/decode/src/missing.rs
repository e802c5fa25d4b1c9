//! Marks where events of a launch are missing.

use std::ops::{ControlFlow, Range};

use warptrace_format::account::WarpAccount;
use warptrace_format::file::{LaunchInfo, LossPosition, LossReason};

use crate::accounts::AccountCursor;
use crate::all::{Stop, WarpFilter};
use crate::error::DecodeError;
use crate::file::TraceFile;
use crate::losses::Reasons;

/// Events that a warp lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Missing {
    /// Linear index of the warp in the launch.
    pub warp: u32,
    /// Why.
    pub reason: LossReason,
    /// How many; `None` if that is not known.
    pub events: Option<u64>,
}

impl Missing {
    /// Where among the warp's recorded events the missing ones would stand. What is not counted is missing
    /// behind the last one.
    pub const fn position(&self) -> LossPosition {
        match self.events {
            Some(_) => self.reason.position(),
            None => LossPosition::End,
        }
    }
}

impl TraceFile {
    /// Lists what one warp lacks on a track, in the order in which the marks would stand. Empty if it lacks
    /// nothing.
    ///
    /// # Errors
    /// The file has no such launch or track, or the launch no such warp.
    pub fn missing(&self, launch: u32, warp: u32, track: u32) -> Result<Vec<Missing>, DecodeError> {
        let (info, _) = self.resolve(launch, track)?;
        if warp >= info.warps() {
            return Err(DecodeError::UnknownWarp { launch, warp, warps: info.warps() });
        }
        if !info.is_chosen(warp) {
            return Ok(vec![Missing { warp, reason: LossReason::NotChosen, events: None }]);
        }
        let account = account(&mut AccountCursor::of_one_warp(self, launch, track), warp)?;
        let missing = Reasons::of(self, launch).missing(account.as_ref());
        Ok(missing.map(|(reason, events)| Missing { warp, reason, events }).collect())
    }
}

/// The account of a warp, if there is one that is not damaged.
fn account(accounts: &mut AccountCursor<'_>, warp: u32) -> Result<Option<WarpAccount>, DecodeError> {
    Ok(accounts.next(warp..warp.saturating_add(1)).or_missing()?.1)
}

/// Takes marks, each with the number that the warp's next recorded event has, or would have.
type MarkSink<'s> = dyn FnMut(Missing, u64) -> ControlFlow<()> + 's;

/// The warp whose events are being delivered.
struct Current {
    warp: u32,
    account: Option<WarpAccount>,
    next_event: u64,
}

/// Goes through the accounts of a launch next to its events.
pub(crate) struct Marks<'a> {
    file: &'a TraceFile,
    info: &'a LaunchInfo,
    accounts: AccountCursor<'a>,
    reasons: Reasons,
    /// Warps behind the current one.
    rest: Range<u32>,
    current: Option<Current>,
}

impl<'a> Marks<'a> {
    /// Marks of the warps that `filter` selects; `None` if it asks for none.
    pub(crate) fn of(
        file: &'a TraceFile,
        info: &'a LaunchInfo,
        track: u32,
        filter: &WarpFilter,
    ) -> Option<Self> {
        filter.has_marks.then(|| Self {
            file,
            info,
            accounts: AccountCursor::new(file, info.number(), track),
            reasons: Reasons::of(file, info.number()),
            rest: filter.range(info.warps()),
            current: None,
        })
    }

    /// Comes to events of a warp, the last of which is the one before `next_event`; gives the marks before them.
    pub(crate) fn go_to(&mut self, warp: u32, next_event: u64, sink: &mut MarkSink<'_>) -> Result<(), Stop> {
        if let Some(current) = self.current.as_mut().filter(|current| current.warp == warp) {
            current.next_event = next_event;
            return Ok(());
        }
        self.end_current(sink)?;
        self.pass(warp, sink)?;
        let account = account(&mut self.accounts, warp)?;
        self.rest.start = warp.saturating_add(1);
        self.mark(&Current { warp, account, next_event: 0 }, |at| at != LossPosition::End, sink)?;
        self.current = Some(Current { warp, account, next_event });
        Ok(())
    }

    /// Gives the marks after the last events.
    pub(crate) fn finish(mut self, sink: &mut MarkSink<'_>) -> Result<(), Stop> {
        self.end_current(sink)?;
        self.pass(self.rest.end, sink)
    }

    fn end_current(&mut self, sink: &mut MarkSink<'_>) -> Result<(), Stop> {
        self.current.take().map_or(Ok(()), |current| self.mark(&current, |at| at == LossPosition::End, sink))
    }

    /// Passes warps without events, up to `to`; where losses were counted, there are marks.
    fn pass(&mut self, to: u32, sink: &mut MarkSink<'_>) -> Result<(), Stop> {
        while self.rest.start < to {
            let (warps, account) = self.accounts.next(self.rest.start..to).or_missing()?;
            self.rest.start = warps.end;
            if account.is_none_or(|account| account.lost == 0) {
                continue;
            }
            self.file.work.spend_rows(warps.len())?;
            for warp in warps {
                self.mark(&Current { warp, account, next_event: 0 }, |_| true, sink)?;
            }
        }
        Ok(())
    }

    /// Gives the marks of a warp that stand at some positions.
    fn mark(
        &self,
        &Current { warp, account, next_event }: &Current,
        is_here: impl Fn(LossPosition) -> bool,
        sink: &mut MarkSink<'_>,
    ) -> Result<(), Stop> {
        if !self.info.is_chosen(warp) {
            return Ok(());
        }
        for (reason, events) in self.reasons.missing(account.as_ref()) {
            let missing = Missing { warp, reason, events };
            if is_here(missing.position()) {
                Stop::asked(sink(missing, next_event))?;
            }
        }
        Ok(())
    }
}
