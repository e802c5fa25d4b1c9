//! Logs: entries, segments, what is lost, and heads.

use std::fmt::Write;

use warptrace_abi::data::{COUNT_SHIFT, GROUP, MAX_COUNT, VALUES};
use warptrace_abi::recording::LogKind;

use super::registers::{ANY_FULL, AT, Log, P, Pred, R32, R64, Vector, X, Y};
use super::{
    COUNTS_BYTES, COUNTS_LOST, ENTRY_BYTES, Emitter, HEAD_BYTES, HEADS_ENTRIES, MAX_KEY_COUNT, TIME_SHIFT,
    Warp, field,
};
use crate::splice::style::Claim;

/// Whose segments are full.
#[derive(Clone, Copy)]
pub(super) struct Full {
    /// The lane's.
    pub(super) own: Pred,
    /// That of some lane that is here.
    pub(super) any: Pred,
}

/// What was reserved for a lane.
struct Reserved {
    /// Whether there is a segment.
    granted: Pred,
    /// The index of its first entry, and the addresses of that and of its link.
    index: R32,
    first: R64,
    link: R64,
}

/// What a lane appends, for what is lost of it.
#[derive(Clone, Copy)]
pub(super) enum Appended {
    /// A run of events.
    Run(Vector<4>),
    /// A header of this time, and values with this key.
    Data { key: R32, time: R32 },
}

/// What a log has lost.
pub(super) struct Lost {
    /// Whether it has lost anything.
    pub(super) any: Pred,
    pub(super) events: R64,
}

impl Emitter {
    /// Asks whose segment is full.
    pub(super) fn ask_full(&mut self, log: Log) -> Full {
        let own = P[1];
        emit!(self, "setp.eq.u32 {own}, {}, {};", log.low, log.link);
        self.vote("any", ANY_FULL, own);
        Full { own, any: ANY_FULL }
    }

    /// Appends an entry to the log of each lane for which `writes` holds. All lanes that are here take part.
    /// `full`: what `ask_full` has found, if it was asked. `is_sole`: of what is appended a lane has no
    /// copies in a streamed log.
    pub(super) fn append(
        &mut self,
        log: Log,
        words: Vector<4>,
        writes: Pred,
        full: Option<Full>,
        is_sole: bool,
    ) {
        if self.style.recording.logs.is_streamed() {
            return self.append_streamed(log, words, writes, is_sole);
        }
        self.load_log(log);
        let full = full.unwrap_or_else(|| self.ask_full(log));
        self.detour(full.any, |emitter| match emitter.style.recording.logs {
            LogKind::Ring => emitter.turn(log, full.own),
            _ => emitter.refill(log, Appended::Run(words), full.own, writes),
        });
        let (low, next) = (log.low, log.next());
        emit!(self, "mov.b64 {AT}, {next};");
        emit!(self, "@{writes} st.global.v4.b32 [{AT}], {words};");
        emit!(self, "@{writes} add.u32 {low}, {low}, {ENTRY_BYTES};");
        self.store_word(Some(writes), log.next_pair, 0);
    }

    /// Gives each lane for which `full` holds another segment. Where memory is used up, the log is stopped,
    /// and what its lane keeps is counted as lost: `writes` no longer holds then.
    ///
    /// A log that has been stopped stays at its link, with the lowest bit set in both addresses. The link
    /// has, next to the 0 in its first word, the lost events (words 1 and 3) and the time of the first one,
    /// with the lowest bit set (word 2).
    pub(super) fn refill(&mut self, log: Log, appended: Appended, full: Pred, writes: Pred) {
        let (Log { low, link, .. }, next) = (log, log.next());
        let (is_stopped, wanted) = (X[2], P[2]);
        emit!(self, "and.b32 {is_stopped}, {link}, 1;");
        emit!(self, "setp.eq.and.u32 {wanted}, {is_stopped}, 0, {full};");
        let note = self.link_address(log, is_stopped);
        let reserved = self.reserve(wanted);
        let Reserved { granted, index, first, .. } = reserved;
        emit!(self, "@{granted} st.global.b32 [{note}], {index};");
        emit!(self, "@{granted} mov.b64 {next}, {first};");
        emit!(self, "@{granted} cvt.u32.u64 {link}, {};", reserved.link);
        // Stopped are those who asked for a segment and got none.
        let (denied, stops) = (granted, wanted);
        emit!(self, "not.pred {denied}, {granted};");
        emit!(self, "and.pred {stops}, {wanted}, {denied};");
        emit!(self, "@{stops} or.b32 {low}, {low}, 1;");
        emit!(self, "@{stops} or.b32 {link}, {link}, 1;");
        self.store_log(log);
        let (none, lost) = (self.label(), full);
        emit!(self, "and.pred {lost}, {full}, {denied};");
        self.branch_if_none(lost, &none);
        self.lose(appended, note, lost, stops, writes);
        self.place_label(&none);
    }

