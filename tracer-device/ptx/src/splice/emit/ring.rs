//! Ring logs: each lane fills the two halves of its first segment alternately (`warptrace_abi::log`,
//! "Rings"). The halves have the same length, and the first begins at a multiple of twice this length, so one
//! bit of an address selects the half.

use std::fmt::Write;

use super::registers::{AT, FIELD, Log, P, Pred, R32, R64, VOTE, Vector, X, Y};
use super::{ENTRY_BYTES, Emitter, MAX_KEY_COUNT, field};

/// Number of entries that are loaded together when lost events are counted, into the first registers of
/// [`X`]. A half is a multiple of it. A larger number would need registers that some programs do not have.
const AT_ONCE: u32 = 4;
const _: () = assert!(warptrace_abi::log::MIN_RING_ENTRIES.is_multiple_of(2 * AT_ONCE));
const KEY: u32 = 4;

impl Emitter {
    /// Sets a lane's losses to 0. `at` is the address of the first half's last entry.
    pub(super) fn empty_ring(&mut self, at: R64) {
        let nothing = Y[1];
        emit!(self, "mov.u64 {nothing}, 0;");
        emit!(self, "st.global.b64 [{at}], {nothing};");
    }

    /// Moves each lane with `full` set to the other half of its ring, and counts the events there as lost.
    pub(super) fn turn(&mut self, log: Log, full: Pred) {
        let (Log { low, link, .. }, next) = (log, log.next());
        let (count, done) = (self.label(), self.label());
        let (loses, has_more, entry, lost) = (P[2], P[3], Y[0], Y[1]);
        let half = self.ring_state(log);
        emit!(self, "mov.u64 {lost}, 0;");
        emit!(self, "@{full} ld.global.b64 {lost}, [{AT}];");
        // The first half holds events if the lane comes from the second half. The second half holds events
        // only if the lane has lost events before.
        let side = X[2];
        emit!(self, "and.b32 {side}, {link}, {half};");
        emit!(self, "setp.ne.u32 {loses}, {side}, 0;");
        emit!(self, "setp.ne.or.u64 {loses}, {lost}, 0, {loses};");
        emit!(self, "and.pred {loses}, {loses}, {full};");
        emit!(self, "@{full} xor.b32 {link}, {link}, {half};");
        emit!(self, "sub.u32 {half}, {half}, {ENTRY_BYTES};");
        emit!(self, "@{full} sub.u32 {low}, {link}, {half};");
        self.store_log(log);
        self.branch_if_none(loses, &done);
        let (sum, keys, last) = (FIELD, &X[..AT_ONCE as usize], X[AT_ONCE as usize - 1]);
        emit!(self, "mov.b64 {entry}, {next};");
        emit!(self, "mov.u32 {sum}, 0;");
        keys.iter().for_each(|key| emit!(self, "mov.u32 {key}, 0;"));
        self.place_label(&count);
        // Whether the last of these entries holds a run. The half's last entry does not.
        let at = X[0];
        emit!(self, "cvt.u32.u64 {at}, {entry};");
        emit!(self, "add.u32 {at}, {at}, {};", (AT_ONCE - 1) * ENTRY_BYTES);
        emit!(self, "setp.ne.and.u32 {has_more}, {at}, {link}, {loses};");
        self.vote("any", VOTE, has_more);
        // Issues all loads before the first use.
        for (offset, key) in (KEY..).step_by(ENTRY_BYTES as usize).zip(keys) {
            emit!(self, "@{loses} ld.global.b32 {key}, [{entry}+{offset}];");
        }
        emit!(self, "@!{has_more} mov.u32 {last}, 0;");
        for key in keys {
            emit!(self, "and.b32 {key}, {key}, {MAX_KEY_COUNT};");
            emit!(self, "add.u32 {sum}, {sum}, {key};");
        }
        emit!(self, "add.u64 {entry}, {entry}, {};", AT_ONCE * ENTRY_BYTES);
        emit!(self, "@{VOTE} bra {count};");
        // `ring_state` uses `FIELD`. The state is read again so that the loop needs no registers for it.
        let events = entry;
        emit!(self, "cvt.u64.u32 {events}, {sum};");
        self.ring_state(log);
        emit!(self, "mov.u64 {lost}, 0;");
        emit!(self, "@{loses} ld.global.b64 {lost}, [{AT}];");
        emit!(self, "add.u64 {lost}, {lost}, {events};");
        emit!(self, "@{loses} st.global.b64 [{AT}], {lost};");
        self.place_label(&done);
    }

    /// Computes the address of the lane's ring state (`AT`), and returns the size of a half in bytes.
    pub(super) fn ring_state(&mut self, log: Log) -> R32 {
        let (half, low) = (self.field(X[3], field::SEGMENT_ENTRIES), X[2]);
        emit!(self, "shl.b32 {half}, {half}, {};", ENTRY_BYTES.ilog2());
        emit!(self, "not.b32 {low}, {half};");
        emit!(self, "and.b32 {low}, {low}, {};", log.link);
        emit!(self, "mov.b64 {AT}, {};", Vector([low, log.high]));
        half
    }
}
