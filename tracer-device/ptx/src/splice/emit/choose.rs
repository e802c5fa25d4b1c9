//! Which warps record: the question at a kernel's entry, and a chosen warp's index.

use std::fmt::Write;
use std::mem::offset_of;

use warptrace_format::chosen::ChosenWarps;

use super::{Emitter, field};

const FIRST_BLOCK: u32 = field::CHOSEN + offset_of!(ChosenWarps, first_block) as u32;
const BLOCKS: u32 = field::CHOSEN + offset_of!(ChosenWarps, blocks) as u32;
const BLOCK_STEP: u32 = field::CHOSEN + offset_of!(ChosenWarps, block_step) as u32;
const FIRST_WARP: u32 = field::CHOSEN + offset_of!(ChosenWarps, first_warp) as u32;
const BLOCK_WARPS: u32 = field::CHOSEN + offset_of!(ChosenWarps, block_warps) as u32;

impl Emitter {
    /// A label for warps that were not chosen.
    pub(in crate::splice) fn unchosen_label(&mut self) -> String {
        self.label()
    }

    /// Leads warps that were not chosen to `unchosen`, and finds what `warp_in_launch` finds for the others.
    /// All lanes of a warp are here, and answer the same.
    pub(super) fn choose(&mut self, unchosen: &str) {
        self.block_and_warp();
        self.chosen_place();
        // What is left of the division.
        emit!(self, "mul.lo.u32 %wt_x7, %wt_x6, %wt_x5;");
        emit!(self, "setp.eq.u32 %wt_p0, %wt_x7, %wt_x4;");
        self.field(32, "%wt_x7", BLOCKS);
        emit!(self, "setp.lt.and.u32 %wt_p0, %wt_x6, %wt_x7, %wt_p0;");
        self.chosen_warp_in_block();
        emit!(self, "setp.lt.and.u32 %wt_p0, %wt_x4, %wt_x5, %wt_p0;");
        // As a vote's answer the assembler knows it to be the same for all lanes.
        emit!(self, "activemask.b32 %wt_a;");
        self.vote("all", "%wt_r", "%wt_p0");
        emit!(self, "@!%wt_r bra {unchosen};");
        emit!(self, "mad.lo.u32 %wt_x0, %wt_x6, %wt_x5, %wt_x4;");
    }

    /// Finds a chosen warp's index among the chosen ones (`%wt_x0`) from the values of `block_and_warp`.
    pub(super) fn chosen_index(&mut self) {
        self.chosen_place();
        self.chosen_warp_in_block();
        emit!(self, "mad.lo.u32 %wt_x0, %wt_x6, %wt_x5, %wt_x4;");
    }

    /// How many blocks this one is behind the first chosen one (`%wt_x4`), the step from one to the next
    /// (`%wt_x5`), and this one's place among them (`%wt_x6`). Before the first one the difference wraps, and
    /// the place is too large.
    fn chosen_place(&mut self) {
        self.field(32, "%wt_x4", FIRST_BLOCK);
        emit!(self, "sub.u32 %wt_x4, %wt_x0, %wt_x4;");
        self.field(32, "%wt_x5", BLOCK_STEP);
        emit!(self, "div.u32 %wt_x6, %wt_x4, %wt_x5;");
    }

    /// This warp's number among the chosen ones of its block (`%wt_x4`), and how many they are (`%wt_x5`).
    fn chosen_warp_in_block(&mut self) {
        self.field(32, "%wt_x4", FIRST_WARP);
        emit!(self, "sub.u32 %wt_x4, %wt_x3, %wt_x4;");
        self.field(32, "%wt_x5", BLOCK_WARPS);
    }
}