    /// Finds the address of a log's link; `is_stopped` is the lowest bit of `log.link`, and is used up.
    fn link_address(&mut self, log: Log, is_stopped: R32) -> R64 {
        let low = is_stopped;
        emit!(self, "xor.b32 {low}, {}, {is_stopped};", log.link);
        emit!(self, "mov.b64 {AT}, {};", Vector([low, log.high]));
        AT
    }

    /// Reserves a segment for each lane for which `wanted` holds.
    fn reserve(&mut self, wanted: Pred) -> Reserved {
        let (granted, index) = (P[3], X[0]);
        let [end, first, limit, ..] = Y;
        let again = self.label();
        let own_loop = self.style.claim == Claim::OwnLoop;
        if own_loop {
            self.place_label(&again);
        }
        let entries = self.field(X[1], field::SEGMENT_ENTRIES);
        emit!(self, "cvt.u64.u32 {end}, {entries};");
        let counter = self.field(Y[2], field::CLAIMS);
        emit!(self, "mov.u64 {first}, 0;");
        emit!(self, "@{wanted} atom.global.add.u64 {first}, [{counter}], {end};");
        if own_loop {
            self.end_own_loop(first, granted, &again);
        }
        let from = self.field(X[0], field::CLAIMS_FROM);
        emit!(self, "cvt.u64.u32 {limit}, {from};");
        emit!(self, "add.u64 {first}, {first}, {limit};");
        emit!(self, "add.u64 {end}, {end}, {first};");
        let to = self.field(X[0], field::CLAIMS_END);
        emit!(self, "cvt.u64.u32 {limit}, {to};");
        emit!(self, "setp.le.and.u64 {granted}, {end}, {limit}, {wanted};");
        emit!(self, "cvt.u32.u64 {index}, {first};");
        let (logs, link) = (self.field(Y[3], field::LOGS), limit);
        emit!(self, "mad.wide.u32 {first}, {index}, {ENTRY_BYTES}, {logs};");
        emit!(self, "sub.u32 {entries}, {entries}, 1;");
        emit!(self, "mad.wide.u32 {link}, {entries}, {ENTRY_BYTES}, {first};");
        Reserved { granted, index, first, link }
    }

    /// Ends a loop that runs once, around an atomic that returns `value`. No value is so large that the loop
    /// goes on; the assembler does not know.
    pub(super) fn end_own_loop(&mut self, value: R64, goes_on: Pred, again: &str) {
        emit!(self, "setp.eq.u64 {goes_on}, {value}, -1;");
        self.vote("any", goes_on, goes_on);
        emit!(self, "@{goes_on} bra {again};");
    }

    /// Counts the entry as lost, if its lane keeps it, where `lost` holds; `writes` no longer holds then. The
    /// link is at `note`; `is_first`: the log has just been stopped.
    fn lose(&mut self, appended: Appended, note: R64, lost: Pred, is_first: Pred, writes: Pred) {
        let [word, low, since, high, ..] = X;
        let (noted, events) = (Vector([word, low, since, high]), Vector([low, high]));
        for word in [low, since, high] {
            emit!(self, "mov.u32 {word}, 0;");
        }
        let (again, kept) = (P[3], P[4]);
        self.and_not(again, lost, is_first);
        emit!(self, "@{again} ld.global.v4.b32 {noted}, [{note}];");
        emit!(self, "and.pred {kept}, {lost}, {writes};");
        let (sum, addend) = (Y[0], Y[1]);
        match appended {
            Appended::Run(Vector([_, key, ..])) => emit!(self, "and.b32 {word}, {key}, {MAX_KEY_COUNT};"),
            Appended::Data { key, .. } => self.accesses(word, key),
        }
        emit!(self, "selp.u32 {word}, {word}, 0, {kept};");
        emit!(self, "cvt.u64.u32 {sum}, {word};");
        emit!(self, "mov.b64 {addend}, {events};");
        emit!(self, "add.u64 {sum}, {sum}, {addend};");
        emit!(self, "mov.b64 {events}, {sum};");
        // The first one's time stays.
        let (is_earliest, clock) = (kept, addend);
        emit!(self, "setp.eq.and.u32 {is_earliest}, {since}, 0, {kept};");
        let time = match appended {
            Appended::Run(Vector([_, _, low, high])) => {
                emit!(self, "mov.b64 {clock}, {};", Vector([low, high]));
                emit!(self, "shr.u64 {clock}, {clock}, {TIME_SHIFT};");
                emit!(self, "cvt.u32.u64 {word}, {clock};");
                word
            }
            Appended::Data { time, .. } => time,
        };
        emit!(self, "@{is_earliest} or.b32 {since}, {time}, 1;");
        emit!(self, "mov.u32 {word}, 0;");
        emit!(self, "@{lost} st.global.v4.b32 [{note}], {noted};");
        self.clear(writes, lost, again);
    }

