//! Selection of the warps that record: the test at a kernel's entry, and a chosen warp's index.

use std::fmt::Write;
use std::mem::offset_of;

use warptrace_format::chosen::ChosenWarps;

use super::registers::{P, R32, VOTE, X};
use super::{Emitter, Field, Thread, Warp, field};

const FIRST_BLOCK: Field<32> = Field(field::CHOSEN + offset_of!(ChosenWarps, first_block) as u32);
const BLOCKS: Field<32> = Field(field::CHOSEN + offset_of!(ChosenWarps, blocks) as u32);
const BLOCK_STEP: Field<32> = Field(field::CHOSEN + offset_of!(ChosenWarps, block_step) as u32);
const FIRST_WARP: Field<32> = Field(field::CHOSEN + offset_of!(ChosenWarps, first_warp) as u32);
const BLOCK_WARPS: Field<32> = Field(field::CHOSEN + offset_of!(ChosenWarps, block_warps) as u32);

struct ChosenBlock {
    index: R32,
    step: R32,
    /// Distance from the first chosen block to this one.
    distance: R32,
}

impl Emitter {
    pub(in crate::splice) fn unchosen_label(&mut self) -> String {
        self.label()
    }

    /// Branches to `unchosen` with warps that are not chosen. All lanes of a warp are active.
    pub(super) fn choose(&mut self, unchosen: &str) -> Warp {
        let (block, thread) = self.block_and_thread();
        let ChosenBlock { index, step, distance } = self.chosen_block(block);
        let (chosen, nearest) = (P[0], X[7]);
        emit!(self, "mul.lo.u32 {nearest}, {index}, {step};");
        emit!(self, "setp.eq.u32 {chosen}, {nearest}, {distance};");
        let blocks = self.field(X[7], BLOCKS);
        emit!(self, "setp.lt.and.u32 {chosen}, {index}, {blocks}, {chosen};");
        let [warp, warps] = self.chosen_warp_in_block(thread);
        emit!(self, "setp.lt.and.u32 {chosen}, {warp}, {warps}, {chosen};");
        // After a vote, the assembler knows that the predicate is uniform.
        self.active();
        self.vote("all", VOTE, chosen);
        emit!(self, "@!{VOTE} bra {unchosen};");
        emit!(self, "mad.lo.u32 {block}, {index}, {warps}, {warp};");
        Warp { index: block, thread }
    }

    pub(super) fn chosen_warp(&mut self, block: R32, thread: Thread) -> Warp {
        let ChosenBlock { index, .. } = self.chosen_block(block);
        let [warp, warps] = self.chosen_warp_in_block(thread);
        emit!(self, "mad.lo.u32 {block}, {index}, {warps}, {warp};");
        Warp { index: block, thread }
    }

    /// Computes the block's index among the chosen blocks. Before the first chosen block, `distance` wraps
    /// and `index` is too large.
    fn chosen_block(&mut self, block: R32) -> ChosenBlock {
        let (distance, index) = (X[4], X[6]);
        let first = self.field(distance, FIRST_BLOCK);
        emit!(self, "sub.u32 {distance}, {block}, {first};");
        let step = self.field(X[5], BLOCK_STEP);
        emit!(self, "div.u32 {index}, {distance}, {step};");
        ChosenBlock { index, step, distance }
    }

    /// Computes this warp's index among the chosen warps of its block, and their number.
    fn chosen_warp_in_block(&mut self, thread: Thread) -> [R32; 2] {
        let warp = self.field(X[4], FIRST_WARP);
        emit!(self, "sub.u32 {warp}, {}, {warp};", thread.warp);
        [warp, self.field(X[5], BLOCK_WARPS)]
    }
}
