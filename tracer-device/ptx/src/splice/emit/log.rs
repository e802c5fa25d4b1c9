//! Logs: entries, segments, what is lost, and links.

use std::fmt::Write;

use warptrace_abi::data::{COUNT_SHIFT, GROUP, MAX_COUNT, VALUES};
use warptrace_abi::recording::LogKind;

use super::registers::{ANY_FULL, AT, Log, P, Pred, R32, R64, Vector, X, Y};
use super::{
    COUNTS_BYTES, COUNTS_LOST, ENTRY_BYTES, Emitter, MAX_KEY_COUNT, NO_SEGMENT, TIME_SHIFT, Warp, field,
};
use crate::splice::style::Claim;

/// What was reserved for a lane.
struct Reserved {
    /// Whether there is a segment.
    granted: Pred,
    /// The addresses of its first entry that is free, and of its link.
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

impl Emitter {
    /// Appends an entry to the log of each lane for which `writes` holds. All lanes that are here take part.
    /// `is_sole`: of what is appended a lane has no copies in a streamed log.
    pub(super) fn append(&mut self, log: Log, words: Vector<4>, writes: Pred, is_sole: bool) {
        if self.style.recording.logs.is_streamed() {
            return self.append_streamed(log, words, writes, is_sole);
        }
        self.load_log(log);
        let (low, next, full) = (log.low, log.next(), P[1]);
        emit!(self, "setp.eq.and.u32 {full}, {low}, {}, {writes};", log.link);
        self.vote("any", ANY_FULL, full);
        self.detour(ANY_FULL, |emitter| match emitter.style.recording.logs {
            LogKind::Ring => emitter.turn(log, full),
            _ => emitter.refill(log, Appended::Run(words), full, writes),
        });
        emit!(self, "mov.b64 {AT}, {next};");
        emit!(self, "@{writes} st.global.v4.b32 [{AT}], {words};");
        emit!(self, "@{writes} add.u32 {low}, {low}, {ENTRY_BYTES};");
        self.store_word(Some(writes), log.next_pair, 0);
    }

    /// Gives each lane for which `full` holds a segment: another one, or the first of a lane that has none.
    /// Where memory is used up, the log is stopped, and what its lane keeps is counted as lost: `writes` no
    /// longer holds then. `full` holds only where `writes` does.
    ///
    /// A log that has been stopped stays where it is, with the lowest bit set in both addresses. A lane that
    /// has no segment has the address of the list in the stream's head instead of its link's; the bit
    /// [`NO_SEGMENT`] tells.
    pub(super) fn refill(&mut self, log: Log, appended: Appended, full: Pred, writes: Pred) {
        let (Log { low, link, .. }, next) = (log, log.next());
        let (is_stopped, wanted) = (X[2], P[2]);
        emit!(self, "and.b32 {is_stopped}, {link}, 1;");
        emit!(self, "setp.eq.and.u32 {wanted}, {is_stopped}, 0, {full};");
        emit!(self, "mov.b64 {AT}, {};", Vector([link, log.high]));
        let Reserved { granted, first, link: end } = self.reserve(log, wanted);
        emit!(self, "@{granted} mov.b64 {next}, {first};");
        emit!(self, "@{granted} cvt.u32.u64 {link}, {end};");
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
        self.lose(log, appended, lost);
        self.clear(writes, lost, lost);
        self.place_label(&none);
    }

