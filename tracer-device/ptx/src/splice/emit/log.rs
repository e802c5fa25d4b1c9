//! Logs: entries, segments, what is lost, and links.

use std::fmt::Write;

use warptrace_abi::data::{COUNT_SHIFT, GROUP, MAX_COUNT, VALUES};
use warptrace_abi::log::STOPPED;
use warptrace_abi::recording::LogKind;

use super::registers::{ACTIVE, ANY_FULL, AT, Log, P, Pred, R32, R64, Vector, X, Y};
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
    /// A log that was stopped has no addresses any more: its registers count lost events. `high` is the lower half
    /// of the count. `link` and `low` are both the upper half, shifted left by one bit, plus 1. So they are equal, as in a
    /// full log, and the lowest bit says "stopped". Of another log without a segment they are the address of the list in
    /// the stream's head; the bit [`NO_SEGMENT`] says so.
    pub(super) fn refill(&mut self, log: Log, appended: Appended, full: Pred, writes: Pred) {
        let (Log { low, high, link, .. }, next) = (log, log.next());
        let (is_stopped, wanted) = (X[2], P[2]);
        emit!(self, "and.b32 {is_stopped}, {link}, 1;");
        emit!(self, "setp.eq.and.u32 {wanted}, {is_stopped}, 0, {full};");
        emit!(self, "mov.b64 {AT}, {};", Vector([link, high]));
        let Reserved { granted, first, link: end } = self.reserve(log, wanted);
        emit!(self, "@{granted} mov.b64 {next}, {first};");
        emit!(self, "@{granted} cvt.u32.u64 {link}, {end};");
        // Stopped are those who asked for a segment and got none.
        let (denied, stops) = (P[4], wanted);
        emit!(self, "not.pred {denied}, {granted};");
        emit!(self, "and.pred {stops}, {wanted}, {denied};");
        self.note_stop(log, appended, stops);
        emit!(self, "@{stops} mov.u32 {link}, 1;");
        emit!(self, "@{stops} mov.u32 {high}, 0;");
        let (lost, events, sum, carry, carries) = (full, X[0], X[3], X[1], denied);
        emit!(self, "and.pred {lost}, {full}, {denied};");
        match appended {
            Appended::Run(Vector([_, key, ..])) => emit!(self, "and.b32 {events}, {key}, {MAX_KEY_COUNT};"),
            Appended::Data { key, .. } => self.accesses(events, [X[1], X[2]], key),
        }
        emit!(self, "add.u32 {sum}, {high}, {events};");
        emit!(self, "setp.lt.u32 {carries}, {sum}, {events};");
        emit!(self, "selp.u32 {carry}, 2, 0, {carries};");
        emit!(self, "@{lost} mov.u32 {high}, {sum};");
        emit!(self, "@{lost} add.u32 {link}, {link}, {carry};");
        emit!(self, "@{lost} mov.u32 {low}, {link};");
        self.store_log(log);
        self.clear(writes, lost, lost);
    }

    /// Notes when what a lane loses first began, where `stops` holds: in the last link, to which `AT` leads, or in the
    /// stream's head if the lane has no segment.
    fn note_stop(&mut self, log: Log, appended: Appended, stops: Pred) {
        let (bit, time, [since, ago, ..], has_none) = (X[0], X[1], Y, P[0]);
        match appended {
            Appended::Run(Vector([.., low, high])) => {
                emit!(self, "mov.b64 {since}, {};", Vector([low, high]));
                emit!(self, "shr.u64 {since}, {since}, {TIME_SHIFT};");
            }
            Appended::Data { time: begin, .. } => {
                // The header's time is the lower half of a clock that has just been read.
                emit!(self, "mov.u64 {since}, %clock64;");
                emit!(self, "shr.u64 {since}, {since}, {TIME_SHIFT};");
                emit!(self, "cvt.u32.u64 {time}, {since};");
                emit!(self, "sub.u32 {time}, {time}, {begin};");
                emit!(self, "cvt.u64.u32 {ago}, {time};");
                emit!(self, "sub.u64 {since}, {since}, {ago};");
            }
        }
        emit!(self, "cvt.u32.u64 {time}, {since};");
        emit!(self, "not.b64 {since}, {since};");
        emit!(self, "and.b32 {bit}, {}, {NO_SEGMENT};", log.link);
        emit!(self, "setp.ne.and.u32 {has_none}, {bit}, 0, {stops};");
        emit!(self, "@{has_none} red.global.max.u64 [{AT}+-{NO_SEGMENT}], {since};");
        let has_one = has_none;
        emit!(self, "setp.eq.and.u32 {has_one}, {bit}, 0, {stops};");
        let (none, stopped) = (X[2], bit);
        emit!(self, "mov.u32 {none}, 0;");
        emit!(self, "mov.u32 {stopped}, {STOPPED};");
        emit!(self, "@{has_one} st.global.v2.b32 [{AT}], {};", Vector([none, stopped]));
        emit!(self, "@{has_one} st.global.b32 [{AT}+8], {time};");
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
    /// were not written. The link of a stopped log was written when it stopped; what its lane has lost goes to the warp's
    /// account.
    pub(super) fn end_log(&mut self, log: Log) {
        let (none, free, bits, ends) = (X[1], X[2], X[3], P[0]);
        emit!(self, "and.b32 {bits}, {}, {};", log.link, NO_SEGMENT | 1);
        emit!(self, "setp.eq.u32 {ends}, {bits}, 0;");
        let (only_lane_0, end) = (P[1], self.label());
        let lanes = self.field(X[0], field::FIRST_LANES);
        emit!(self, "setp.eq.u32 {only_lane_0}, {lanes}, 1;");
        emit!(self, "@{only_lane_0} bra {end};");
        self.leave_out_empty(log, ends);
        self.place_label(&end);
        emit!(self, "sub.u32 {free}, {}, {};", log.link, log.low);
        emit!(self, "shr.u32 {free}, {free}, {};", ENTRY_BYTES.ilog2());
        emit!(self, "mov.b64 {AT}, {};", Vector([log.link, log.high]));
        emit!(self, "mov.u32 {none}, 0;");
        emit!(self, "@{ends} st.global.v2.b32 [{AT}], {};", Vector([none, free]));
        let (stopped, lost) = (X[0], P[1]);
        emit!(self, "and.b32 {stopped}, {}, 1;", log.link);
        emit!(self, "setp.ne.u32 {lost}, {stopped}, 0;");
        self.vote("any", ANY_FULL, lost);
        self.detour(ANY_FULL, |emitter| {
            let (upper, events) = (X[0], Y[0]);
            let warp = emitter.warp_in_launch();
            let stream = emitter.stream(log.track, warp.index, field::WARPS);
            emit!(emitter, "shr.u32 {upper}, {}, 1;", log.link);
            emit!(emitter, "mov.b64 {events}, {};", Vector([log.high, upper]));
            emitter.count_lost(stream, events, lost);
        });
    }

    /// Where each lane has a first segment: adds the lanes whose logs hold entries to the stream's head. `ends` no
    /// longer holds in the others.
    fn leave_out_empty(&mut self, log: Log, ends: Pred) {
        let (entries, index, holders, holds) = (X[3], X[0], X[5], P[2]);
        let [base, first, at, next] = Y;
        // Lanes may have parted at a claim since they came to the epilogue.
        self.active();
        let warp = self.warp_in_launch();
        let stream = self.stream(log.track, warp.index, field::WARPS);
        let head = self.first_of_stream(stream, X[6]);
        self.field(base, field::LOGS);
        emit!(self, "mad.wide.u32 {at}, {head}, {ENTRY_BYTES}, {base};");
        emit!(self, "mad.lo.u32 {index}, {}, {entries}, {head};", warp.thread.lane);
        emit!(self, "mad.wide.u32 {first}, {index}, {ENTRY_BYTES}, {base};");
        emit!(self, "add.u64 {first}, {first}, {ENTRY_BYTES};");
        emit!(self, "mov.b64 {next}, {};", log.next());
        emit!(self, "setp.ne.u64 {holds}, {next}, {first};");
        emit!(self, "and.pred {ends}, {ends}, {holds};");
        self.ballot(holders, holds);
        let leads = self.is_lowest(ACTIVE);
        emit!(self, "setp.ne.and.u32 {leads}, {holders}, 0, {leads};");
        emit!(self, "@{leads} red.global.or.b32 [{at}+12], {holders};");
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
