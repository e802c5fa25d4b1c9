//! Marks at positions where events of a launch are missing.

use std::ops::{ControlFlow, Range};

use warptrace_format::account::WarpAccount;
use warptrace_format::file::{LaunchInfo, LossPosition};

use crate::accounts::AccountCursor;
use crate::all::{Stop, WarpFilter};
use crate::file::TraceFile;
use crate::losses::{LossyWarps, Reasons};

/// Receives marks, each with the number of the warp's next recorded event.
type MarkSink<'s> = dyn FnMut(LossyWarps, u64) -> ControlFlow<()> + 's;

struct Current {
    warp: u32,
    account: Option<WarpAccount>,
    next_event: u64,
}

pub(crate) struct Marks<'a> {
    file: &'a TraceFile,
    info: &'a LaunchInfo,
    accounts: AccountCursor<'a>,
    reasons: Reasons,
    rest: Range<u32>,
    current: Option<Current>,
}

impl<'a> Marks<'a> {
    pub(crate) fn new(
        file: &'a TraceFile,
        info: &'a LaunchInfo,
        track: u32,
        filter: &WarpFilter,
    ) -> Option<Self> {
        filter.has_marks.then(|| Self {
            file,
            info,
            accounts: AccountCursor::new(file, info.number(), track),
            reasons: Reasons::new(file, info.number()),
            rest: filter.range(info.warps()),
            current: None,
        })
    }

    /// Moves to events of a warp that end before `next_event`. Passes the marks before them to `sink`.
    pub(crate) fn go_to(&mut self, warp: u32, next_event: u64, sink: &mut MarkSink<'_>) -> Result<(), Stop> {
        if let Some(current) = self.current.as_mut().filter(|current| current.warp == warp) {
            current.next_event = next_event;
            return Ok(());
        }
        self.end_current(sink)?;
        self.pass(warp, sink)?;
        let account = self.accounts.next(warp..warp.saturating_add(1)).or_missing()?.1;
        self.rest.start = warp.saturating_add(1);
        self.mark(&Current { warp, account, next_event: 0 }, |at| at != LossPosition::End, sink)?;
        self.current = Some(Current { warp, account, next_event });
        Ok(())
    }

    pub(crate) fn finish(mut self, sink: &mut MarkSink<'_>) -> Result<(), Stop> {
        self.end_current(sink)?;
        self.pass(self.rest.end, sink)
    }

    fn end_current(&mut self, sink: &mut MarkSink<'_>) -> Result<(), Stop> {
        self.current.take().map_or(Ok(()), |current| self.mark(&current, |at| at == LossPosition::End, sink))
    }

    /// Skips warps without events, up to `to`. Passes marks of warps with counted losses to `sink`.
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
            let missing = LossyWarps { first: warp, last: warp, chosen: 1, reason, events };
            if is_here(missing.position()) {
                Stop::asked(sink(missing, next_event))?;
            }
        }
        Ok(())
    }
}
