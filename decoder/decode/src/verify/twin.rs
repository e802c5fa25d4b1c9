//! Comparison of a warp's trace with its raw twin.
//!
//! The order of events that share no lane may differ. In the trace, a run stands where it began, and events
//! of other lanes may have happened while it repeated; in the twin, they come in between. Both tracks
//! preserve the sequence of events of each lane. So the tracks are equivalent if these sequences are equal
//! for each lane: then they have the same events and the same partial order (Mazurkiewicz 1977: equal traces
//! over the dependence "shares a lane").
//!
//! The trace's runs arrive one by one, and the twin is read as far as they reach. A run that the twin has not
//! fully matched waits in the queue of each of its lanes. The twin's next event fits if the same run, with
//! its location and mask, is first in the queue of every lane of its mask; it then consumes one event of the
//! run. If both tracks have the same order, no run waits.

use warptrace_format::Event;

mod ends;
mod waiting;
pub(super) use ends::{LaneEvents, Surplus};
use waiting::Waiting;

/// Maximum number of waiting runs: 9 MiB with all lanes. A sound recording has a few per diverged group.
const MAX_WAITING: usize = 1 << 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EventTimes {
    pub(super) event: Event,
    pub(super) times: u32,
}

/// Lanes of a warp, and their next event in the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LanesNext {
    /// The lanes, as bits.
    pub lanes: u32,
    /// Their next event; `None` if the trace has no more events for them.
    pub event: Option<Event>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Misfit {
    pub(super) number: u64,
    pub(super) event: Event,
    /// The next events in the trace of the lanes that disagree.
    pub(super) expected: Vec<LanesNext>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// The sequences of each lane are equal, as far as both tracks go.
    Fits {
        /// Whether the trace has events after the twin's end.
        trace_left: bool,
        /// The first event of the twin after the trace's end.
        twin_left: Option<Misfit>,
    },
    /// The sequences of some lane differ, first at this event of the twin.
    Differs(Misfit),
    /// The comparison stopped at event `number` of the twin, with `waiting` runs of the trace in the queues.
    TooFarApart { number: u64, waiting: usize },
}

/// The comparison of one warp's tracks. [`push`](Self::push) takes the trace's runs in order.
pub(super) struct TwinComparison<I> {
    /// The rest of the twin, as runs in order that may be cut anywhere.
    twin: I,
    next: Option<EventTimes>,
    number: u64,
    waiting: Waiting,
    matched: u64,
    /// The first events of the trace and of the twin that the other one has lost.
    surplus: [Surplus; 2],
    trace_left: bool,
    trace_ended: bool,
    verdict: Option<Verdict>,
}

impl<I: Iterator<Item = EventTimes>> TwinComparison<I> {
    pub(super) fn new(twin: I) -> Self {
        Self::of_ends(twin, [Surplus::default(); 2])
    }

    /// Compares tracks whose ends are recorded. Skips `surplus`, the first events of each.
    pub(super) fn of_ends(twin: I, surplus: [Surplus; 2]) -> Self {
        let mut comparison = Self {
            twin,
            next: None,
            number: 0,
            waiting: Waiting::new(),
            matched: 0,
            surplus,
            trace_left: false,
            trace_ended: false,
            verdict: None,
        };
        comparison.read_twin();
        comparison
    }

    pub(super) fn passed_over(&self) -> [u64; 2] {
        self.surplus.map(|surplus| surplus.taken)
    }

    fn read_twin(&mut self) {
        loop {
            self.next = self.twin.next();
            let Some(run) = &mut self.next else { return };
            let [_, surplus] = &mut self.surplus;
            let taken = surplus.take(*run);
            run.times -= taken;
            self.number += u64::from(taken);
            if run.times != 0 {
                return;
            }
        }
    }

    #[inline]
    pub(super) fn push(&mut self, EventTimes { event, times: mut remaining }: EventTimes) {
        if self.verdict.is_some() {
            return;
        }
        let [surplus, _] = &mut self.surplus;
        remaining -= surplus.take(EventTimes { event, times: remaining });
        while remaining > 0 {
            let Some(next) = self.next else {
                self.trace_left = true;
                return;
            };
            if next.event.mask & self.waiting.lanes() != 0 {
                if !self.take_waiting(next) {
                    return;
                }
            } else if next.event == event {
                let taken = remaining.min(next.times);
                remaining -= taken;
                self.matched += u64::from(taken);
                self.advance(taken);
            } else {
                self.wait(EventTimes { event, times: remaining }, next);
                return;
            }
        }
    }

    pub(super) fn finish(&mut self) -> (Verdict, u64) {
        self.trace_ended = true;
        let mut twin_left = None;
        while self.verdict.is_none()
            && let Some(next) = self.next
        {
            if next.event.mask & self.waiting.lanes() != 0 {
                self.take_waiting(next);
            } else {
                // Its lanes have no more events in the trace. Other lanes may still be compared.
                twin_left.get_or_insert_with(|| self.misfit(next.event));
                self.advance(next.times);
            }
        }
        let trace_left = self.trace_left || self.waiting.runs() > 0;
        (self.verdict.take().unwrap_or(Verdict::Fits { trace_left, twin_left }), self.matched)
    }

    fn wait(&mut self, run: EventTimes, next: EventTimes) {
        if self.waiting.runs() == MAX_WAITING {
            self.verdict = Some(Verdict::TooFarApart { number: self.number, waiting: MAX_WAITING });
            return;
        }
        self.waiting.push(run);
        if next.event.mask & run.event.mask != 0 {
            self.verdict = Some(Verdict::Differs(self.misfit(next.event)));
        }
    }

    /// Matches the twin's next run with a waiting run. Returns false if it does not fit.
    fn take_waiting(&mut self, next: EventTimes) -> bool {
        let Some(taken) = self.waiting.take(next) else {
            self.verdict = Some(Verdict::Differs(self.misfit(next.event)));
            return false;
        };
        self.matched += u64::from(taken);
        self.advance(taken);
        true
    }

    #[inline]
    fn advance(&mut self, taken: u32) {
        self.number += u64::from(taken);
        match &mut self.next {
            Some(next) if next.times > taken => next.times -= taken,
            _ => self.read_twin(),
        }
    }

    /// Describes the twin's next event and its lanes that have another next event in the trace. A lane
    /// without a waiting run disagrees only if the trace has ended.
    fn misfit(&self, event: Event) -> Misfit {
        let mut expected: Vec<LanesNext> = Vec::new();
        for lane in (0..32).filter(|lane| event.mask >> lane & 1 == 1) {
            let next = self.waiting.first(lane);
            if next == Some(event) || (next.is_none() && !self.trace_ended) {
                continue;
            }
            match expected.iter_mut().find(|group| group.event == next) {
                Some(group) => group.lanes |= 1 << lane,
                None => expected.push(LanesNext { lanes: 1 << lane, event: next }),
            }
        }
        Misfit { number: self.number, event, expected }
    }
}

#[cfg(test)]
mod tests;
