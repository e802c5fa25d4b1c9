//! Logs that are rings: each lane fills the two halves of its first segment in turn
//! (`warptrace_abi::log`, "Rings").
//!
//! The halves are equally long, and the first one begins at a multiple of the length of both: where a lane
//! writes, one bit of the address tells the half, and turning it leads to the other one.

use std::fmt::Write;

use super::{ENTRY_BYTES, Emitter, Log, MAX_KEY_COUNT, field};

/// Entries that are read at once where what they hold is counted. A half is a multiple of it. More would take
/// registers that some programs do not have.
const AT_ONCE: u32 = 4;
const _: () = assert!(warptrace_abi::log::MIN_RING_ENTRIES.is_multiple_of(2 * AT_ONCE));
/// Offset of the key in an entry.
const KEY: u32 = 4;

impl Emitter {
    /// Writes down that a lane has lost nothing; `%wt_y0` is the address of the first half's last entry.
    pub(super) fn empty_ring(&mut self) {
        emit!(self, "mov.u64 %wt_y1, 0;");
        emit!(self, "st.global.b64 [%wt_y0], %wt_y1;");
    }

    /// Leads each lane for which `%wt_p1` holds to the other half of its ring, and counts what that holds as
    /// lost.
    pub(super) fn turn(&mut self, log: Log) {
        let (count, done) = (self.label(), self.label());
        self.ring_state(log);
        emit!(self, "mov.u64 %wt_y1, 0;");
        emit!(self, "@%wt_p1 ld.global.b64 %wt_y1, [%wt_l];");
        // The first half is full where a lane comes from the second one; the second half only if the lane has
        // lost something before.
        emit!(self, "and.b32 %wt_x2, {}, %wt_x3;", log.link);
        emit!(self, "setp.ne.u32 %wt_p2, %wt_x2, 0;");
        emit!(self, "setp.ne.or.u64 %wt_p2, %wt_y1, 0, %wt_p2;");
        emit!(self, "and.pred %wt_p2, %wt_p2, %wt_p1;");
        emit!(self, "@%wt_p1 xor.b32 {link}, {link}, %wt_x3;", link = log.link);
        emit!(self, "sub.u32 %wt_x3, %wt_x3, {ENTRY_BYTES};");
        emit!(self, "@%wt_p1 sub.u32 {}, {}, %wt_x3;", log.low, log.link);
        self.store(log.pointer, log.low, log.high);
        self.store_word("", log.end, 0, log.link);
        self.vote("any", "%wt_r", "%wt_p2");
        emit!(self, "@!%wt_r bra {done};");
        emit!(self, "mov.b64 %wt_y0, {{{}, {}}};", log.low, log.high);
        emit!(self, "mov.u32 %wt_f, 0;");
        (0..AT_ONCE).for_each(|entry| emit!(self, "mov.u32 %wt_x{entry}, 0;"));
        self.place_label(&count);
        // Whether the last of these entries holds a run: in the end it is the half's last one, which does not.
        emit!(self, "cvt.u32.u64 %wt_x0, %wt_y0;");
        emit!(self, "add.u32 %wt_x0, %wt_x0, {};", (AT_ONCE - 1) * ENTRY_BYTES);
        emit!(self, "setp.ne.and.u32 %wt_p3, %wt_x0, {}, %wt_p2;", log.link);
        self.vote("any", "%wt_r", "%wt_p3");
        // All loads are on their way before the first is waited for.
        for entry in 0..AT_ONCE {
            emit!(self, "@%wt_p2 ld.global.b32 %wt_x{entry}, [%wt_y0+{}];", entry * ENTRY_BYTES + KEY);
        }
        emit!(self, "@!%wt_p3 mov.u32 %wt_x{}, 0;", AT_ONCE - 1);
        for entry in 0..AT_ONCE {
            emit!(self, "and.b32 %wt_x{entry}, %wt_x{entry}, {MAX_KEY_COUNT};");
            emit!(self, "add.u32 %wt_f, %wt_f, %wt_x{entry};");
        }
        emit!(self, "add.u64 %wt_y0, %wt_y0, {};", AT_ONCE * ENTRY_BYTES);
        emit!(self, "@%wt_r bra {count};");
        // `field` uses `%wt_f`. The state is read again, so that the loop needs no registers for it.
        emit!(self, "cvt.u64.u32 %wt_y0, %wt_f;");
        self.ring_state(log);
        emit!(self, "mov.u64 %wt_y1, 0;");
        emit!(self, "@%wt_p2 ld.global.b64 %wt_y1, [%wt_l];");
        emit!(self, "add.u64 %wt_y1, %wt_y1, %wt_y0;");
        emit!(self, "@%wt_p2 st.global.b64 [%wt_l], %wt_y1;");
        self.place_label(&done);
    }

    /// Finds the address of the lane's state (`%wt_l`), and the bytes of a half (`%wt_x3`).
    fn ring_state(&mut self, log: Log) {
        self.field(32, "%wt_x3", field::SEGMENT_ENTRIES);
        emit!(self, "shl.b32 %wt_x3, %wt_x3, {};", ENTRY_BYTES.ilog2());
        emit!(self, "not.b32 %wt_x2, %wt_x3;");
        emit!(self, "and.b32 %wt_x2, %wt_x2, {};", log.link);
        emit!(self, "mov.b64 %wt_l, {{%wt_x2, {}}};", log.high);
    }

    /// Finds what a log has lost, as `lost_in_stopped` does.
    pub(super) fn lost_in_ring(&mut self, log: Log, whole: &str) {
        self.ring_state(log);
        emit!(self, "ld.global.b64 %wt_y1, [%wt_l];");
        emit!(self, "setp.ne.u64 %wt_p0, %wt_y1, 0;");
        self.vote("any", "%wt_r", "%wt_p0");
        emit!(self, "@!%wt_r bra {whole};");
        emit!(self, "selp.u32 %wt_x7, 1, 0, %wt_p0;");
    }
}
