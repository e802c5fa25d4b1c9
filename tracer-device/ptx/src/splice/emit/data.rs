//! Data sites: addresses and values ([`warptrace_abi::data`]).
//!
//! A lane's state is in local memory, 16 bytes for its log and 16 bytes for the current run of each site, so
//! that kernels keep their registers. A *hit* is an access that continues the run of each lane. It takes a
//! load of the run, a comparison, a vote and a store of the count. All other code is at the function's end. A
//! lane whose run ends appends at most two entries together, with one check for room.

use std::fmt::Write;

use warptrace_abi::data::{AFFINE, COUNT_SHIFT, GENERIC, GROUP, MAX_COUNT, SITE_SHIFT, STATE_BYTES, VALUES};

use super::log::Appended;
use super::registers::{
    ACTIVE, ANY_FULL, AT, CLOCK, D, DATA, E, LANES_BELOW, P, Pred, Q, R32, R64, VOTE, Vector, X,
};
use super::{DATA_STATE, ENTRY_BYTES, Emitter, TIME_SHIFT};
use crate::splice::MEETING_SUFFIX;
use crate::splice::sites::{DataPlace, DataSource};

/// The lane's current run. The words have the order of an entry, so that one store appends them.
const BASE: Vector<2> = Vector([D[0], D[3]]);
const COUNT: R32 = D[1];
const STEP: R32 = D[2];
const RUN: Vector<4> = Vector([D[0], COUNT, STEP, D[3]]);
/// The run as an entry, with the key in place of the count.
const VALUES_KEY: R32 = COUNT;
const ENTRY: Vector<4> = RUN;
/// Size in bytes of the log's next entry and link, which precede the runs.
const LOG_BYTES: u32 = 16;
const _: () = assert!(STATE_BYTES == 16);
const COUNT_OFFSET: u32 = 4;
const STEP_OFFSET: u32 = 8;

/// The site's number, shifted to its position in keys.
const SITE: R32 = D[4];
const HEADER: Vector<4> = Vector([D[5], D[6], D[7], D[8]]);
const GROUP_LANES: R32 = D[5];
const SPREAD: R32 = D[8];

const SINCE_BASE: R64 = E[2];

/// Whether the lane's run ends; whether the lane leads the lanes whose runs end; whether it appends values.
const ENDS: Pred = Q[3];
const LEADS: Pred = Q[4];
const APPENDS: Pred = Q[5];

impl Emitter {
    pub(super) fn declare_data(&mut self) {
        let super::Log { low, high, link, .. } = DATA;
        emit!(self, ".reg .b32 {low}, {high}, {link}, %wt_d<{}>;", D.len());
        emit!(self, ".reg .b64 %wt_b<{}>;", E.len());
        emit!(self, ".reg .pred %wt_q<{}>;", Q.len());
        let bytes = LOG_BYTES + STATE_BYTES * u32::from(self.style.sites.count);
        emit!(self, ".local .align 16 .b8 {DATA_STATE}[{bytes}];");
    }

    pub(super) fn clear_sites(&mut self) {
        if self.style.sites.count == 0 {
            return;
        }
        let (at, zero, end, again, has_more) = (E[0], D[0], SITE, self.label(), Q[0]);
        emit!(self, "mov.u32 {zero}, 0;");
        emit!(self, "mov.u32 {end}, 0;");
        emit!(self, "mov.u64 {at}, {DATA_STATE};");
        self.place_label(&again);
        let zeros = Vector([zero; 4]);
        emit!(self, "st.local.v4.b32 [{at}+{LOG_BYTES}], {zeros};");
        emit!(self, "add.u64 {at}, {at}, {STATE_BYTES};");
        emit!(self, "add.u32 {end}, {end}, 1;");
        emit!(self, "setp.lt.u32 {has_more}, {end}, {};", self.style.sites.count);
        emit!(self, "@{has_more} bra {again};");
    }

