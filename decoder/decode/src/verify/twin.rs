//! Whether a trace and its raw twin hold the same events of a warp, up to the order of events that share no
//! lane.
//!
//! In the trace a run stands where it began, and events of other lanes may have happened while it was
//! repeated; in the twin they stand in between. What both tracks promise is the sequence of events that each
//! lane took part in. So the two are the same if these sequences are, lane by lane; that gives both the same
//! events and the same partial order of them (Mazurkiewicz 1977: equal traces over the dependence "shares a
//! lane").
//!
//! The trace's runs come one by one, and the twin is read as far as they reach. A run of which the twin has
//! not everything yet waits in the queue of each of its lanes. The twin's next event fits if one and the same
//! run with its location and mask is the first in the queue of every lane of its mask, and takes one of that
//! run's events. Where both tracks stand in the same order nothing ever waits.

use warptrace_format::Event;

mod ends;
mod waiting;
pub(super) use ends::{LaneEvents, Surplus};
use waiting::Waiting;

/// Runs that wait for the twin at most: 9 MiB if each has all lanes. A recorder that keeps its promise needs
/// one for each group of lanes that has diverged, and the few that it had begun behind them.
const MAX_WAITING: usize = 1 << 16;

/// An event, this many times in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EventTimes {
    pub(super) event: Event,
    pub(super) times: u32,
}

/// Lanes of a warp, and the event that they come to next in the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LanesNext {
    /// The lanes, as bits.
    pub lanes: u32,
    /// Their next event; `None` if the trace has no more of them.
    pub event: Option<Event>,
}

/// An event of the twin that does not fit the trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Misfit {
    /// Its number in the twin, from 0.
    pub(super) number: u64,
    pub(super) event: Event,
    /// What those of its lanes that disagree have next in the trace.
    pub(super) expected: Vec<LanesNext>,
}

/// How the comparison ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Each lane's sequence in one track is that in the other, as far as both go.
    Fits {
        /// The trace has events beyond the twin's end.
        trace_left: bool,
        /// The first event of the twin that is beyond the trace's end.
        twin_left: Option<Misfit>,
    },
    /// Some lane's sequences differ: at this event of the twin first.
    Differs(Misfit),
    /// Given up at event `number` of the twin, for which this many runs of the trace waited.
    TooFarApart { number: u64, waiting: usize },
}

/// The comparison of one warp's tracks: [`push`](Self::push) for each run of the trace, in its order, then
/// [`finish`](Self::finish).
pub(super) struct TwinComparison<I> {
    /// The rest of the twin: its events in order, as runs cut anywhere.
    twin: I,
    /// What the twin has next; `None` after its end.
    next: Option<EventTimes>,
    /// Number of the twin's next event.
    number: u64,
    waiting: Waiting,
    /// Events found in both tracks.
    matched: u64,
    /// The first events of the trace and of the twin, which the other one has lost.
    surplus: [Surplus; 2],
    trace_left: bool,
    trace_ended: bool,
    /// If it is known before the end.
    verdict: Option<Verdict>,
}

impl<I: Iterator<Item = EventTimes>> TwinComparison<I> {
    /// Compares tracks of which the beginnings are recorded.
    pub(super) fn new(twin: I) -> Self {
        Self::of_ends(twin, [Surplus::default(); 2])
    }

    /// Compares tracks of which ends are recorded; `surplus` are the first events of the trace and of the
    /// twin, which are passed over.
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

    /// Events of the trace and of the twin that were passed over, when the comparison is finished.
    pub(super) fn passed_over(&self) -> [u64; 2] {
        self.surplus.map(|surplus| surplus.taken)
    }

    /// Reads the twin's next run.
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

    /// Takes the trace's next run.
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

    /// The verdict, when the trace has ended, and the number of events found in both tracks.
    pub(super) fn finish(&mut self) -> (Verdict, u64) {
        self.trace_ended = true;
        let mut twin_left = None;
        while self.verdict.is_none()
            && let Some(next) = self.next
        {
            if next.event.mask & self.waiting.lanes() != 0 {
                self.take_waiting(next);
            } else {
                // No lane of it has another event in the trace. What other lanes have may still be compared.
                twin_left.get_or_insert_with(|| self.misfit(next.event));
                self.advance(next.times);
            }
        }
        let trace_left = self.trace_left || self.waiting.runs() > 0;
        (self.verdict.take().unwrap_or(Verdict::Fits { trace_left, twin_left }), self.matched)
    }

    /// Lets a run wait that is not what the twin has next.
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

    /// Finds the twin's next run, a lane of which has a run waiting, among those; false if it does not fit.
    fn take_waiting(&mut self, next: EventTimes) -> bool {
        let Some(taken) = self.waiting.take(next) else {
            self.verdict = Some(Verdict::Differs(self.misfit(next.event)));
            return false;
        };
        self.matched += u64::from(taken);
        self.advance(taken);
        true
    }

    /// Goes on by `taken` events of the twin's next run.
    #[inline]
    fn advance(&mut self, taken: u32) {
        self.number += u64::from(taken);
        match &mut self.next {
            Some(next) if next.times > taken => next.times -= taken,
            _ => self.read_twin(),
        }
    }

    /// The twin's next event, and its lanes that have another next in the trace. Those of which no run waits
    /// disagree only if the trace has ended: else theirs is still to come.
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