    /// Reserves a segment for each lane for which `wanted` holds, and leads from `AT` to it: from the link before
    /// it, or from the stream's head.
    fn reserve(&mut self, log: Log, wanted: Pred) -> Reserved {
        let (granted, index, scratch) = (P[3], X[0], X[1]);
        let [end, first, limit, logs] = Y;
        let again = self.label();
        let own_loop = self.style.claim == Claim::OwnLoop;
        if own_loop {
            self.place_label(&again);
        }
        let entries = self.field(scratch, field::SEGMENT_ENTRIES);
        emit!(self, "cvt.u64.u32 {end}, {entries};");
        let counter = self.field(limit, field::CLAIMS);
        emit!(self, "mov.u64 {first}, 0;");
        emit!(self, "@{wanted} atom.global.add.u64 {first}, [{counter}], {end};");
        let from = self.field(index, field::CLAIMS_FROM);
        emit!(self, "cvt.u64.u32 {limit}, {from};");
        emit!(self, "add.u64 {first}, {first}, {limit};");
        emit!(self, "add.u64 {end}, {end}, {first};");
        let to = self.field(index, field::CLAIMS_END);
        emit!(self, "cvt.u64.u32 {limit}, {to};");
        emit!(self, "setp.le.and.u64 {granted}, {end}, {limit}, {wanted};");
        emit!(self, "cvt.u32.u64 {index}, {first};");
        self.field(logs, field::LOGS);
        emit!(self, "mad.wide.u32 {first}, {index}, {ENTRY_BYTES}, {logs};");
        let link = limit;
        emit!(self, "sub.u32 {entries}, {entries}, 1;");
        emit!(self, "mad.wide.u32 {link}, {entries}, {ENTRY_BYTES}, {first};");
        // The first segment of a lane goes to the front of the stream's list.
        let (is_first, before) = (P[4], scratch);
        emit!(self, "and.b32 {before}, {}, {NO_SEGMENT};", log.link);
        emit!(self, "setp.ne.and.u32 {is_first}, {before}, 0, {granted};");
        emit!(self, "@{is_first} atom.global.exch.b32 {before}, [{AT}], {index};");
        if own_loop {
            self.end_own_loop(first, P[0], &again);
        }
        let (follows, lane) = (P[0], X[3]);
        emit!(self, "mov.u32 {lane}, %laneid;");
        emit!(self, "@{is_first} st.global.v2.b32 [{first}], {};", Vector([before, lane]));
        emit!(self, "@{is_first} add.u64 {first}, {first}, {ENTRY_BYTES};");
        self.and_not(follows, granted, is_first);
        emit!(self, "@{follows} st.global.b32 [{AT}], {index};");
        Reserved { granted, first, link }
    }

    /// Ends a loop that runs once, around an atomic that returns `value`. No value is so large that the loop
    /// goes on; the assembler does not know.
    pub(super) fn end_own_loop(&mut self, value: R64, goes_on: Pred, again: &str) {
        emit!(self, "setp.eq.u64 {goes_on}, {value}, -1;");
        self.vote("any", goes_on, goes_on);
        emit!(self, "@{goes_on} bra {again};");
    }

    /// Counts what lanes append as lost where `lost` holds, in the warp's account, and notes its time in the
    /// stream's head if it is the earliest.
    fn lose(&mut self, log: Log, appended: Appended, lost: Pred) {
        let (word, [events, since, at, base]) = (X[0], Y);
        let warp = self.warp_in_launch();
        let stream = self.stream(log.track, warp.index, field::WARPS);
        match appended {
            Appended::Run(Vector([_, key, ..])) => emit!(self, "and.b32 {word}, {key}, {MAX_KEY_COUNT};"),
            Appended::Data { key, .. } => self.accesses(word, [X[1], X[2]], key),
        }
        emit!(self, "cvt.u64.u32 {events}, {word};");
        self.count_lost(stream, events, lost);
        let head = self.first_of_stream(stream, X[1]);
        self.field(base, field::LOGS);
        emit!(self, "mad.wide.u32 {at}, {head}, {ENTRY_BYTES}, {base};");
        match appended {
            Appended::Run(Vector([.., low, high])) => {
                emit!(self, "mov.b64 {since}, {};", Vector([low, high]));
                emit!(self, "shr.u64 {since}, {since}, {TIME_SHIFT};");
            }
            Appended::Data { time, .. } => {
                // The header's time is the lower half of a clock that has just been read.
                let ago = base;
                emit!(self, "mov.u64 {since}, %clock64;");
                emit!(self, "shr.u64 {since}, {since}, {TIME_SHIFT};");
                emit!(self, "cvt.u32.u64 {word}, {since};");
                emit!(self, "sub.u32 {word}, {word}, {time};");
                emit!(self, "cvt.u64.u32 {ago}, {word};");
                emit!(self, "sub.u64 {since}, {since}, {ago};");
            }
        }
        emit!(self, "not.b64 {since}, {since};");
        emit!(self, "@{lost} red.global.max.u64 [{at}], {since};");
    }