    pub(in crate::splice) fn data_site(&mut self, place: &DataPlace) {
        let (access, added, misses) = (E[0], E[1], Q[0]);
        let at = LOG_BYTES + STATE_BYTES * self.style.sites.slot(place.site);
        let (begins, done) = (self.label(), self.label());
        self.active();
        let offset = self.source(access, &place.source);
        emit!(self, "ld.local.v4.b32 {RUN}, [{DATA_STATE}+{at}];");
        emit!(self, "mov.b64 {SINCE_BASE}, {BASE};");
        emit!(self, "sub.s64 {SINCE_BASE}, {access}, {SINCE_BASE};");
        if offset != 0 {
            emit!(self, "add.s64 {SINCE_BASE}, {SINCE_BASE}, {offset};");
        }
        emit!(self, "mul.wide.s32 {added}, {STEP}, {COUNT};");
        emit!(self, "setp.ge.u32 {misses}, {COUNT}, {MAX_COUNT};");
        emit!(self, "setp.ne.or.s64 {misses}, {SINCE_BASE}, {added}, {misses};");
        // A lane with a false guard has no access: it counts as a hit but its count does not change.
        let guard = place.guard.as_ref().map(|(predicate, negated)| {
            let (on, not) = (Q[1], if *negated { "not.pred" } else { "mov.pred" });
            emit!(self, "{not} {on}, {predicate};");
            emit!(self, "and.pred {misses}, {misses}, {on};");
            on
        });
        self.vote("any", VOTE, misses);
        emit!(self, "@{VOTE} bra {begins};");
        emit!(self, "add.u32 {COUNT}, {COUNT}, 1;");
        let on = guard.map_or_else(String::new, |on| format!("@{on} "));
        emit!(self, "{on}st.local.b32 [{DATA_STATE}+{}], {COUNT};", at + COUNT_OFFSET);
        self.place_label(&done);
        self.cold(&begins, |emitter| {
            if offset != 0 {
                emit!(emitter, "add.s64 {access}, {access}, {offset};");
            }
            emitter.begin_runs(at, guard);
            emitter.branch_if_none(ENDS, &done);
            emit!(emitter, "mov.u32 {SITE}, {};", u32::from(place.site) << SITE_SHIFT);
            emitter.ballot(GROUP_LANES, ENDS);
            emitter.end_group();
            emit!(emitter, "bra {done};");
        });
    }

    /// Loads an access into a 64-bit register; returns the offset that is still to be added.
    fn source(&mut self, to: R64, source: &DataSource) -> i64 {
        let narrow = D[0];
        match source {
            DataSource::Address { register, bits: 64, offset } => {
                emit!(self, "mov.b64 {to}, {register};");
                // One instruction adds the offset and subtracts the base.
                return *offset;
            }
            DataSource::Address { register, offset, .. } => {
                emit!(self, "add.s32 {narrow}, {register}, {offset};");
                emit!(self, "cvt.u64.u32 {to}, {narrow};");
            }
            DataSource::Constant(address) => emit!(self, "mov.u64 {to}, {address};"),
            DataSource::Value { register, bits: 64 } => emit!(self, "mov.b64 {to}, {register};"),
            DataSource::Value { register, bits: 32 } => {
                emit!(self, "mov.b32 {narrow}, {register};");
                emit!(self, "cvt.u64.u32 {to}, {narrow};");
            }
            DataSource::Value { register, bits: 1 } => emit!(self, "selp.u64 {to}, 1, 0, {register};"),
            DataSource::Value { register, bits } => emit!(self, "cvt.u64.u{bits} {to}, {register};"),
        }
        0
    }

    /// Continues or begins each lane's run, and determines whose runs end. Ended runs stay in the registers.
    /// `at` is the offset of the site's runs; `guard` selects the lanes with an access.
    fn begin_runs(&mut self, at: u32, guard: Option<Pred>) {
        let (access, misses, is_second, begins) = (E[0], Q[0], Q[2], ENDS);
        let step = D[4];
        self.fits(is_second, step, SINCE_BASE, D[5]);
        emit!(self, "setp.eq.and.u32 {is_second}, {COUNT}, 1, {is_second};");
        emit!(self, "and.pred {is_second}, {is_second}, {misses};");
        let run = |offset: u32| format!("[{DATA_STATE}+{}]", at + offset);
        emit!(self, "@{is_second} st.local.b32 {}, {step};", run(STEP_OFFSET));
        self.and_not(begins, misses, is_second);
        let (next, goes_on) = (D[5], LEADS);
        emit!(self, "not.pred {goes_on}, {begins};");
        if let Some(on) = guard {
            emit!(self, "and.pred {goes_on}, {goes_on}, {on};");
        }
        emit!(self, "add.u32 {next}, {COUNT}, 1;");
        emit!(self, "@{goes_on} st.local.b32 {}, {next};", run(COUNT_OFFSET));
        let [low, one, zero, high] = [D[8], D[9], D[10], D[11]];
        emit!(self, "mov.b64 {}, {access};", Vector([low, high]));
        emit!(self, "mov.u32 {one}, 1;");
        emit!(self, "mov.u32 {zero}, 0;");
        emit!(self, "@{begins} st.local.v4.b32 {}, {};", run(0), Vector([low, one, zero, high]));
        emit!(self, "setp.ne.and.u32 {ENDS}, {COUNT}, 0, {begins};");
    }

