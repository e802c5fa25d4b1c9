//! Emits the recording sequences as PTX text.
//!
//! Registers begin with `%wt_` and are declared once in a function. Labels begin with `$warptrace_`.
//!
//! The sequences are tuned for the code that `ptxas` generates:
//! - The path of a repetition matters most: nine instructions, without a memory access if the record is in
//!   registers; six at the [location that repeats most](super::style::Style::hot).
//! - An event that begins a run takes about ten more. The words of an entry are kept in registers in the
//!   order of the entry, so that one 16-byte store writes them.
//! - `vote` without `.sync` is one instruction; for `.sync` with a mask in a register the assembler adds a
//!   check of the active lanes. PTX has the plain form up to version 6.3. No branch lies between `activemask`
//!   and the votes, so both see the same lanes.
//! - A branch on a vote's result is known to be uniform, so no lane waits for another there.

macro_rules! emit {
    ($emitter:expr, $($text:tt)*) => {{
        $emitter.out.push('\t');
        // Writing to a string does not fail.
        let _ = writeln!($emitter.out, $($text)*);
    }};
}

mod after;
mod choose;
mod data;
mod ends;
mod log;
mod loops;
mod registers;
mod ring;
mod runs;
mod spans;
mod streamed;

use std::fmt::Write;
use std::mem::offset_of;

use warptrace_abi::log::{ENTRY_BYTES, MAX_KEY_COUNT, TIME_SHIFT};
use warptrace_abi::recording::Recording;
use warptrace_format::LANES;
use warptrace_format::account::WarpAccount;

use self::registers::{
    ACTIVE, ANY_FULL, AT, CLOCK, DATA, END_CLOCK, END_TIMER, FIELD, KEY, LANES_BELOW, Log, MASK, NOW, P,
    Pred, R32, Register, SHADOW, SHADOW_KEY, STATE, TIME, TRACE, VOTE, Vector, WRITES, X, Y, iterations,
    registers_of,
};
use super::state::{Pair, Placement, descriptor_offset, local_bytes, warp_bytes};
use super::style::Style;

mod field {
    use std::mem::offset_of;

    use warptrace_abi::log::LaunchLogs;

    use super::Field;

    pub(super) const LOGS: Field<64> = Field(offset_of!(LaunchLogs, logs) as u32);
    pub(super) const CLAIMS: Field<64> = Field(offset_of!(LaunchLogs, claims) as u32);
    pub(super) const COUNTS: Field<64> = Field(offset_of!(LaunchLogs, accounts) as u32);
    pub(super) const FIRST_LANES: Field<32> = Field(offset_of!(LaunchLogs, first_lanes) as u32);
    pub(super) const WARPS: Field<32> = Field(offset_of!(LaunchLogs, warps) as u32);
    pub(super) const FIRST_ENTRIES: Field<32> = Field(offset_of!(LaunchLogs, first_entries) as u32);
    pub(super) const SEGMENT_ENTRIES: Field<32> = Field(offset_of!(LaunchLogs, segment_entries) as u32);
    pub(super) const CLAIMS_FROM: Field<32> = Field(offset_of!(LaunchLogs, claims_from) as u32);
    pub(super) const CLAIMS_END: Field<32> = Field(offset_of!(LaunchLogs, claims_end) as u32);
    pub(super) const FIRST_SEGMENTS: Field<32> = Field(offset_of!(LaunchLogs, first_segments) as u32);
    pub(super) const CHOSEN: u32 = offset_of!(LaunchLogs, chosen) as u32;
}

/// Size of a warp's counts in bytes, and offset of the lost events. Attempted events are first.
const COUNTS_BYTES: u32 = size_of::<WarpAccount>() as u32;
const COUNTS_LOST: u32 = offset_of!(WarpAccount, lost) as u32;
const _: () = assert!(offset_of!(WarpAccount, attempted) == 0);
/// Offset in a stream's head of the list of reserved first segments. Entries are aligned, so this bit of an
/// address marks a lane without a segment.
const NO_SEGMENT: u32 = 8;
/// The key in a record for the location that repeats most ([`Style::hot`]).
const REPEATED_KEY: u32 = 0xffff_0000;

/// Name of the additional parameter of a traced kernel.
pub(in crate::splice) const LAUNCH_PARAMETER: &str = "warptrace_launch";
pub(in crate::splice) const DYNAMIC_SHARED: &str = "warptrace_dynamic";
const LOCAL: &str = "warptrace_local";
const DATA_STATE: &str = "warptrace_data";

