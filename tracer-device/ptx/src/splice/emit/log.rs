//! Logs: entries, segments, losses and links.

use std::fmt::Write;

use warptrace_abi::data::{COUNT_SHIFT, GROUP, MAX_COUNT, VALUES};
use warptrace_abi::log::{ALL_LEFT, LOCATION_SHIFT, STOPPED, STOPPED_TIME_SHIFT};
use warptrace_abi::recording::LogKind;

use super::registers::{
    ACTIVE, ANY_FULL, AT, LANES_BELOW, Log, MASK, OPENS, P, Pred, R32, R64, TIME, TRACE, Vector, X, Y,
};
use super::{
    COUNTS_BYTES, COUNTS_LOST, ENTRY_BYTES, Emitter, MAX_KEY_COUNT, NO_SEGMENT, TIME_SHIFT, Warp, field,
};
use crate::splice::style::Claim;

/// Least value of `high` in a stopped log without a link. No entry has such an index.
const NO_LINK: u32 = 0xffff_0000;
const _: () = assert!(NO_LINK == warptrace_abi::log::MAX_ENTRIES);

struct Reserved {
    granted: Pred,
    /// Addresses of the first free entry and of the link.
    first: R64,
    link: R64,
}

/// Kind of an appended entry, for counting losses.
#[derive(Clone, Copy)]
pub(super) enum Appended {
    /// A run of events.
    Run(Vector<4>),
    /// Values with this key, and the time of their header.
    Data { key: R32, time: R32 },
}

impl Emitter {
    /// Appends an entry to the log of each lane with `writes` set. All active lanes take part. `is_sole`
    /// means that no other lane has a copy of the entry in a streamed log.
    pub(super) fn append(&mut self, log: Log, words: Vector<4>, writes: Pred, is_sole: bool) {
        if self.style.recording.logs.is_streamed() {
            return self.append_streamed(log, words, writes, is_sole);
        }
        self.append_kept(log, words, writes, None);
    }

    /// Like [`Emitter::append`] for logs that are not streamed. Lanes with [`OPENS`] set begin a run at the
    /// location: they get a segment if they have none, and the run is noted if their log is stopped.
    pub(super) fn append_kept(&mut self, log: Log, words: Vector<4>, writes: Pred, begins: Option<u16>) {
        self.load_log(log);
        let (low, next, full) = (log.low, log.next(), P[1]);
        emit!(self, "setp.eq.and.u32 {full}, {low}, {}, {writes};", log.link);
        let mut any = full;
        if begins.is_some() {
            any = P[0];
            let bits = X[0];
            emit!(self, "and.b32 {bits}, {}, {};", log.link, NO_SEGMENT | 1);
            emit!(self, "setp.ne.and.u32 {any}, {bits}, 0, {OPENS};");
            emit!(self, "or.pred {any}, {any}, {full};");
        }
        self.vote("any", ANY_FULL, any);
        self.detour(ANY_FULL, |emitter| match emitter.style.recording.logs {
            LogKind::Ring => emitter.turn(log, full),
            _ => {
                emitter.refill(log, Appended::Run(words), full, writes, begins.is_some());
                begins.into_iter().for_each(|location| emitter.open_stopped(log, location));
            }
        });
        emit!(self, "mov.b64 {AT}, {next};");
        emit!(self, "@{writes} st.global.v4.b32 [{AT}], {words};");
        emit!(self, "@{writes} add.u32 {low}, {low}, {ENTRY_BYTES};");
        self.store_word(Some(writes), log.next_pair, 0);
    }