    /// Appends the runs of `GROUP_LANES`: the lanes with `ENDS` set and the same `SITE`.
    fn end_group(&mut self) {
        let (lanes, lowest, highest, below) = (GROUP_LANES, X[0], X[1], X[2]);
        emit!(self, "and.b32 {below}, {lanes}, {LANES_BELOW};");
        emit!(self, "setp.eq.and.u32 {LEADS}, {below}, 0, {ENDS};");
        emit!(self, "brev.b32 {lowest}, {lanes};");
        emit!(self, "bfind.shiftamt.u32 {lowest}, {lowest};");
        emit!(self, "bfind.u32 {highest}, {lanes};");
        let affine = self.is_affine(lowest, highest);
        let (owner, lane, site, [_, header_key, time, spread]) = (X[0], X[1], X[2], HEADER.0);
        emit!(self, "mov.u64 {CLOCK}, %clock64;");
        emit!(self, "shr.u64 {CLOCK}, {CLOCK}, {TIME_SHIFT};");
        emit!(self, "cvt.u32.u64 {time}, {CLOCK};");
        const _: () = assert!(AFFINE + 1 == GENERIC);
        emit!(self, "add.u32 {header_key}, {SITE}, {GENERIC};");
        emit!(self, "@{affine} sub.u32 {header_key}, {header_key}, 1;");
        emit!(self, "selp.u32 {spread}, {SPREAD}, 0, {affine};");
        emit!(self, "mov.u32 {lane}, %laneid;");
        emit!(self, "popc.b32 {owner}, {lanes};");
        emit!(self, "add.u32 {owner}, {owner}, {};", GROUP - 1);
        emit!(self, "selp.u32 {owner}, {owner}, {lane}, {affine};");
        emit!(self, "mad.lo.u32 {owner}, {COUNT}, {}, {owner};", 1 << COUNT_SHIFT);
        emit!(self, "or.b32 {site}, {SITE}, {VALUES};");
        emit!(self, "add.u32 {VALUES_KEY}, {owner}, {site};");
        // The leader appends values; if the runs are not affine, all lanes whose runs end do.
        emit!(self, "not.pred {affine}, {affine};");
        emit!(self, "and.pred {APPENDS}, {ENDS}, {affine};");
        emit!(self, "or.pred {APPENDS}, {APPENDS}, {LEADS};");
        self.append_group();
    }

    /// Determines whether one entry can represent all ending runs, and the difference between the bases of
    /// the highest and the lowest lane (`SPREAD`). Differences fit into 32 bits, so their products with lane
    /// distances fit into 64 bits.
    fn is_affine(&mut self, lowest: R32, highest: R32) -> Pred {
        let (affine, first) = (Q[2], Vector([X[3], X[4]]));
        let (difference, other, low) = (E[2], E[3], X[5]);
        for (to, from) in first.0.iter().zip(BASE.0) {
            self.shuffle(*to, from, lowest);
        }
        emit!(self, "mov.b64 {difference}, {BASE};");
        emit!(self, "mov.b64 {other}, {first};");
        emit!(self, "sub.s64 {difference}, {difference}, {other};");
        self.fits(affine, low, difference, X[3]);
        let [theirs, ..] = first.0;
        for of in [STEP, COUNT] {
            self.shuffle(theirs, of, lowest);
            emit!(self, "setp.eq.and.u32 {affine}, {theirs}, {of}, {affine};");
        }
        self.shuffle(SPREAD, low, highest);
        let (distance, length) = (X[3], X[4]);
        emit!(self, "mov.u32 {distance}, %laneid;");
        emit!(self, "sub.s32 {distance}, {distance}, {lowest};");
        emit!(self, "sub.s32 {length}, {highest}, {lowest};");
        emit!(self, "mul.wide.s32 {difference}, {low}, {length};");
        emit!(self, "mul.wide.s32 {other}, {SPREAD}, {distance};");
        emit!(self, "setp.eq.and.s64 {affine}, {difference}, {other}, {affine};");
        let others = Q[1];
        emit!(self, "not.pred {others}, {ENDS};");
        emit!(self, "or.pred {affine}, {affine}, {others};");
        self.vote("all", affine, affine);
        affine
    }

    /// Determines whether a number fits into a signed 32-bit word, and returns that word in `low`.
    fn fits(&mut self, to: Pred, low: R32, number: R64, scratch: R32) {
        let high = X[2];
        emit!(self, "mov.b64 {}, {number};", Vector([low, high]));
        emit!(self, "shr.s32 {scratch}, {low}, 31;");
        emit!(self, "setp.eq.u32 {to}, {high}, {scratch};");
    }

