//! The instructions that record, as PTX text.
//!
//! Registers begin with `%wt_`, labels with `$warptrace_`. All are declared once in a function, by
//! [`Emitter::declarations`].
//!
//! What `ptxas` makes of it decides the cost, so each line has its reason:
//! - A repetition is the path that counts: nine instructions, none of which touches memory where the record
//!   is in registers; six at the [hot](super::style::Style::hot) location.
//! - An event that begins a run takes about ten more. The words of an entry are the registers in which they
//!   are kept, in their order, so that one store of 16 bytes takes them as they are.
//! - `vote` without `.sync` is one instruction; with `.sync` and a mask in a register the assembler first
//!   finds out whether those lanes are here. PTX has the plain one up to version 6.3. Between `activemask`
//!   and the votes there is no branch, so both speak of the same lanes.
//! - A branch on a vote's answer is uniform, and the assembler knows it: no lane waits for another there.

macro_rules! emit {
    ($emitter:expr, $($text:tt)*) => {{
        $emitter.out.push('\t');
        // Writing to a string does not fail.
        let _ = writeln!($emitter.out, $($text)*);
    }};
}

mod after;
mod choose;
mod ends;
mod log;
mod loops;
mod open;
mod ring;
mod runs;
mod streamed;

use std::fmt::Write;
use std::mem::offset_of;

use warptrace_abi::log::{ENTRY_BYTES, HEAD_BYTES, HEADS_ENTRIES, MAX_KEY_COUNT, TIME_SHIFT};
use warptrace_abi::recording::Recording;
use warptrace_format::LANES;
use warptrace_format::account::WarpAccount;

use super::state::{Pair, Placement, descriptor_offset, local_bytes, warp_bytes};
use super::style::Style;

/// Offsets of the fields of the launch's descriptor.
mod field {
    use std::mem::offset_of;

    use warptrace_abi::log::LaunchLogs;

    pub(super) const LOGS: u32 = offset_of!(LaunchLogs, logs) as u32;
    pub(super) const CLAIMS: u32 = offset_of!(LaunchLogs, claims) as u32;
    pub(super) const ACCOUNTS: u32 = offset_of!(LaunchLogs, accounts) as u32;
    pub(super) const HEADS: u32 = offset_of!(LaunchLogs, heads) as u32;
    pub(super) const WARPS: u32 = offset_of!(LaunchLogs, warps) as u32;
    pub(super) const FIRST_ENTRIES: u32 = offset_of!(LaunchLogs, first_entries) as u32;
    pub(super) const SEGMENT_ENTRIES: u32 = offset_of!(LaunchLogs, segment_entries) as u32;
    pub(super) const CLAIMS_FROM: u32 = offset_of!(LaunchLogs, claims_from) as u32;
    pub(super) const CLAIMS_END: u32 = offset_of!(LaunchLogs, claims_end) as u32;
    pub(super) const FIRST_SEGMENTS: u32 = offset_of!(LaunchLogs, first_segments) as u32;
    pub(super) const CHOSEN: u32 = offset_of!(LaunchLogs, chosen) as u32;
}

/// Bytes of a warp's account, and where in it lost events are; attempted ones are first.
const ACCOUNT_BYTES: u32 = size_of::<WarpAccount>() as u32;
const ACCOUNT_LOST: u32 = offset_of!(WarpAccount, lost) as u32;
const _: () = assert!(offset_of!(WarpAccount, attempted) == 0);
/// The hot location in a record.
const HOT_KEY: u32 = 0xffff_0000;

/// Name of the parameter that a traced kernel has beyond its own.
pub(in crate::splice) const LAUNCH_PARAMETER: &str = "warptrace_launch";
/// Name of the block's dynamic shared memory.
pub(in crate::splice) const DYNAMIC_SHARED: &str = "warptrace_dynamic";
const LOCAL: &str = "warptrace_local";

/// A log of the lane, by its registers: the address of the next entry, in two halves, and the lower half of
/// that of the link. Segments do not cross a multiple of 4 GiB, so the upper half is the link's too. A
/// streamed log has a tag beside them.
#[derive(Clone, Copy)]
struct Log {
    low: &'static str,
    high: &'static str,
    link: &'static str,
    tag: &'static str,
    /// Where the address is in memory, and where the link's.
    pointer: Pair,
    end: Pair,
    track: u32,
}

const TRACE: Log = Log {
    low: "%wt_pl",
    high: "%wt_ph",
    link: "%wt_e",
    tag: "%wt_g0",
    pointer: Pair::Log,
    end: Pair::Link,
    track: 0,
};
const TWIN: Log = Log {
    low: "%wt_ul",
    high: "%wt_uh",
    link: "%wt_ue",
    tag: "%wt_g1",
    pointer: Pair::TwinLog,
    end: Pair::TwinLink,
    track: 1,
};