    /// Gives each lane with `full` set a segment: its first or another one. If no memory is left, stops the
    /// log, counts the lane's entries as lost and clears `writes`. `full` implies `writes`.
    ///
    /// A stopped log needs no address, so its registers count lost events. `low` and `link` both hold twice
    /// the count plus 1: they are equal, as in a full log, and the lowest bit marks a stopped log. `high` is
    /// the index of the log's last link, whose second word counts overflows of the count; without a link it
    /// is [`NO_LINK`] plus the number of overflows. In a log that has no segment and is not stopped, `link`
    /// is the address of the list in the stream's head, marked by the bit [`NO_SEGMENT`]. With `opens`, lanes
    /// with [`OPENS`] set and without a segment get one too, if available.
    pub(super) fn refill(&mut self, log: Log, appended: Appended, full: Pred, writes: Pred, opens: bool) {
        let (Log { low, high, link, .. }, next) = (log, log.next());
        let (bits, wanted) = (X[2], P[2]);
        emit!(self, "and.b32 {bits}, {link}, {};", NO_SEGMENT | 1);
        let mut asks = wanted;
        if opens {
            // The vote's result is no longer needed.
            asks = ANY_FULL;
            emit!(self, "setp.eq.and.u32 {asks}, {bits}, {NO_SEGMENT}, {OPENS};");
        }
        emit!(self, "and.b32 {bits}, {bits}, 1;");
        emit!(self, "setp.eq.and.u32 {wanted}, {bits}, 0, {full};");
        if opens {
            emit!(self, "or.pred {asks}, {asks}, {wanted};");
        }
        emit!(self, "mov.b64 {AT}, {};", Vector([link, high]));
        let Reserved { granted, first, link: end } = self.reserve(log, asks);
        emit!(self, "@{granted} mov.b64 {next}, {first};");
        emit!(self, "@{granted} cvt.u32.u64 {link}, {end};");
        // Lanes that requested a segment and got none are stopped.
        let (denied, stops) = (P[4], wanted);
        emit!(self, "not.pred {denied}, {granted};");
        emit!(self, "and.pred {stops}, {wanted}, {denied};");
        self.note_stop(log, appended, stops);
        let (lost, events, sum, carries) = (full, X[0], X[3], P[0]);
        emit!(self, "and.pred {lost}, {full}, {denied};");
        match appended {
            Appended::Run(Vector([_, key, ..])) => emit!(self, "and.b32 {events}, {key}, {MAX_KEY_COUNT};"),
            Appended::Data { key, .. } => self.accesses(events, [X[1], X[2]], key),
        }
        emit!(self, "mad.lo.u32 {sum}, {events}, 2, {link};");
        emit!(self, "setp.lt.and.u32 {carries}, {sum}, {link}, {lost};");
        emit!(self, "@{lost} mov.u32 {link}, {sum};");
        emit!(self, "@{lost} mov.u32 {low}, {sum};");
        let (has_link, one) = (denied, X[0]);
        self.stopped_link(log, has_link);
        emit!(self, "and.pred {has_link}, {has_link}, {carries};");
        emit!(self, "mov.u32 {one}, 1;");
        emit!(self, "@{has_link} red.global.add.u32 [{AT}+4], {one};");
        self.clear(carries, has_link, has_link);
        emit!(self, "@{carries} add.u32 {high}, {high}, 1;");
        self.store_log(log);
        self.clear(writes, lost, lost);
    }

    /// Computes the address of a stopped log's last link (`AT`), and whether the log has one.
    fn stopped_link(&mut self, log: Log, has_link: Pred) {
        let logs = self.field(Y[0], field::LOGS);
        emit!(self, "setp.lt.u32 {has_link}, {}, {NO_LINK};", log.high);
        emit!(self, "mad.wide.u32 {AT}, {}, {ENTRY_BYTES}, {logs};", log.high);
    }