    /// Appends the header to the leader's log, and values to the logs of the lanes that append.
    fn append_group(&mut self) {
        let (log, low) = (DATA, DATA.low);
        self.load_log(log);
        let full = self.ask_full_of_two();
        self.detour(ANY_FULL, |emitter| emitter.refill_for_two(full));
        emit!(self, "mov.b64 {AT}, {};", log.next());
        emit!(self, "@{LEADS} st.global.v4.b32 [{AT}], {HEADER};");
        emit!(self, "@{LEADS} add.s64 {AT}, {AT}, {ENTRY_BYTES};");
        emit!(self, "@{APPENDS} st.global.v4.b32 [{AT}], {ENTRY};");
        emit!(self, "cvt.u32.u64 {low}, {AT};");
        emit!(self, "add.u32 {low}, {low}, {ENTRY_BYTES};");
        self.store_word(Some(APPENDS), log.next_pair, 0);
    }

    /// Determines which appending lanes have no room. The leader needs two entries.
    fn ask_full_of_two(&mut self) -> Pred {
        let (last, own, has_one) = (X[0], P[1], Q[1]);
        emit!(self, "add.u32 {last}, {}, {ENTRY_BYTES};", DATA.low);
        emit!(self, "setp.eq.and.u32 {has_one}, {last}, {}, {LEADS};", DATA.link);
        emit!(self, "setp.eq.or.u32 {own}, {}, {}, {has_one};", DATA.low, DATA.link);
        emit!(self, "and.pred {own}, {own}, {APPENDS};");
        self.vote("any", ANY_FULL, own);
        own
    }

    /// Takes new segments for lanes without room. A leader with room for the header only appends it first.
    fn refill_for_two(&mut self, full: Pred) {
        let (has_one, others) = (Q[1], P[2]);
        emit!(self, "mov.b64 {AT}, {};", DATA.next());
        emit!(self, "@{has_one} st.global.v4.b32 [{AT}], {HEADER};");
        emit!(self, "@{has_one} mov.u32 {}, {};", DATA.low, DATA.link);
        self.clear(LEADS, has_one, others);
        let [_, _, time, _] = HEADER.0;
        self.refill(DATA, Appended::Data { key: VALUES_KEY, time }, full, APPENDS, false);
        // A leader without a segment appends no header; one with room for it alone has already appended it.
        emit!(self, "and.pred {LEADS}, {LEADS}, {APPENDS};");
    }

    /// Ends the runs of all sites before lanes leave the kernel. The hardware may execute lanes together that
    /// left the program one after the other and are at different sites of the loop, so each iteration forms a
    /// group of lanes at the same site.
    pub(super) fn end_sites(&mut self) {
        let sites = self.style.sites;
        if sites.count == 0 {
            return;
        }
        let (at, again, next, has_more) = (E[0], self.label() + MEETING_SUFFIX, self.label(), Q[0]);
        emit!(self, "mov.u64 {at}, {DATA_STATE};");
        emit!(self, "mov.u32 {SITE}, {};", u32::from(sites.first) << SITE_SHIFT);
        self.place_label(&again);
        if self.style.apart {
            self.active();
        }
        emit!(self, "ld.local.v4.b32 {RUN}, [{at}+{LOG_BYTES}];");
        emit!(self, "setp.ne.u32 {ENDS}, {COUNT}, 0;");
        self.branch_if_none(ENDS, &next);
        self.ballot(GROUP_LANES, ENDS);
        if self.style.apart {
            let (at_site, is_idle) = (X[0], Q[1]);
            emit!(self, "match.any.sync.b32 {at_site}, {SITE}, {ACTIVE};");
            emit!(self, "and.b32 {GROUP_LANES}, {GROUP_LANES}, {at_site};");
            // Lanes without an ending run at their site have an empty group, and read from active lanes.
            emit!(self, "setp.eq.u32 {is_idle}, {GROUP_LANES}, 0;");
            emit!(self, "@{is_idle} mov.u32 {GROUP_LANES}, {ACTIVE};");
        }
        self.end_group();
        self.place_label(&next);
        emit!(self, "add.u64 {at}, {at}, {STATE_BYTES};");
        emit!(self, "add.u32 {SITE}, {SITE}, {};", 1 << SITE_SHIFT);
        let end = (u32::from(sites.first) + u32::from(sites.count)) << SITE_SHIFT;
        emit!(self, "setp.ne.u32 {has_more}, {SITE}, {end};");
        emit!(self, "@{has_more} bra {again};");
        if self.style.apart {
            self.active();
        }
    }

    /// Computes the lanes of `ACTIVE` with `of` set. These lanes must be active.
    pub(super) fn ballot(&mut self, to: R32, of: Pred) {
        if self.style.sync {
            emit!(self, "vote.sync.ballot.b32 {to}, {of}, {ACTIVE};");
        } else {
            emit!(self, "vote.ballot.b32 {to}, {of};");
        }
    }
}
