//! Time and place of warps ([`WarpSpan`]): one lane writes the span at entry, and one lane of each leaving
//! group updates its end. The instructions return no value, so the assembler inserts no `YIELD`.

use std::fmt::Write;
use std::mem::offset_of;

use warptrace_format::span::WarpSpan;

use super::registers::{ACTIVE, END_CLOCK, END_TIMER, LANES_BELOW, P, R32, R64, X, Y};
use super::{COUNTS_BYTES, Emitter, Warp, field, streamed};

const BEGIN_CLOCK: usize = offset_of!(WarpSpan, begin_clock);
const BEGIN_TIMER: usize = offset_of!(WarpSpan, begin_timer);
const BEGIN_SM: usize = offset_of!(WarpSpan, begin_sm);
const LAST_CLOCK: usize = offset_of!(WarpSpan, end_clock);
const LAST_TIMER: usize = offset_of!(WarpSpan, end_timer);
const LAST_SM: usize = offset_of!(WarpSpan, end_sm);
/// Size in bytes of a stream's lost events, which precede the spans of a launch with streamed logs.
const LOST_BYTES: u32 = 8;

impl Emitter {
    /// Writes the start of the warp's span. All lanes are active. Keeps `warp`.
    pub(super) fn begin_span(&mut self, warp: Warp) {
        let (at, clock, timer, is_first) = (self.span(warp), Y[2], Y[3], P[0]);
        emit!(self, "mov.u64 {clock}, %clock64;");
        emit!(self, "mov.u64 {timer}, %globaltimer;");
        let sm = self.sm();
        emit!(self, "setp.eq.u32 {is_first}, {}, 0;", warp.thread.lane);
        emit!(self, "@{is_first} st.global.b64 [{at}+{BEGIN_CLOCK}], {clock};");
        emit!(self, "@{is_first} st.global.b64 [{at}+{BEGIN_TIMER}], {timer};");
        emit!(self, "@{is_first} st.global.b32 [{at}+{BEGIN_SM}], {sm};");
    }

    /// Notes the time when the active lanes begin to leave, before the rest of the epilogue.
    pub(super) fn note_end(&mut self) {
        emit!(self, "mov.u64 {END_CLOCK}, %clock64;");
        emit!(self, "mov.u64 {END_TIMER}, %globaltimer;");
    }

    /// Updates the end of the warp's span for the active lanes. Keeps `warp`.
    pub(super) fn end_span(&mut self, warp: Warp) {
        let (at, is_lowest, below) = (self.span(warp), P[0], X[5]);
        emit!(self, "and.b32 {below}, {ACTIVE}, {LANES_BELOW};");
        emit!(self, "setp.eq.u32 {is_lowest}, {below}, 0;");
        let sm = self.sm();
        emit!(self, "@{is_lowest} red.global.max.u64 [{at}+{LAST_CLOCK}], {END_CLOCK};");
        emit!(self, "@{is_lowest} red.global.max.u64 [{at}+{LAST_TIMER}], {END_TIMER};");
        emit!(self, "@{is_lowest} st.global.b32 [{at}+{LAST_SM}], {sm};");
    }

    fn span(&mut self, warp: Warp) -> R64 {
        let (at, tracks) = (Y[0], self.style.recording.tracks());
        let (base, before, warps) = match self.style.recording.logs.is_streamed() {
            true => (streamed::field::LOST, LOST_BYTES, streamed::field::WARPS),
            false => (field::COUNTS, COUNTS_BYTES, field::WARPS),
        };
        self.field(at, base);
        let warps = self.field(X[5], warps);
        emit!(self, "mad.wide.u32 {at}, {warps}, {}, {at};", tracks * before);
        emit!(self, "mad.wide.u32 {at}, {}, {}, {at};", warp.index, size_of::<WarpSpan>());
        at
    }

    /// Reads the multiprocessor's number plus 1.
    fn sm(&mut self) -> R32 {
        let sm = X[6];
        emit!(self, "mov.u32 {sm}, %smid;");
        emit!(self, "add.u32 {sm}, {sm}, 1;");
        sm
    }
}
