//! Prologues and epilogues.

use std::fmt::Write;

use warptrace_abi::recording::LogKind;

use super::registers::{ACTIVE, KEY, LANES_BELOW, Log, MASK, P, R32, STATE, X, Y};
use super::{ENTRY_BYTES, Emitter, Field, LAUNCH_PARAMETER, NO_SEGMENT, Thread, Warp, field};
use crate::splice::state::{Pair, Placement, descriptor_bytes, descriptor_offset};

impl Emitter {
    pub(in crate::splice) fn function_prologue(&mut self, loops: &[u16]) {
        let thread = self.thread_in_block();
        self.shared_state(thread);
        emit!(self, "mov.u32 {LANES_BELOW}, %lanemask_lt;");
        self.clear_counts(loops);
    }

    /// Emits the prologue of a kernel: the lane is in no run, and its logs are at the start of their first
    /// segments. Warps that are not chosen branch to `unchosen` if it is given.
    pub(in crate::splice) fn prologue(&mut self, loops: &[u16], unchosen: Option<&str>) {
        let is_streamed = self.style.recording.logs.is_streamed();
        let mut warp = unchosen.map(|unchosen| self.choose(unchosen));
        if self.style.recording.spans {
            let known = warp.unwrap_or_else(|| self.warp_in_launch());
            self.begin_span(known);
            warp = Some(known);
        }
        let thread = if is_streamed {
            let thread = warp.map_or_else(|| self.thread_in_block(), |warp| warp.thread);
            self.logs().iter().for_each(|log| self.no_segment(*log));
            thread
        } else {
            let warp = warp.unwrap_or_else(|| self.warp_in_launch());
            self.logs().iter().for_each(|log| self.first_segment(*log, warp));
            if self.style.recording.logs != LogKind::Ring {
                // Lane 0 initialises the stream's head; the other lanes wait for it.
                self.active();
                emit!(self, "bar.warp.sync {ACTIVE};");
            }
            warp.thread
        };
        self.begin_record();
        if self.style.placement == Placement::Shared {
            self.shared_state(thread);
            if self.style.with_descriptor {
                self.copy_descriptor(thread);
            }
        }
        self.logs().iter().for_each(|log| self.store_log(*log));
        self.store(Pair::Record);
        self.store(Pair::Time);
        emit!(self, "mov.u32 {LANES_BELOW}, %lanemask_lt;");
        self.clear_counts(loops);
        self.clear_sites();
    }

    /// Sets a log to the start of its first segment, or to "has no segment".
    fn first_segment(&mut self, log: Log, warp: Warp) {
        let (lane, index, last) = (warp.thread.lane, X[6], X[5]);
        let [at, begin, end, _] = Y;
        let (has_one, is_lowest) = (P[0], P[1]);
        let stream = self.stream(log.track, warp.index, field::WARPS);
        let lanes = self.field(X[7], field::FIRST_LANES);
        emit!(self, "setp.lt.u32 {has_one}, {lane}, {lanes};");
        emit!(self, "selp.u32 {index}, {lane}, 0, {has_one};");
        emit!(self, "mad.lo.u32 {index}, {stream}, {lanes}, {index};");
        let entries = self.field(last, field::FIRST_ENTRIES);
        let first = self.field(X[7], field::FIRST_SEGMENTS);
        emit!(self, "mad.lo.u32 {index}, {index}, {entries}, {first};");
        self.field(at, field::LOGS);
        emit!(self, "mad.wide.u32 {at}, {index}, {ENTRY_BYTES}, {at};");
        if self.style.recording.logs == LogKind::Ring {
            emit!(self, "mov.b64 {}, {at};", log.next());
            self.field(last, field::SEGMENT_ENTRIES);
            emit!(self, "sub.u32 {last}, {last}, 1;");
            emit!(self, "mad.wide.u32 {at}, {last}, {ENTRY_BYTES}, {at};");
            emit!(self, "cvt.u32.u64 {}, {at};", log.link);
            return self.empty_ring(at);
        }
        emit!(self, "sub.u32 {last}, {entries}, 1;");
        emit!(self, "mad.wide.u32 {end}, {last}, {ENTRY_BYTES}, {at};");
        emit!(self, "add.u64 {begin}, {at}, {ENTRY_BYTES};");
        // A lane without a segment stores the address of the list in the stream's head.
        emit!(self, "@!{has_one} add.u64 {begin}, {at}, {NO_SEGMENT};");
        emit!(self, "@!{has_one} mov.u64 {end}, {begin};");
        emit!(self, "mov.b64 {}, {begin};", log.next());
        emit!(self, "cvt.u32.u64 {}, {end};", log.link);
        let (begun, zero) = (begin, end);
        emit!(self, "setp.eq.u32 {is_lowest}, {lane}, 0;");
        emit!(self, "mov.u64 {begun}, 1;");
        emit!(self, "mov.u64 {zero}, 0;");
        emit!(self, "@{is_lowest} st.global.v2.b64 [{at}], {{{begun}, {zero}}};");
    }

    /// Sets the lane's record to "in no run": a full mask, so that at most lane 0 would append it, and no
    /// event. Readers skip an entry without events.
    pub(super) fn no_run(&mut self) {
        emit!(self, "mov.u32 {MASK}, -1;");
        emit!(self, "mov.u32 {KEY}, 0;");
    }

    /// Copies the launch's descriptor to shared memory for functions. All lanes write the same values.
    fn copy_descriptor(&mut self, thread: Thread) {
        let (to, word) = (X[7], Y[0]);
        let start = descriptor_offset(self.style.recording.dual);
        emit!(self, "mad.lo.u32 {to}, {}, -8, {STATE};", thread.lane);
        for offset in (0..descriptor_bytes(self.style.recording.chooses)).step_by(8) {
            emit!(self, "ld.param.b64 {word}, [{LAUNCH_PARAMETER}+{offset}];");
            emit!(self, "st.shared.b64 [{to}+{}], {word};", start + offset);
        }
    }

    /// Computes the index of a warp's stream in a track. The descriptor field `warps` has a track's warps.
    pub(super) fn stream(&mut self, track: u32, warp: R32, warps: Field<32>) -> R32 {
        let stream = X[4];
        emit!(self, "mov.u32 {stream}, {warp};");
        if track != 0 {
            let warps = self.field(stream, warps);
            emit!(self, "mad.lo.u32 {stream}, {warps}, {track}, {warp};");
        }
        stream
    }

    /// Emits the epilogue: ends the lane's logs before it leaves the kernel.
    pub(in crate::splice) fn epilogue(&mut self) {
        self.active();
        if self.style.recording.spans {
            self.note_end();
        }
        self.load(Pair::Record);
        self.end_run();
        self.end_sites();
        let logs = self.style.recording.logs;
        if self.style.recording.spans || logs != LogKind::Kept {
            let warp = self.warp_in_launch();
            if self.style.recording.spans {
                self.end_span(warp);
            }
            if logs.is_streamed() {
                return self.leave_streamed(warp);
            }
            if logs == LogKind::Ring {
                for log in self.logs() {
                    self.load_log(*log);
                    self.end_ring(*log, warp);
                }
                return;
            }
        }
        for log in self.logs() {
            self.load_log(*log);
            self.end_log(*log);
        }
    }

    /// Emits the epilogue for lanes whose guard holds. Returns the label for the others, to be put after it.
    pub(in crate::splice) fn guarded_epilogue(&mut self, predicate: &str, negated: bool) -> String {
        let go_on = self.label();
        let stays = if negated { "" } else { "!" };
        emit!(self, "@{stays}{predicate} bra {go_on};");
        self.epilogue();
        go_on
    }
}