    /// Notes the first loss's time in lanes with `stops` set: in the last link (`AT`) or the stream's head.
    fn note_stop(&mut self, log: Log, appended: Appended, stops: Pred) {
        let (bit, time, [since, ago, ..], has_none) = (X[0], X[1], Y, P[0]);
        match appended {
            Appended::Run(Vector([.., low, high])) => {
                emit!(self, "mov.b64 {since}, {};", Vector([low, high]));
                emit!(self, "shr.u64 {since}, {since}, {TIME_SHIFT};");
            }
            Appended::Data { time: begin, .. } => {
                // The header's time is the lower half of a recent clock value.
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
        emit!(self, "@{has_none} mov.u32 {}, {NO_LINK};", log.high);
        let has_one = has_none;
        emit!(self, "setp.eq.and.u32 {has_one}, {bit}, 0, {stops};");
        let (none, stopped, logs, index) = (X[2], bit, ago, since);
        emit!(self, "mov.u32 {none}, 0;");
        emit!(self, "mov.u32 {stopped}, {STOPPED};");
        emit!(self, "@{has_one} st.global.v4.b32 [{AT}], {};", Vector([none, stopped, time, none]));
        self.field(logs, field::LOGS);
        emit!(self, "sub.u64 {index}, {AT}, {logs};");
        emit!(self, "shr.u64 {index}, {index}, {};", ENTRY_BYTES.ilog2());
        emit!(self, "@{has_one} cvt.u32.u64 {}, {index};", log.high);
        emit!(self, "@{stops} mov.u32 {}, 1;", log.link);
        emit!(self, "@{stops} mov.u32 {}, 1;", log.low);
    }

    /// Reserves a segment for each lane with `wanted` set; links it from `AT`, a link or the stream's head.
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
        // A lane's first segment is inserted at the front of the stream's list.
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
        // The link's slot may hold an unfinished run.
        let zero = lane;
        emit!(self, "mov.u32 {zero}, 0;");
        emit!(self, "@{follows} st.global.v4.b32 [{AT}], {};", Vector([index, zero, zero, zero]));
        Reserved { granted, first, link }
    }

    /// Ends a loop around an atomic that returns `value`. It runs once, but the assembler does not know this.
    pub(super) fn end_own_loop(&mut self, value: R64, goes_on: Pred, again: &str) {
        emit!(self, "setp.eq.u64 {goes_on}, {value}, -1;");
        self.vote("any", goes_on, goes_on);
        emit!(self, "@{goes_on} bra {again};");
    }

    /// Adds events to a stream's attempted and lost events in lanes with `lost` set.
    fn count_lost(&mut self, stream: R32, events: R64, lost: Pred) {
        let counts = self.field(Y[2], field::COUNTS);
        emit!(self, "mad.wide.u32 {counts}, {stream}, {COUNTS_BYTES}, {counts};");
        emit!(self, "@{lost} red.global.add.u64 [{counts}], {events};");
        emit!(self, "@{lost} red.global.add.u64 [{counts}+{COUNTS_LOST}], {events};");
    }

    /// Computes the index of the first entry of a stream's first segments.
    fn first_of_stream(&mut self, stream: R32, to: R32) -> R32 {
        let (lanes, entries) = (self.field(X[2], field::FIRST_LANES), X[3]);
        emit!(self, "mul.lo.u32 {to}, {stream}, {lanes};");
        self.field(entries, field::FIRST_ENTRIES);
        let first = self.field(X[2], field::FIRST_SEGMENTS);
        emit!(self, "mad.lo.u32 {to}, {to}, {entries}, {first};");
        to
    }

    /// Computes the number of accesses of values with this key ([`warptrace_abi::data::accesses`]).
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

    /// Computes which active lanes will lead the run ([`OPENS`]).
    pub(super) fn find_opens(&mut self) {
        let lower = X[0];
        emit!(self, "and.b32 {lower}, {ACTIVE}, {LANES_BELOW};");
        emit!(self, "setp.eq.u32 {OPENS}, {lower}, 0;");
    }

    /// Writes the run that lanes have begun to the place where its leader will append it, so that a copy of
    /// the log shows the lanes' positions ([`warptrace_abi::log`], "Kernels that run"). The slot of a full
    /// segment's link is free until the lane reserves the next segment.
    pub(super) fn open_run(&mut self, location: u16, count: u32) {
        let (log, key, bits, [low, high]) = (TRACE, X[1], X[0], TIME.0);
        emit!(self, "mov.u32 {key}, {};", u32::from(location) << LOCATION_SHIFT | count);
        emit!(self, "and.b32 {bits}, {}, {};", log.link, NO_SEGMENT | 1);
        emit!(self, "setp.eq.and.u32 {OPENS}, {bits}, 0, {OPENS};");
        emit!(self, "mov.b64 {AT}, {};", log.next());
        emit!(self, "@{OPENS} st.global.v4.b32 [{AT}], {};", Vector([MASK, key, low, high]));
    }

    /// Like [`Emitter::open_run`] for a stopped log: writes to its last link. `AT` is the link's address.
    fn open_stopped(&mut self, log: Log, location: u16) {
        let (id, since, opens, clock) = (X[0], X[1], P[0], Y[0]);
        emit!(self, "and.b32 {id}, {}, 1;", log.link);
        emit!(self, "setp.ne.and.u32 {opens}, {id}, 0, {OPENS};");
        emit!(self, "setp.lt.and.u32 {opens}, {}, {NO_LINK}, {opens};", log.high);
        emit!(self, "mov.u32 {id}, {location};");
        emit!(self, "mov.u64 {clock}, %clock64;");
        emit!(self, "shr.u64 {clock}, {clock}, {STOPPED_TIME_SHIFT};");
        emit!(self, "cvt.u32.u64 {since}, {clock};");
        emit!(self, "or.b32 {since}, {since}, {STOPPED};");
        emit!(self, "@{opens} st.global.b32 [{AT}], {ACTIVE};");
        emit!(self, "@{opens} st.global.b16 [{AT}+6], {id};");
        emit!(self, "@{opens} st.global.b32 [{AT}+12], {since};");
    }

    /// Ends a log: marks the last segment's link as the end and writes the number of unused entries before
    /// it. Adds the losses of stopped logs to the warp's counts.
    pub(super) fn end_log(&mut self, log: Log) {
        let (none, free, bits, ends) = (X[1], X[2], X[3], P[0]);
        let (all_left, are_all, end) = (X[7], P[1], self.label());
        emit!(self, "and.b32 {bits}, {}, {};", log.link, NO_SEGMENT | 1);
        emit!(self, "setp.eq.u32 {ends}, {bits}, 0;");
        // If only lane 0 has a first segment and all lanes leave together, the link records this.
        let lanes = self.field(X[0], field::FIRST_LANES);
        emit!(self, "setp.eq.u32 {are_all}, {lanes}, 1;");
        emit!(self, "setp.eq.and.u32 {are_all}, {ACTIVE}, -1, {are_all};");
        emit!(self, "selp.u32 {all_left}, {ALL_LEFT}, 0, {are_all};");
        emit!(self, "@{are_all} bra {end};");
        self.note_left(log, ends);
        self.place_label(&end);
        emit!(self, "sub.u32 {free}, {}, {};", log.link, log.low);
        emit!(self, "shr.u32 {free}, {free}, {};", ENTRY_BYTES.ilog2());
        emit!(self, "or.b32 {free}, {free}, {all_left};");
        emit!(self, "mov.b64 {AT}, {};", Vector([log.link, log.high]));
        emit!(self, "mov.u32 {none}, 0;");
        emit!(self, "@{ends} st.global.v2.b32 [{AT}], {};", Vector([none, free]));
        let (stopped, lost) = (X[0], P[1]);
        emit!(self, "and.b32 {stopped}, {}, 1;", log.link);
        emit!(self, "setp.ne.u32 {lost}, {stopped}, 0;");
        self.vote("any", ANY_FULL, lost);
        self.detour(ANY_FULL, |emitter| {
            let (carries, stopped, has_link) = (X[5], X[6], P[0]);
            let [events, count, ..] = Y;
            emitter.stopped_link(log, has_link);
            emit!(emitter, "and.pred {has_link}, {has_link}, {lost};");
            emit!(emitter, "and.b32 {carries}, {}, {};", log.high, !NO_LINK);
            emit!(emitter, "@{has_link} ld.global.u16 {carries}, [{AT}+4];");
            emit!(emitter, "or.b32 {stopped}, {all_left}, {STOPPED};");
            emit!(emitter, "@{has_link} st.global.v2.b32 [{AT}], {};", Vector([none, stopped]));
            let twice = events;
            emit!(emitter, "mul.wide.u32 {count}, {carries}, {};", 1_u32 << 31);
            emit!(emitter, "cvt.u64.u32 {twice}, {};", log.link);
            emit!(emitter, "shr.u64 {events}, {twice}, 1;");
            emit!(emitter, "add.u64 {events}, {events}, {count};");
            let warp = emitter.warp_in_launch();
            let stream = emitter.stream(log.track, warp.index, field::WARPS);
            emitter.count_lost(stream, events, lost);
        });
    }

    /// Adds the active lanes to the lanes that have left, in the stream's head. If each lane has a first
    /// segment, also adds the lanes whose logs hold entries, and clears `ends` in the others.
    fn note_left(&mut self, log: Log, ends: Pred) {
        let (entries, index, holders, holds, all_have) = (X[3], X[0], X[5], P[2], P[1]);
        let [base, first, at, next] = Y;
        // Lanes may have diverged at a reservation since the epilogue began.
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
        let lanes = self.field(X[0], field::FIRST_LANES);
        emit!(self, "setp.ne.u32 {all_have}, {lanes}, 1;");
        emit!(self, "setp.ne.u64 {holds}, {next}, {first};");
        emit!(self, "and.pred {holds}, {holds}, {all_have};");
        self.ballot(holders, holds);
        self.clear(all_have, holds, holds);
        self.clear(ends, all_have, all_have);
        let leads = self.is_lowest(ACTIVE);
        let both = first;
        emit!(self, "mov.b64 {both}, {};", Vector([holders, ACTIVE]));
        emit!(self, "@{leads} red.global.or.b64 [{at}+8], {both};");
    }

    /// Ends a ring: writes the end of the log, and adds the losses to the warp's counts.
    pub(super) fn end_ring(&mut self, log: Log, warp: Warp) {
        let (any, events, end) = (P[0], Y[1], X[6]);
        let whole = self.label();
        let stream = self.stream(log.track, warp.index, field::WARPS);
        // The ring begins at a multiple of its length, which is twice the length of a half.
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
