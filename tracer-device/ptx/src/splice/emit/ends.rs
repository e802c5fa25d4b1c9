//! Where lanes enter and leave: prologues and epilogues.

use std::fmt::Write;

use warptrace_abi::recording::LogKind;

use super::{ENTRY_BYTES, Emitter, LANES, LAUNCH_PARAMETER, Log, field};
use crate::splice::state::{Pair, Placement, descriptor_bytes, descriptor_offset};

impl Emitter {
    /// Prepares a function that a kernel calls.
    pub(in crate::splice) fn function_prologue(&mut self, loops: &[u16]) {
        self.thread_in_block();
        self.shared_state();
        emit!(self, "mov.u32 %wt_lt, %lanemask_lt;");
        self.clear_counts(loops);
    }

    /// Prepares a kernel: the lane is in no run, its logs are at the start of their first segments. Warps
    /// that were not chosen leave for `unchosen`, if there is such a label.
    pub(in crate::splice) fn prologue(&mut self, loops: &[u16], unchosen: Option<&str>) {
        match unchosen {
            Some(unchosen) => self.choose(unchosen),
            None if self.style.recording.logs.is_streamed() => self.thread_in_block(),
            None => self.warp_in_launch(),
        }
        if self.style.recording.logs.is_streamed() {
            self.logs().iter().for_each(|log| self.no_segment(*log));
        } else {
            self.field(32, "%wt_x5", field::FIRST_ENTRIES);
            self.logs().iter().for_each(|log| self.first_segment(*log));
        }
        self.begin_record();
        if self.style.placement == Placement::Shared {
            self.shared_state();
            if self.style.with_descriptor {
                self.copy_descriptor();
            }
        }
        for log in self.logs() {
            self.store(log.pointer, log.low, log.high);
            if self.style.recording.logs.is_streamed() {
                self.store(log.end, log.link, log.tag);
            } else {
                self.store_word("", log.end, 0, log.link);
            }
        }
        self.store(Pair::Record, "%wt_m", "%wt_k");
        self.store(Pair::Time, "%wt_tl", "%wt_th");
        emit!(self, "mov.u32 %wt_lt, %lanemask_lt;");
        self.clear_counts(loops);
    }

    /// Puts a log to the start of its first segment; `%wt_x5` holds the entries of one.
    pub(super) fn first_segment(&mut self, log: Log) {
        self.stream(log.track);
        self.field(32, "%wt_x7", field::FIRST_SEGMENTS);
        emit!(self, "mad.lo.u32 %wt_x6, %wt_x4, {LANES}, %wt_x1;");
        emit!(self, "mad.lo.u32 %wt_x6, %wt_x6, %wt_x5, %wt_x7;");
        self.field(64, "%wt_y0", field::LOGS);
        emit!(self, "mad.wide.u32 %wt_y0, %wt_x6, {ENTRY_BYTES}, %wt_y0;");
        emit!(self, "mov.b64 {{{}, {}}}, %wt_y0;", log.low, log.high);
        if self.style.recording.logs == LogKind::Ring {
            self.field(32, "%wt_x6", field::SEGMENT_ENTRIES);
            emit!(self, "sub.u32 %wt_x6, %wt_x6, 1;");
        } else {
            emit!(self, "sub.u32 %wt_x6, %wt_x5, 1;");
        }
        emit!(self, "mad.wide.u32 %wt_y0, %wt_x6, {ENTRY_BYTES}, %wt_y0;");
        emit!(self, "cvt.u32.u64 {}, %wt_y0;", log.link);
        if self.style.recording.logs == LogKind::Ring {
            self.empty_ring();
        }
    }

    /// Puts the lane's record to "in no run": of all lanes, so that only lane 0 would keep it, and of no
    /// event. (An entry without events is passed over.)
    pub(super) fn no_run(&mut self) {
        emit!(self, "mov.u32 %wt_m, -1;");
        emit!(self, "mov.u32 %wt_k, 0;");
    }

    /// Copies the launch's descriptor to where functions find it. Every lane of the warp writes the same.
    pub(super) fn copy_descriptor(&mut self) {
        let at = descriptor_offset(self.style.recording.dual);
        emit!(self, "mad.lo.u32 %wt_x7, %wt_x1, -8, %wt_s;");
        for offset in (0..descriptor_bytes(self.style.recording.chooses)).step_by(8) {
            emit!(self, "ld.param.b64 %wt_y0, [{LAUNCH_PARAMETER}+{offset}];");
            emit!(self, "st.shared.b64 [%wt_x7+{}], %wt_y0;", at + offset);
        }
    }

    /// Computes the index of this warp's stream of a track (`%wt_x4`), from the values of `warp_in_launch`.
    pub(super) fn stream(&mut self, track: u32) {
        emit!(self, "mov.u32 %wt_x4, %wt_x0;");
        if track != 0 {
            self.field(32, "%wt_x4", field::WARPS);
            emit!(self, "mad.lo.u32 %wt_x4, %wt_x4, {track}, %wt_x0;");
        }
    }

    /// Ends the lane's logs, before it leaves the kernel.
    pub(in crate::splice) fn epilogue(&mut self) {
        emit!(self, "activemask.b32 %wt_a;");
        self.load(Pair::Record, "%wt_m", "%wt_k");
        self.end_run(false);
        self.warp_in_launch();
        if self.style.recording.logs.is_streamed() {
            return self.leave_streamed();
        }
        for log in self.logs() {
            self.load_log(*log);
            self.head(*log);
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