    /// Adds events to the attempted and lost ones of a stream where `lost` holds.
    fn count_lost(&mut self, stream: R32, events: R64, lost: Pred) {
        let counts = self.field(Y[2], field::COUNTS);
        emit!(self, "mad.wide.u32 {counts}, {stream}, {COUNTS_BYTES}, {counts};");
        emit!(self, "@{lost} red.global.add.u64 [{counts}], {events};");
        emit!(self, "@{lost} red.global.add.u64 [{counts}+{COUNTS_LOST}], {events};");
    }

    /// Finds the index of the first entry of a stream's first segments.
    fn first_of_stream(&mut self, stream: R32, to: R32) -> R32 {
        let (lanes, entries) = (self.field(X[2], field::FIRST_LANES), X[3]);
        emit!(self, "mul.lo.u32 {to}, {stream}, {lanes};");
        self.field(entries, field::FIRST_ENTRIES);
        let first = self.field(X[2], field::FIRST_SEGMENTS);
        emit!(self, "mad.lo.u32 {to}, {to}, {entries}, {first};");
        to
    }

    /// Computes how many accesses values with this key hold ([`warptrace_abi::data::accesses`]).
    fn accesses(&mut self, to: R32, [lanes, group]: [R32; 2], key: R32) {
        let is_group = P[5];
        const _: () = assert!(VALUES >> COUNT_SHIFT & MAX_COUNT == 0 && GROUP == 32);
        emit!(self, "shr.u32 {to}, {key}, {COUNT_SHIFT};");
        emit!(self, "and.b32 {to}, {to}, {MAX_COUNT};");
        emit!(self, "and.b32 {lanes}, {key}, {};", GROUP - 1);
        emit!(self, "and.b32 {group}, {key}, {GROUP};");
        emit!(self, "setp.ne.u32 {is_group}, {group}, 0;");
        emit!(self, "@{is_group} mad.lo.u32 {to}, {to}, {lanes}, {to};");
    }

    /// Ends a log: writes into its last segment's link that it leads nowhere, and how many entries before it
    /// were not written.
    pub(super) fn end_log(&mut self, log: Log) {
        let (low, none, free, bit, has_segment) = (X[0], X[1], X[2], X[3], P[0]);
        emit!(self, "and.b32 {bit}, {}, {NO_SEGMENT};", log.link);
        emit!(self, "setp.eq.u32 {has_segment}, {bit}, 0;");
        // Of a log that was stopped both have the lowest bit.
        emit!(self, "sub.u32 {free}, {}, {};", log.link, log.low);
        emit!(self, "shr.u32 {free}, {free}, {};", ENTRY_BYTES.ilog2());
        emit!(self, "and.b32 {low}, {}, -2;", log.link);
        emit!(self, "mov.b64 {AT}, {};", Vector([low, log.high]));
        emit!(self, "mov.u32 {none}, 0;");
        emit!(self, "@{has_segment} st.global.v2.b32 [{AT}], {};", Vector([none, free]));
    }

    /// Ends a ring: writes where its log ends, and adds what it has lost to the warp's account.
    pub(super) fn end_ring(&mut self, log: Log, warp: Warp) {
        let (any, events, end) = (P[0], Y[1], X[6]);
        let whole = self.label();
        let stream = self.stream(log.track, warp.index, field::WARPS);
        // The ring begins at a multiple of its length, twice that of a half.
        let half = self.ring_state(log);
        emit!(self, "shl.b32 {end}, {half}, 1;");
        emit!(self, "sub.u32 {end}, {end}, 1;");
        emit!(self, "and.b32 {end}, {end}, {};", log.low);
        emit!(self, "shr.u32 {end}, {end}, {};", ENTRY_BYTES.ilog2());
        emit!(self, "st.global.b32 [{AT}+8], {end};");
        emit!(self, "ld.global.b64 {events}, [{AT}];");
        emit!(self, "setp.ne.u64 {any}, {events}, 0;");
        self.branch_if_none(any, &whole);
        self.count_lost(stream, events, any);
        self.place_label(&whole);
    }
}