/// The words of an entry, by their registers.
type Words = [&'static str; 4];
/// The run that the lane is in.
const RECORD: Words = ["%wt_m", "%wt_k", "%wt_tl", "%wt_th"];

/// Writes the sequences of one function.
pub(super) struct Emitter {
    style: Style,
    /// Labels so far; unique in the function.
    labels: u32,
    out: String,
    /// What is executed rarely: it stands behind the function's own code, so that this stays dense.
    rare: String,
}

impl Emitter {
    pub(in crate::splice) fn new(style: Style) -> Self {
        Self { style, labels: 0, out: String::new(), rare: String::new() }
    }

    /// Takes what was written since the last time.
    pub(in crate::splice) fn take(&mut self) -> String {
        std::mem::take(&mut self.out)
    }

    /// Writes a sequence that stands in this many scopes, and takes it. In a scope it holds what is executed
    /// rarely, because from the function's end no branch leads back into the scope.
    pub(in crate::splice) fn scoped(&mut self, depth: u32, write: impl FnOnce(&mut Self)) -> String {
        let before = std::mem::take(&mut self.rare);
        write(self);
        let rare = std::mem::replace(&mut self.rare, before);
        if depth == 0 {
            self.rare.push_str(&rare);
        } else if !rare.is_empty() {
            let over = self.label();
            emit!(self, "bra.uni {over};");
            self.out.push_str(&rare);
            self.place_label(&over);
        }
        self.take()
    }

    /// Takes what is executed rarely, for the end of the function: control does not fall into it.
    pub(in crate::splice) fn take_rare(&mut self) -> String {
        std::mem::take(&mut self.rare)
    }

    /// Writes what lanes do before they leave the kernel to the function's end, and returns its label.
    pub(in crate::splice) fn end_of_its_own(&mut self, write: impl FnOnce(&mut Self)) -> String {
        let before = std::mem::take(&mut self.out);
        let label = self.label();
        let sequence = self.scoped(0, write);
        self.out = before;
        let _ = writeln!(self.rare, "{label}:\n{sequence}\tret;");
        label
    }

    /// Writes text as it is.
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

    fn lines(&mut self, lines: &[&str]) {
        for line in lines {
            emit!(self, "{line}");
        }
    }

    fn logs(&self) -> &'static [Log] {
        if self.style.recording.dual { &[TRACE, TWIN] } else { &[TRACE] }
    }

    /// Declares the registers of a function; `loops` are the locations of its counted loops.
    pub(in crate::splice) fn declarations(&mut self, loops: &[u16]) {
        self.lines(&[
            ".reg .b32 %wt_m, %wt_k, %wt_tl, %wt_th, %wt_pl, %wt_ph, %wt_e, %wt_lt, %wt_a, %wt_f, %wt_x<9>;",
            ".reg .b64 %wt_l, %wt_c, %wt_y<4>;",
            ".reg .pred %wt_r, %wt_g, %wt_w, %wt_p<6>;",
        ]);
        if self.style.recording.dual {
            emit!(self, ".reg .b32 %wt_ul, %wt_uh, %wt_ue, %wt_cl, %wt_ch, %wt_tk;");
        }
        if self.style.recording.logs.is_streamed() {
            emit!(self, ".reg .b32 %wt_g0, %wt_g1;");
        }
        if self.style.placement == Placement::Shared {
            emit!(self, ".reg .b32 %wt_s;");
        }
        if self.style.placement == Placement::Local {
            emit!(self, ".local .align 8 .b8 {LOCAL}[{}];", local_bytes(self.style.recording.dual));
        }
        for location in loops {
            emit!(self, ".reg .b32 %wt_n{location};");
        }
    }

    /// Reads a field of the launch's descriptor.
    fn field(&mut self, bits: u32, to: &str, offset: u32) {
        if self.style.is_entry {
            emit!(self, "ld.param.b{bits} {to}, [{LAUNCH_PARAMETER}+{offset}];");
        } else {
            let at = descriptor_offset(self.style.recording.dual) + offset;
            // `%wt_s` is the address of the lane's first pair.
            emit!(self, "mov.u32 %wt_f, %laneid;");
            emit!(self, "mad.lo.u32 %wt_f, %wt_f, -8, %wt_s;");
            emit!(self, "ld.shared.b{bits} {to}, [%wt_f+{at}];");
        }
    }

    fn at(&self, pair: Pair, word: u32) -> String {
        let offset = pair.offset(self.style.placement) + 4 * word;
        match self.style.placement {
            Placement::Shared => format!("[%wt_s+{offset}]"),
            _ => format!("[{LOCAL}+{offset}]"),
        }
    }

    /// The space of the lane's state, if that is in memory.
    fn memory(&self) -> Option<&'static str> {
        match self.style.placement {
            Placement::Registers => None,
            Placement::Shared => Some("shared"),
            Placement::Local => Some("local"),
        }
    }

    /// Brings a pair into its registers, if it is in memory.
    fn load(&mut self, pair: Pair, first: &str, second: &str) {
        if let Some(memory) = self.memory() {
            let at = self.at(pair, 0);
            emit!(self, "ld.{memory}.v2.b32 {{{first}, {second}}}, {at};");
        }
    }

    fn load_word(&mut self, pair: Pair, to: &str) {
        if let Some(memory) = self.memory() {
            let at = self.at(pair, 0);
            emit!(self, "ld.{memory}.b32 {to}, {at};");
        }
    }

    fn load_log(&mut self, log: Log) {
        self.load(log.pointer, log.low, log.high);
        if self.style.recording.logs.is_streamed() {
            self.load(log.end, log.link, log.tag);
        } else {
            self.load_word(log.end, log.link);
        }
    }

    fn store(&mut self, pair: Pair, first: &str, second: &str) {
        if let Some(memory) = self.memory() {
            let at = self.at(pair, 0);
            emit!(self, "st.{memory}.v2.b32 {at}, {{{first}, {second}}};");
        }
    }

    fn store_word(&mut self, guard: &str, pair: Pair, word: u32, from: &str) {
        if let Some(memory) = self.memory() {
            let at = self.at(pair, word);
            emit!(self, "{guard}st.{memory}.b32 {at}, {from};");
        }
    }

    /// Votes; `mode` is `any` or `all`, the lanes are those of `%wt_a`, which are here.
    fn vote(&mut self, mode: &str, to: &str, of: &str) {
        if self.style.sync {
            emit!(self, "vote.sync.{mode}.pred {to}, {of}, %wt_a;");
        } else {
            emit!(self, "vote.{mode}.pred {to}, {of};");
        }
    }

    fn shuffle(&mut self, to: &str, value: &str, lane: &str) {
        if self.style.sync {
            emit!(self, "shfl.sync.idx.b32 {to}, {value}, {lane}, 31, %wt_a;");
        } else {
            emit!(self, "shfl.idx.b32 {to}, {value}, {lane}, 31;");
        }
    }

    /// Reads the clock: lower and upper half.
    fn clock(&mut self, low: &str, high: &str) {
        emit!(self, "mov.u64 %wt_c, %clock64;");
        emit!(self, "mov.b64 {{{low}, {high}}}, %wt_c;");
    }

    /// Finds this warp's index in the launch (`%wt_x0`), among the chosen ones if they are looked for, and
    /// the lane (`%wt_x1`).
    fn warp_in_launch(&mut self) {
        self.block_and_warp();
        if self.style.recording.chooses {
            self.chosen_index();
        } else {
            emit!(self, "mad.lo.u32 %wt_x0, %wt_x0, %wt_x2, %wt_x3;");
        }
    }

    /// Finds the block's linear index (`%wt_x0`), and what `thread_in_block` finds.
    fn block_and_warp(&mut self) {
        self.lines(&[
            "mov.u32 %wt_x0, %ctaid.z;",
            "mov.u32 %wt_x1, %nctaid.y;",
            "mov.u32 %wt_x2, %ctaid.y;",
            "mad.lo.u32 %wt_x0, %wt_x0, %wt_x1, %wt_x2;",
            "mov.u32 %wt_x1, %nctaid.x;",
            "mov.u32 %wt_x2, %ctaid.x;",
            "mad.lo.u32 %wt_x0, %wt_x0, %wt_x1, %wt_x2;",
        ]);
        self.thread_in_block();
    }

    /// Finds the lane (`%wt_x1`), the warps of a block (`%wt_x2`) and this warp's index in the block
    /// (`%wt_x3`).
    fn thread_in_block(&mut self) {
        self.lines(&[
            "mov.u32 %wt_x1, %tid.z;",
            "mov.u32 %wt_x2, %ntid.y;",
            "mov.u32 %wt_x3, %tid.y;",
            "mad.lo.u32 %wt_x1, %wt_x1, %wt_x2, %wt_x3;",
            "mov.u32 %wt_x4, %ntid.x;",
            "mov.u32 %wt_x3, %tid.x;",
            "mad.lo.u32 %wt_x3, %wt_x1, %wt_x4, %wt_x3;",
            "mul.lo.u32 %wt_x2, %wt_x2, %wt_x4;",
            "mov.u32 %wt_x4, %ntid.z;",
            "mad.lo.u32 %wt_x2, %wt_x2, %wt_x4, 31;",
            "shr.u32 %wt_x2, %wt_x2, 5;",
            "and.b32 %wt_x1, %wt_x3, 31;",
            "shr.u32 %wt_x3, %wt_x3, 5;",
        ]);
    }

    /// Finds the lane's state in shared memory: `%wt_s`. Needs the values of `thread_in_block`.
    fn shared_state(&mut self) {
        let Style { recording: Recording { dual, chooses, .. }, with_descriptor, .. } = self.style;
        let bytes = warp_bytes(dual, with_descriptor, chooses);
        emit!(self, "mov.u32 %wt_s, {DYNAMIC_SHARED};");
        emit!(self, "mov.u32 %wt_x4, %dynamic_smem_size;");
        emit!(self, "add.u32 %wt_s, %wt_s, %wt_x4;");
        emit!(self, "sub.u32 %wt_x2, %wt_x3, %wt_x2;");
        emit!(self, "mad.lo.u32 %wt_s, %wt_x2, {bytes}, %wt_s;");
        emit!(self, "mad.lo.u32 %wt_s, %wt_x1, 8, %wt_s;");
    }
}