/// A field of the launch's descriptor: its offset, with its size in the type.
#[derive(Clone, Copy)]
struct Field<const BITS: u32>(u32);

#[derive(Clone, Copy)]
struct Thread {
    lane: R32,
    /// This warp's index in the block, and the number of warps.
    warp: R32,
    warps: R32,
}

/// The warp's index in the launch; among the chosen warps if the kernel chooses.
#[derive(Clone, Copy)]
struct Warp {
    index: R32,
    thread: Thread,
}

pub(super) struct Emitter {
    style: Style,
    labels: u32,
    out: String,
    /// Rarely executed code. It is placed after the function's code to keep that code dense.
    cold: String,
    spare: Vec<String>,
}

impl Emitter {
    pub(in crate::splice) fn new(style: Style) -> Self {
        Self { style, labels: 0, out: String::new(), cold: String::new(), spare: Vec::new() }
    }

    /// Takes the text written since the last call.
    pub(in crate::splice) fn take(&mut self) -> String {
        let empty = self.empty();
        std::mem::replace(&mut self.out, empty)
    }

    fn empty(&mut self) -> String {
        self.spare.pop().unwrap_or_default()
    }

    pub(in crate::splice) fn recycle(&mut self, mut text: String) {
        text.clear();
        self.spare.push(text);
    }

    /// Writes a sequence at a given scope depth and takes it. In a scope, the sequence includes its cold
    /// code, because code at the function's end could not branch back into the scope.
    pub(in crate::splice) fn scoped(&mut self, depth: u32, write: impl FnOnce(&mut Self)) -> String {
        let empty = self.empty();
        let before = std::mem::replace(&mut self.cold, empty);
        write(self);
        let cold = std::mem::replace(&mut self.cold, before);
        if depth == 0 {
            self.cold.push_str(&cold);
        } else if !cold.is_empty() {
            let over = self.label();
            emit!(self, "bra.uni {over};");
            self.out.push_str(&cold);
            self.place_label(&over);
        }
        self.recycle(cold);
        self.take()
    }

    /// Takes the cold code for the end of the function. Control does not fall into it.
    pub(in crate::splice) fn take_cold(&mut self) -> String {
        std::mem::take(&mut self.cold)
    }

    /// Writes cold code at `label`. It must end with a branch.
    fn cold(&mut self, label: &str, write: impl FnOnce(&mut Self)) {
        let before = self.take();
        self.place_label(label);
        write(self);
        let cold = std::mem::replace(&mut self.out, before);
        self.cold.push_str(&cold);
        self.recycle(cold);
    }

    /// Branches to cold code and back with all lanes if `any` holds. `any` must be uniform.
    fn detour(&mut self, any: Pred, write: impl FnOnce(&mut Self)) {
        let (detour, back) = (self.label(), self.label());
        emit!(self, "@{any} bra {detour};");
        self.place_label(&back);
        self.cold(&detour, |emitter| {
            write(emitter);
            emit!(emitter, "bra {back};");
        });
    }

    /// Writes a separate end of the kernel to the function's end and returns its label.
    pub(in crate::splice) fn end_of_its_own(&mut self, write: impl FnOnce(&mut Self)) -> String {
        let before = self.take();
        let label = self.label();
        let sequence = self.scoped(0, write);
        self.out = before;
        let _ = writeln!(self.cold, "{label}:\n{sequence}\tret;");
        label
    }

    pub(in crate::splice) fn text(&mut self, text: &str) {
        self.out.push_str(text);
    }

    fn label(&mut self) -> String {
        self.labels += 1;
        format!("$warptrace_{}", self.labels)
    }

    fn place_label(&mut self, label: &str) {
        let _ = writeln!(self.out, "{label}:");
    }

