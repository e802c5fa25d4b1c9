//! Events of a launch with marks where some are missing.

use std::ops::{ControlFlow, Range};

use warptrace_format::account::WarpAccount;
use warptrace_format::file::{LaunchInfo, LossPosition, LossReason};

use crate::accounts::AccountCursor;
use crate::all::{EventBlock, WarpFilter};
use crate::error::DecodeError;
use crate::file::TraceFile;
use crate::items::WarpItem;
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

/// A piece of what [`TraceFile::decode_with_losses`] and [`TraceFile::items_with_losses`] find.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Piece<'a> {
    /// Consecutive events of one warp, from `decode_with_losses`.
    Events(EventBlock<'a>),
    /// A run or cycle of one warp, from `items_with_losses`.
    Item(WarpItem<'a>),
    /// Events of a warp are missing, here or, if they may be missing anywhere, in the events that follow.
    Missing {
        /// What is missing.
        missing: Missing,
        /// Number that the warp's next recorded event has, or would have.
        next_event: u64,
    },
}

impl Piece<'_> {
    /// Linear index of the warp.
    pub const fn warp(&self) -> u32 {
        match self {
            Self::Events(block) => block.warp,
            Self::Item(item) => item.warp,
            Self::Missing { missing, .. } => missing.warp,
        }
    }
}

impl TraceFile {
    /// Decodes like [`decode_all`](Self::decode_all), and marks where events are missing: before the first
    /// event of a warp if its earlier events were overwritten or some are missing anywhere, behind the last
    /// one if later events are missing.
    ///
    /// Every loss that was counted has a mark, also of warps without events. A warp that did not finish, or
    /// has no account, has one if it has events or counted losses; [`lossy_warps`](Self::lossy_warps) gives
    /// the others, and [`launch_end`](Self::launch_end) tells why. Warps that were not chosen have none.
    ///
    /// # Errors
    /// As [`decode_all`](Self::decode_all). Damaged accounts count as missing.
    pub fn decode_with_losses(
        &self,
        launch: u32,
        track: u32,
        filter: &WarpFilter,
        sink: &mut dyn FnMut(Piece<'_>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, DecodeError> {
        let mut marks = self.marks(launch, track, filter)?;
        let flow = self.decode_all(launch, track, filter, &mut |block| {
            marks.at(block.warp, sink)?;
            marks.note(block.first_event + block.events.len() as u64);
            sink(Piece::Events(block))
        })?;
        let flow = if flow.is_break() { flow } else { marks.finish(sink) };
        marks.error.map_or(Ok(flow), Err)
    }

    /// Decodes like [`items_in_order`](Self::items_in_order), with the marks of
    /// [`decode_with_losses`](Self::decode_with_losses).
    ///
    /// # Errors
    /// As [`items_in_order`](Self::items_in_order). Damaged accounts count as missing.
    pub fn items_with_losses(
        &self,
        launch: u32,
        track: u32,
        filter: &WarpFilter,
        sink: &mut dyn FnMut(Piece<'_>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, DecodeError> {
        let mut marks = self.marks(launch, track, filter)?;
        let flow = self.items_in_order(launch, track, filter, &mut |item| {
            marks.at(item.warp, sink)?;
            marks.note(item.first_event + item.item.events());
            sink(Piece::Item(item))
        })?;
        let flow = if flow.is_break() { flow } else { marks.finish(sink) };
        marks.error.map_or(Ok(flow), Err)
    }

    fn marks(&self, launch: u32, track: u32, filter: &WarpFilter) -> Result<Marks<'_>, DecodeError> {
        let (info, _) = self.resolve(launch, track)?;
        Ok(Marks {
            file: self,
            info,
            accounts: AccountCursor::new(self, launch, track),
            reasons: Reasons::of(self, launch),
            rest: filter.range(info.warps()),
            current: None,
            error: None,
        })
    }

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

/// The warp whose events are being delivered.
struct Current {
    warp: u32,
    account: Option<WarpAccount>,
    next_event: u64,
}

/// Goes through the accounts of a launch beside its events.
struct Marks<'a> {
    file: &'a TraceFile,
    info: &'a LaunchInfo,
    accounts: AccountCursor<'a>,
    reasons: Reasons,
    /// Warps behind the current one.
    rest: Range<u32>,
    current: Option<Current>,
    /// Why the marks have ended.
    error: Option<DecodeError>,
}

impl Marks<'_> {
    /// Comes to a warp with events.
    fn at(&mut self, warp: u32, sink: &mut dyn FnMut(Piece<'_>) -> ControlFlow<()>) -> ControlFlow<()> {
        if self.current.as_ref().is_some_and(|current| current.warp == warp) {
            return ControlFlow::Continue(());
        }
        self.end_current(sink)?;
        self.pass(warp, sink)?;
        let account = match account(&mut self.accounts, warp) {
            Ok(account) => account,
            Err(error) => return self.fail(error),
        };
        self.rest.start = warp.saturating_add(1);
        let current = Current { warp, account, next_event: 0 };
        self.mark(&current, |position| position != LossPosition::End, sink)?;
        self.current = Some(current);
        ControlFlow::Continue(())
    }

    fn note(&mut self, next_event: u64) {
        if let Some(current) = &mut self.current {
            current.next_event = next_event;
        }
    }

    fn finish(&mut self, sink: &mut dyn FnMut(Piece<'_>) -> ControlFlow<()>) -> ControlFlow<()> {
        self.end_current(sink)?;
        self.pass(self.rest.end, sink)
    }

    fn end_current(&mut self, sink: &mut dyn FnMut(Piece<'_>) -> ControlFlow<()>) -> ControlFlow<()> {
        match self.current.take() {
            Some(current) => self.mark(&current, |position| position == LossPosition::End, sink),
            None => ControlFlow::Continue(()),
        }
    }

    /// Passes warps without events, up to `to`; where losses were counted, there are marks.
    fn pass(&mut self, to: u32, sink: &mut dyn FnMut(Piece<'_>) -> ControlFlow<()>) -> ControlFlow<()> {
        while self.rest.start < to {
            let (warps, account) = match self.accounts.next(self.rest.start..to).or_missing() {
                Ok(found) => found,
                Err(error) => return self.fail(error),
            };
            self.rest.start = warps.end;
            let Some(account) = account.filter(|account| account.lost > 0) else { continue };
            if let Err(error) = self.file.work.spend_rows(warps.len()) {
                return self.fail(error);
            }
            for warp in warps.filter(|&warp| self.info.is_chosen(warp)) {
                for (reason, events) in self.reasons.missing(Some(&account)) {
                    let missing = Missing { warp, reason, events };
                    sink(Piece::Missing { missing, next_event: 0 })?;
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// Ends the marks with an error.
    fn fail(&mut self, error: DecodeError) -> ControlFlow<()> {
        self.error = Some(error);
        ControlFlow::Break(())
    }

    /// Gives the marks of a warp that stand at some positions.
    fn mark(
        &self,
        &Current { warp, account, next_event }: &Current,
        is_here: impl Fn(LossPosition) -> bool,
        sink: &mut dyn FnMut(Piece<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if !self.info.is_chosen(warp) {
            return ControlFlow::Continue(());
        }
        for (reason, events) in self.reasons.missing(account.as_ref()) {
            let missing = Missing { warp, reason, events };
            if is_here(missing.position()) {
                sink(Piece::Missing { missing, next_event })?;
            }
        }
        ControlFlow::Continue(())
    }
}
