//! The accesses that make an event: to a warp's state, in the space in which the module keeps it.
//!
//! # What they are in global memory
//! Plain loads and stores, as in shared memory, for a volatile one would put a `YIELD` at every trace point (see `area`). At a trace point a lane reads what
//! it has written itself, and that it finds. There are these exceptions:
//!
//! - What stays as it was written when the warp started: the warp has met since, which orders memory.
//! - [`DRAIN`](crate::state::DRAIN): a lane may see late that another has set it, and then the group does not empty the logs yet, for it does so only if all its lanes have
//!   found the same and are together (`event::is_to_drain`). Its mask is never too small: a lane that is seen to be live may have left, but not the other way round.
//!   What is emptied is read behind a fence, and after it the lanes meet.

use core::arch::asm;

use crate::space::{StateAddress, StateMemory, unknown_zero};
#[cfg(feature = "counted")]
use crate::state::MORES;
use crate::state::{LINKS, PLACES, RECORDS};
use crate::unit::COMPARED;

macro_rules! accesses {
    ($space:literal, $register:ident) => {
        impl StateMemory {
            /// If the own records of all lanes of `mask` hold this event, adds to their keys; answers whether they do, and the own record as it was. From all
            /// lanes of `mask`, together, each with the address of its own record.
            ///
            /// In as few instructions as can be: every event comes here. The vote makes the answer one that ptxas knows to be the same for all lanes, so
            /// that a branch on it needs no place where lanes that went different ways would wait for each other. It is the vote of the lanes that are here,
            /// without naming them: for one that names them ptxas would first find out whether they are, by a `REDUX` and a branch. (There is no branch since
            /// they were asked, so they are.) PTX has it until version 6.3.
            #[inline(always)]
            pub(crate) fn repeat(own: StateAddress, mask: u32, location: u32, add: u32) -> (bool, [u32; 2]) {
                let (holds, old_mask, old_key): (u32, u32, u32);
                // SAFETY: the own record, at a multiple of 8; all lanes of `mask` are here.
                unsafe {
                    asm!("{{", ".reg .pred p;", ".reg .b32 a, b;",
                        concat!("ld.", $space, ".v2.u32 {{{old_mask}, {old_key}}}, [{own}+{records}];"),
                        "xor.b32 b, {old_key}, {location};", "and.b32 b, b, {compared};",
                        "xor.b32 a, {old_mask}, {mask};", "or.b32 a, a, b;", "setp.eq.u32 p, a, 0;",
                        "vote.all.pred p, p;", "add.u32 b, {old_key}, {add};",
                        concat!("@p st.", $space, ".u32 [{own}+{records}+4], b;"),
                        "selp.u32 {holds}, 1, 0, p;", "}}",
                        holds = out(reg32) holds, old_mask = out(reg32) old_mask, old_key = out(reg32) old_key,
                        own = in($register) own, records = const RECORDS, compared = in(reg32) compared(),
                        mask = in(reg32) mask, location = in(reg32) location, add = in(reg32) add,
                        options(nostack, preserves_flags));
                }
                (holds != 0, [old_mask, old_key])
            }

            /// See [`begin_run`](crate::log::begin_run): the run in the own record, `old`, goes to the lane's log, if it keeps it, and another becomes its own.
            #[inline(always)]
            pub(crate) fn begin_run(
                own: StateAddress,
                old: [u32; 2],
                [mask, key, more, time]: [u32; 4],
            ) -> bool {
                let place: u64;
                let (link, began): (u32, u32);
                // The halves of an address, and the words of a unit, in registers that follow each other: as they are loaded, so are they stored.
                // SAFETY: what is the lane's own.
                unsafe {
                    asm!(concat!("ld.", $space, ".u64 {place}, [{own}+{places}];"),
                        concat!("ld.", $space, ".v2.u32 {{{link}, {began}}}, [{own}+{links}];"),
                        place = out(reg64) place, link = out(reg32) link,
                        began = out(reg32) began, own = in($register) own, places = const PLACES,
                        links = const LINKS, options(nostack, preserves_flags));
                }
                #[cfg(feature = "counted")]
                let third = Self::swap_more(own, more);
                // Of a run whose count is in its key the third word is of no importance.
                #[cfg(not(feature = "counted"))]
                let (third, _) = (link, more);
                let full: u32;
                // SAFETY: as above; the place is 0, or the address of a free unit in the lane's log.
                unsafe {
                    asm!("{{", ".reg .pred p, q;", ".reg .b32 low, high, next;",
                        "mov.b64 {{low, high}}, {place};",
                        "setp.eq.u32 p, {others}, 0;", "setp.ne.and.u32 p, high, 0, p;",
                        "@p st.global.v4.u32 [{place}], {{{old_mask}, {old_key}, {third}, {began}}};",
                        "add.u32 next, low, 16;",
                        concat!("@p st.", $space, ".u32 [{own}+{places}], next;"),
                        concat!("st.", $space, ".v2.u32 [{own}+{records}], {{{mask}, {key}}};"),
                        concat!("st.", $space, ".u32 [{own}+{links}+4], {time};"),
                        "setp.eq.and.u32 q, next, {link}, p;", "vote.any.pred q, q;",
                        "selp.u32 {full}, 1, 0, q;", "}}",
                        full = out(reg32) full, own = in($register) own, others = in(reg32) kept_by_others(old),
                        old_mask = in(reg32) old[0], old_key = in(reg32) old[1], place = in(reg64) place, link = in(reg32) link, began = in(reg32) began,
                        third = in(reg32) third, time = in(reg32) time, records = const RECORDS, links = const LINKS,
                        places = const PLACES, mask = in(reg32) mask, key = in(reg32) key,
                        options(nostack, preserves_flags));
                }
                full != 0
            }

            /// Where the lane's own run has its count, if it is not in its key: what it was, while it becomes `more`.
            #[cfg(feature = "counted")]
            #[inline(always)]
            fn swap_more(own: StateAddress, more: u32) -> u32 {
                let before: u32;
                // SAFETY: what is the lane's own; its words lie 8 bytes from the next lane's.
                unsafe {
                    asm!(concat!("ld.", $space, ".u32 {before}, [{own}+{mores}];"),
                        concat!("st.", $space, ".u32 [{own}+{mores}], {more};"),
                        before = out(reg32) before, own = in($register) own, more = in(reg32) more,
                        mores = const MORES, options(nostack, preserves_flags));
                }
                before
            }

            /// Address of this lane's own record, less [`RECORDS`]: its other words lie at the same distance from their first.
            #[inline(always)]
            pub(crate) fn own(self) -> StateAddress {
                self.address + 8 * StateAddress::from(crate::simt::own_lane())
            }
        }
    };
}
#[cfg(feature = "state-shared")]
accesses!("shared", reg32);
#[cfg(not(feature = "state-shared"))]
accesses!("global", reg64);

/// 0 if this lane keeps the run in its record: it is the lowest of its mask.
#[inline(always)]
pub(crate) fn kept_by_others(record: [u32; 2]) -> u32 {
    #[cfg(feature = "counted")]
    return !record[1] & crate::unit::KEEPS;
    #[cfg(not(feature = "counted"))]
    return record[0] & crate::simt::lower_lanes();
}

/// [`COMPARED`], in a form of which ptxas cannot tell what it is: so it stays in a register, and two comparisons take two instructions.
#[inline(always)]
fn compared() -> u32 {
    unknown_zero() | COMPARED
}