    fn logs(&self) -> &'static [Log] {
        match self.style.recording {
            Recording { dual: true, .. } => &[TRACE, SHADOW],
            // Functions have no sites.
            recording if recording.has_data() && self.style.is_entry => &[TRACE, DATA],
            _ => &[TRACE],
        }
    }

    /// Declares the registers of a function. `loops` are the locations of its counted loops.
    pub(in crate::splice) fn declarations(&mut self, loops: &[u16]) {
        let ([time_low, time_high], [now_low, now_high]) = (TIME.0, NOW.0);
        let Log { low, high, link, tag, .. } = TRACE;
        let own =
            format!("{MASK}, {KEY}, {time_low}, {time_high}, {low}, {high}, {link}, {LANES_BELOW}, {ACTIVE}");
        emit!(self, ".reg .b32 {own}, {FIELD}, %wt_x<{}>;", X.len());
        emit!(self, ".reg .b64 {AT}, {CLOCK}, %wt_y<{}>;", Y.len());
        emit!(self, ".reg .pred {VOTE}, {ANY_FULL}, {WRITES}, %wt_p<{}>;", P.len());
        if self.style.recording.dual {
            let Log { low, high, link, .. } = SHADOW;
            emit!(self, ".reg .b32 {low}, {high}, {link}, {now_low}, {now_high}, {SHADOW_KEY};");
        }
        if self.style.recording.logs.is_streamed() {
            emit!(self, ".reg .b32 {tag}, {};", SHADOW.tag);
        }
        if self.style.recording.spans {
            emit!(self, ".reg .b64 {END_CLOCK}, {END_TIMER};");
        }
        if self.style.placement == Placement::Shared {
            emit!(self, ".reg .b32 {STATE};");
        }
        if self.style.placement == Placement::Local {
            emit!(self, ".local .align 8 .b8 {LOCAL}[{}];", local_bytes(self.style.recording.dual));
        }
        for location in loops {
            emit!(self, ".reg .b32 {};", iterations(*location));
        }
        if self.style.recording.has_data() && self.style.is_entry {
            self.declare_data();
        }
    }

    fn field<const BITS: u32>(&mut self, to: Register<BITS>, Field(offset): Field<BITS>) -> Register<BITS> {
        if self.style.is_entry {
            emit!(self, "ld.param.b{BITS} {to}, [{LAUNCH_PARAMETER}+{offset}];");
        } else {
            let offset = descriptor_offset(self.style.recording.dual) + offset;
            // Goes back from the lane's first pair to lane 0's.
            emit!(self, "mov.u32 {FIELD}, %laneid;");
            emit!(self, "mad.lo.u32 {FIELD}, {FIELD}, -8, {STATE};");
            emit!(self, "ld.shared.b{BITS} {to}, [{FIELD}+{offset}];");
        }
        to
    }

    /// Returns space and address of a word of the lane's state, if it is in memory.
    fn in_memory(&self, pair: Pair, word: u32) -> Option<(&'static str, String)> {
        let offset = pair.offset(self.style.placement) + 4 * word;
        if let Pair::DataLog | Pair::DataLink = pair {
            return Some(("local", format!("[{DATA_STATE}+{offset}]")));
        }
        match self.style.placement {
            Placement::Registers => None,
            Placement::Shared => Some(("shared", format!("[{STATE}+{offset}]"))),
            Placement::Local => Some(("local", format!("[{LOCAL}+{offset}]"))),
        }
    }

    fn load(&mut self, pair: Pair) {
        if let Some((space, address)) = self.in_memory(pair, 0) {
            emit!(self, "ld.{space}.v2.b32 {}, {address};", registers_of(pair));
        }
    }

    fn load_log(&mut self, log: Log) {
        self.load(log.next_pair);
        if self.style.recording.logs.is_streamed() {
            self.load(log.link_pair);
        } else if let Some((space, address)) = self.in_memory(log.link_pair, 0) {
            emit!(self, "ld.{space}.b32 {}, {address};", log.link);
        }
    }

    fn store(&mut self, pair: Pair) {
        if let Some((space, address)) = self.in_memory(pair, 0) {
            emit!(self, "st.{space}.v2.b32 {address}, {};", registers_of(pair));
        }
    }

    fn store_log(&mut self, log: Log) {
        self.store(log.next_pair);
        if self.style.recording.logs.is_streamed() {
            self.store(log.link_pair);
        } else {
            self.store_word(None, log.link_pair, 0);
        }
    }

    fn store_word(&mut self, guard: Option<Pred>, pair: Pair, word: u32) {
        if let Some((space, address)) = self.in_memory(pair, word) {
            let guard = guard.map_or_else(String::new, |guard| format!("@{guard} "));
            let from = registers_of(pair).0[word as usize];
            emit!(self, "{guard}st.{space}.b32 {address}, {from};");
        }
    }

    /// Votes among the lanes of `ACTIVE`, which must be active. `mode` is `any` or `all`.
    fn vote(&mut self, mode: &str, to: Pred, of: Pred) {
        if self.style.sync {
            emit!(self, "vote.sync.{mode}.pred {to}, {of}, {ACTIVE};");
        } else {
            emit!(self, "vote.{mode}.pred {to}, {of};");
        }
    }

    /// Branches to `label` with all lanes if `of` holds in any lane.
    fn branch_if_any(&mut self, of: Pred, label: &str) {
        self.vote("any", VOTE, of);
        emit!(self, "@{VOTE} bra {label};");
    }

    fn branch_if_none(&mut self, of: Pred, label: &str) {
        self.vote("any", VOTE, of);
        emit!(self, "@!{VOTE} bra {label};");
    }

    fn and_not(&mut self, to: Pred, of: Pred, without: Pred) {
        emit!(self, "not.pred {to}, {without};");
        emit!(self, "and.pred {to}, {to}, {of};");
    }

    /// Clears `bit` where `denied` holds. `scratch` may be `denied`.
    fn clear(&mut self, bit: Pred, denied: Pred, scratch: Pred) {
        emit!(self, "not.pred {scratch}, {denied};");
        emit!(self, "and.pred {bit}, {bit}, {scratch};");
    }

    fn shuffle(&mut self, to: R32, value: R32, lane: R32) {
        if self.style.sync {
            emit!(self, "shfl.sync.idx.b32 {to}, {value}, {lane}, 31, {ACTIVE};");
        } else {
            emit!(self, "shfl.idx.b32 {to}, {value}, {lane}, 31;");
        }
    }

    fn active(&mut self) {
        emit!(self, "activemask.b32 {ACTIVE};");
    }

    fn clock(&mut self, to: Vector<2>) {
        emit!(self, "mov.u64 {CLOCK}, %clock64;");
        emit!(self, "mov.b64 {to}, {CLOCK};");
    }

    fn warp_in_launch(&mut self) -> Warp {
        let (block, thread) = self.block_and_thread();
        if self.style.recording.chooses {
            return self.chosen_warp(block, thread);
        }
        let index = block;
        emit!(self, "mad.lo.u32 {index}, {block}, {}, {};", thread.warps, thread.warp);
        Warp { index, thread }
    }

    fn block_and_thread(&mut self) -> (R32, Thread) {
        let [block, size, index, ..] = X;
        emit!(self, "mov.u32 {block}, %ctaid.z;");
        for axis in ["y", "x"] {
            emit!(self, "mov.u32 {size}, %nctaid.{axis};");
            emit!(self, "mov.u32 {index}, %ctaid.{axis};");
            emit!(self, "mad.lo.u32 {block}, {block}, {size}, {index};");
        }
        (block, self.thread_in_block())
    }

    fn thread_in_block(&mut self) -> Thread {
        let [_, lane, warps, warp, size, ..] = X;
        // Linear index of the row, then of the thread.
        let (row, thread) = (lane, warp);
        emit!(self, "mov.u32 {row}, %tid.z;");
        emit!(self, "mov.u32 {warps}, %ntid.y;");
        emit!(self, "mov.u32 {thread}, %tid.y;");
        emit!(self, "mad.lo.u32 {row}, {row}, {warps}, {thread};");
        emit!(self, "mov.u32 {size}, %ntid.x;");
        emit!(self, "mov.u32 {thread}, %tid.x;");
        emit!(self, "mad.lo.u32 {thread}, {row}, {size}, {thread};");
        emit!(self, "mul.lo.u32 {warps}, {warps}, {size};");
        emit!(self, "mov.u32 {size}, %ntid.z;");
        emit!(self, "mad.lo.u32 {warps}, {warps}, {size}, {};", LANES - 1);
        emit!(self, "shr.u32 {warps}, {warps}, {};", LANES.ilog2());
        emit!(self, "and.b32 {lane}, {thread}, {};", LANES - 1);
        emit!(self, "shr.u32 {warp}, {thread}, {};", LANES.ilog2());
        Thread { lane, warp, warps }
    }

    /// Computes the address of the lane's state in shared memory. Overwrites `thread.warps`.
    fn shared_state(&mut self, thread: Thread) {
        let Style { recording: Recording { dual, chooses, .. }, with_descriptor, .. } = self.style;
        let bytes = warp_bytes(dual, with_descriptor, chooses);
        let (Thread { lane, warp, warps }, dynamic) = (thread, X[4]);
        emit!(self, "mov.u32 {STATE}, {DYNAMIC_SHARED};");
        emit!(self, "mov.u32 {dynamic}, %dynamic_smem_size;");
        emit!(self, "add.u32 {STATE}, {STATE}, {dynamic};");
        // From the end of the block's shared memory back to this warp's part.
        emit!(self, "sub.u32 {warps}, {warp}, {warps};");
        emit!(self, "mad.lo.u32 {STATE}, {warps}, {bytes}, {STATE};");
        emit!(self, "mad.lo.u32 {STATE}, {lane}, 8, {STATE};");
    }
}