    /// Computes how many accesses values with this key hold ([`warptrace_abi::data::accesses`]).
    fn accesses(&mut self, to: R32, key: R32) {
        let (lanes, group, is_group) = (X[4], X[5], P[5]);
        const _: () = assert!(VALUES >> COUNT_SHIFT & MAX_COUNT == 0 && GROUP == 32);
        emit!(self, "shr.u32 {to}, {key}, {COUNT_SHIFT};");
        emit!(self, "and.b32 {to}, {to}, {MAX_COUNT};");
        emit!(self, "and.b32 {lanes}, {key}, {};", GROUP - 1);
        emit!(self, "and.b32 {group}, {key}, {GROUP};");
        emit!(self, "setp.ne.u32 {is_group}, {group}, 0;");
        emit!(self, "@{is_group} mad.lo.u32 {to}, {to}, {lanes}, {to};");
    }

    /// Finds what a log that may have been stopped has lost, and in `second` the head's second word then.
    /// Goes to `whole` if no lane has lost any.
    fn lost_in_stopped(&mut self, log: Log, second: R32, whole: &str) -> Lost {
        let (any, events) = (P[0], Y[1]);
        let (low, high, word) = (X[2], X[3], X[6]);
        let is_stopped = low;
        // A log that has been stopped has something to say.
        emit!(self, "and.b32 {is_stopped}, {}, 1;", log.link);
        emit!(self, "setp.ne.u32 {any}, {is_stopped}, 0;");
        self.branch_if_none(any, whole);
        let note = self.link_address(log, is_stopped);
        emit!(self, "mov.u32 {low}, 0;");
        emit!(self, "mov.u32 {high}, 0;");
        emit!(self, "@{any} ld.global.v4.b32 {}, [{note}];", Vector([word, low, second, high]));
        emit!(self, "mov.b64 {events}, {};", Vector([low, high]));
        emit!(self, "setp.ne.u64 {any}, {events}, 0;");
        Lost { any, events }
    }

    /// Writes the lane's head of a log, and adds what the log has lost to the warp's counts.
    pub(super) fn head(&mut self, log: Log, warp: Warp) {
        let (index, second, head) = (X[6], X[7], Y[0]);
        let whole = self.label();
        let stream = self.stream(log.track, warp.index, field::WARPS);
        let heads = self.field(index, field::HEADS);
        emit!(self, "mad.lo.u32 {index}, {stream}, {HEADS_ENTRIES}, {heads};");
        let logs = self.field(Y[3], field::LOGS);
        emit!(self, "mad.wide.u32 {head}, {index}, {ENTRY_BYTES}, {logs};");
        emit!(self, "mad.wide.u32 {head}, {}, {HEAD_BYTES}, {head};", warp.thread.lane);
        emit!(self, "mov.u32 {second}, 0;");
        let Lost { any, events } = match self.style.recording.logs {
            LogKind::Ring => self.lost_in_ring(log, second, &whole),
            _ => self.lost_in_stopped(log, second, &whole),
        };
        let counts = self.field(Y[2], field::COUNTS);
        emit!(self, "mad.wide.u32 {counts}, {stream}, {COUNTS_BYTES}, {counts};");
        emit!(self, "@{any} red.global.add.u64 [{counts}], {events};");
        emit!(self, "@{any} red.global.add.u64 [{counts}+{COUNTS_LOST}], {events};");
        self.place_label(&whole);
        // The index of the entry after the last one.
        emit!(self, "mov.b64 {AT}, {};", log.next());
        emit!(self, "sub.u64 {AT}, {AT}, {logs};");
        emit!(self, "shr.u64 {AT}, {AT}, {};", ENTRY_BYTES.ilog2());
        emit!(self, "cvt.u32.u64 {index}, {AT};");
        emit!(self, "st.global.v2.b32 [{head}], {};", Vector([index, second]));
    }
}
