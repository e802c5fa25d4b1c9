//! Where lanes enter and leave: prologues and epilogues.

use std::fmt::Write;

use warptrace_abi::recording::LogKind;

use super::registers::{KEY, LANES_BELOW, Log, MASK, R32, STATE, X, Y};
use super::{ENTRY_BYTES, Emitter, Field, LANES, LAUNCH_PARAMETER, Thread, Warp, field};
use crate::splice::state::{Pair, Placement, descriptor_bytes, descriptor_offset};

impl Emitter {
    /// Prepares a function that a kernel calls.
    pub(in crate::splice) fn function_prologue(&mut self, loops: &[u16]) {
        let thread = self.thread_in_block();
        self.shared_state(thread);
        emit!(self, "mov.u32 {LANES_BELOW}, %lanemask_lt;");
        self.clear_counts(loops);
    }

    /// Prepares a kernel: the lane is in no run, its logs are at the start of their first segments. Warps
    /// that were not chosen leave for `unchosen`, if there is such a label.
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
            let entries = self.field(X[5], field::FIRST_ENTRIES);
            self.logs().iter().for_each(|log| self.first_segment(*log, warp, entries));
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

    /// Puts a log to the start of its first segment, which has `entries`.
    fn first_segment(&mut self, log: Log, warp: Warp, entries: R32) {
        let is_ring = self.style.recording.logs == LogKind::Ring;
        let (index, at) = (X[6], Y[0]);
        let stream = self.stream(log.track, warp.index, field::WARPS);
        let first = self.field(X[7], field::FIRST_SEGMENTS);
        emit!(self, "mad.lo.u32 {index}, {stream}, {LANES}, {};", warp.thread.lane);
        emit!(self, "mad.lo.u32 {index}, {index}, {entries}, {first};");
        self.field(at, field::LOGS);
        emit!(self, "mad.wide.u32 {at}, {index}, {ENTRY_BYTES}, {at};");
        emit!(self, "mov.b64 {}, {at};", log.next());
        let (last, half) = (index, index);
        let entries = if is_ring { self.field(half, field::SEGMENT_ENTRIES) } else { entries };
        emit!(self, "sub.u32 {last}, {entries}, 1;");
        emit!(self, "mad.wide.u32 {at}, {last}, {ENTRY_BYTES}, {at};");
        emit!(self, "cvt.u32.u64 {}, {at};", log.link);
        if is_ring {
            self.empty_ring(at);
        }
    }

    /// Puts the lane's record to "in no run": of all lanes, so that only lane 0 would keep it, and of no
    /// event. (An entry without events is passed over.)
    pub(super) fn no_run(&mut self) {
        emit!(self, "mov.u32 {MASK}, -1;");
        emit!(self, "mov.u32 {KEY}, 0;");
    }

    /// Copies the launch's descriptor to where functions find it. Every lane of the warp writes the same.
    fn copy_descriptor(&mut self, thread: Thread) {
        let (to, word) = (X[7], Y[0]);
        let start = descriptor_offset(self.style.recording.dual);
        emit!(self, "mad.lo.u32 {to}, {}, -8, {STATE};", thread.lane);
        for offset in (0..descriptor_bytes(self.style.recording.chooses)).step_by(8) {
            emit!(self, "ld.param.b64 {word}, [{LAUNCH_PARAMETER}+{offset}];");
            emit!(self, "st.shared.b64 [{to}+{}], {word};", start + offset);
        }
    }

    /// Computes the index of a warp's stream of a track; `warps` is the field that says how many a track has.
    pub(super) fn stream(&mut self, track: u32, warp: R32, warps: Field<32>) -> R32 {
        let stream = X[4];
        emit!(self, "mov.u32 {stream}, {warp};");
        if track != 0 {
            let warps = self.field(stream, warps);
            emit!(self, "mad.lo.u32 {stream}, {warps}, {track}, {warp};");
        }
        stream
    }

    /// Ends the lane's logs, before it leaves the kernel.
    pub(in crate::splice) fn epilogue(&mut self) {
        self.active();
        if self.style.recording.spans {
            self.note_end();
        }
        self.load(Pair::Record);
        self.end_run(None);
        self.end_sites();
        let warp = self.warp_in_launch();
        if self.style.recording.spans {
            self.end_span(warp);
        }
        if self.style.recording.logs.is_streamed() {
            return self.leave_streamed(warp);
        }
        for log in self.logs() {
            self.load_log(*log);
            self.head(*log, warp);
        }
    }

    /// The epilogue for the lanes whose predicate says that they end here; returns the label behind the end
    /// for the others.
    pub(in crate::splice) fn guarded_epilogue(&mut self, predicate: &str, negated: bool) -> String {
        let go_on = self.label();
        let stays = if negated { "" } else { "!" };
        emit!(self, "@{stays}{predicate} bra {go_on};");
        self.epilogue();
        go_on
    }
}
