//! The instructions that record, as PTX text.
//!
//! Registers begin with `%wt_`, labels with `$warptrace_`. All are declared once in a function, by [`Emitter::declarations`].
//!
//! What `ptxas` makes of it decides the cost, so each line has its reason:
//! - A repetition is the path that counts: seven instructions, none of which touches memory where the record is in registers.
//! - `vote` without `.sync` is one instruction; with `.sync` and a mask in a register the assembler first finds out whether
//!   those lanes are here. PTX has the plain one up to version 6.3. Between `activemask` and the votes there is no branch, so
//!   both speak of the same lanes.
//! - A branch on a vote's answer is uniform, and the assembler knows it: no lane waits for another there.
//! - An atomic with an answer makes the assembler put a `YIELD` at the head of the loop around it, and a `YIELD` parts lanes that
//!   the untraced kernel keeps together. So the claim stands in a loop of its own, which runs once.

use std::fmt::Write;

use super::state::{Pair, Placement, descriptor_offset, local_bytes, warp_bytes};

/// Offsets of the fields of the launch's descriptor (`warptrace_format::log::LaunchLogs`).
pub(super) mod field {
    pub(crate) const LOGS: u32 = 0;
    pub(crate) const CLAIMS: u32 = 8;
    pub(crate) const ACCOUNTS: u32 = 16;
    pub(crate) const SLICES: u32 = 24;
    pub(crate) const WARPS: u32 = 28;
    pub(crate) const FIRST_ENTRIES: u32 = 32;
    pub(crate) const SEGMENT_ENTRIES: u32 = 36;
    pub(crate) const CLAIMS_FROM: u32 = 40;
    pub(crate) const CLAIMS_END: u32 = 44;
}

/// Entries of a slice before the first segments.
const HEADS_ENTRIES: u32 = 16;
/// Bytes of a warp's account, and where in it attempted and lost events are.
const ACCOUNT_BYTES: u32 = 32;
const ACCOUNT_LOST: u32 = 16;
/// The most that a key counts.
pub(super) const MAX_KEY_COUNT: u32 = 0xffff;

/// Name of the parameter that a traced kernel has beyond its own.
pub(super) const LAUNCH_PARAMETER: &str = "warptrace_launch";
/// Name of the block's dynamic shared memory.
pub(super) const DYNAMIC_SHARED: &str = "warptrace_dynamic";
const LOCAL: &str = "warptrace_local";

/// A log of the lane, and the names of its registers.
#[derive(Clone, Copy)]
struct Log {
    next: &'static str,
    link: &'static str,
    pair: Pair,
    track: u32,
}

const TRACE: Log = Log { next: "%wt_i", link: "%wt_e", pair: Pair::Log, track: 0 };
const TWIN: Log = Log { next: "%wt_ti", link: "%wt_te", pair: Pair::Twin, track: 1 };

/// Writes the sequences of one function.
pub(super) struct Emitter {
    pub(super) placement: Placement,
    pub(super) dual: bool,
    /// Whether votes name their lanes.
    pub(super) sync: bool,
    /// Whether this is a kernel; else a function that one calls.
    pub(super) is_entry: bool,
    /// Whether the kernel calls functions that record, or this is one.
    pub(super) with_descriptor: bool,
    /// Prefix of labels, unique in the function.
    labels: u32,
    out: String,
}

macro_rules! emit {
    ($emitter:expr, $($text:tt)*) => {{
        $emitter.out.push('\t');
        // Writing to a string does not fail.
        let _ = writeln!($emitter.out, $($text)*);
    }};
}

impl Emitter {
    pub(super) fn new(
        placement: Placement,
        dual: bool,
        sync: bool,
        is_entry: bool,
        with_descriptor: bool,
    ) -> Self {
        Self { placement, dual, sync, is_entry, with_descriptor, labels: 0, out: String::new() }
    }

    /// Takes what was written since the last time.
    pub(super) fn take(&mut self) -> String {
        std::mem::take(&mut self.out)
    }

    fn label(&mut self) -> String {
        self.labels += 1;
        format!("$warptrace_{}", self.labels)
    }

    fn place_label(&mut self, label: &str) {
        let _ = writeln!(self.out, "{label}:");
    }

    /// Declares the registers of a function; `loops` are the locations of its counted loops.
    pub(super) fn declarations(&mut self, loops: &[u16]) {
        emit!(self, ".reg .b32 %wt_m, %wt_k, %wt_t, %wt_i, %wt_e, %wt_lt, %wt_a, %wt_z, %wt_f, %wt_x<8>;");
        emit!(self, ".reg .b64 %wt_l, %wt_c, %wt_y<4>;");
        emit!(self, ".reg .pred %wt_r, %wt_w, %wt_p<6>;");
        if self.dual {
            emit!(self, ".reg .b32 %wt_ti, %wt_te;");
        }
        if self.placement == Placement::Shared {
            emit!(self, ".reg .b32 %wt_s;");
        }
        if self.placement == Placement::Local && self.is_entry {
            emit!(self, ".local .align 8 .b8 {LOCAL}[{}];", local_bytes(self.dual));
        }
        for location in loops {
            emit!(self, ".reg .b32 %wt_n{location};");
        }
    }

    /// Reads a field of the launch's descriptor.
    fn field(&mut self, bits: u32, to: &str, offset: u32) {
        if self.is_entry {
            emit!(self, "ld.param.b{bits} {to}, [{LAUNCH_PARAMETER}+{offset}];");
        } else {
            let at = descriptor_offset(self.dual) + offset;
            // `%wt_s` is the address of the lane's first pair.
            emit!(self, "mov.u32 %wt_f, %laneid;");
            emit!(self, "mad.lo.u32 %wt_f, %wt_f, -8, %wt_s;");
            emit!(self, "ld.shared.b{bits} {to}, [%wt_f+{at}];");
        }
    }

    fn at(&self, pair: Pair, word: u32) -> String {
        let offset = pair.offset(self.placement) + 4 * word;
        match self.placement {
            Placement::Shared => format!("[%wt_s+{offset}]"),
            _ => format!("[{LOCAL}+{offset}]"),
        }
    }

    fn memory(&self) -> Option<&'static str> {
        match self.placement {
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

    fn load_word(&mut self, pair: Pair, word: u32, to: &str) {
        if let Some(memory) = self.memory() {
            let at = self.at(pair, word);
            emit!(self, "ld.{memory}.b32 {to}, {at};");
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

    /// `mode` is `any` or `all`; the lanes are those of `%wt_a`, which are here.
    fn vote(&mut self, mode: &str, to: &str, of: &str) {
        if self.sync {
            emit!(self, "vote.sync.{mode}.pred {to}, {of}, %wt_a;");
        } else {
            emit!(self, "vote.{mode}.pred {to}, {of};");
        }
    }

    /// Computes the address of a log entry.
    fn entry_address(&mut self, to: &str, index: &str) {
        self.field(64, "%wt_y3", field::LOGS);
        emit!(self, "mad.wide.u32 {to}, {index}, 16, %wt_y3;");
    }

    fn clock(&mut self, to: &str) {
        emit!(self, "mov.u64 %wt_c, %clock64;");
        emit!(self, "shr.u64 %wt_c, %wt_c, 4;");
        emit!(self, "cvt.u32.u64 {to}, %wt_c;");
    }

    /// Finds this warp's index in the launch (`%wt_x0`) and the lane (`%wt_x1`).
    fn warp_in_launch(&mut self) {
        for line in [
            "mov.u32 %wt_x0, %ctaid.z;",
            "mov.u32 %wt_x1, %nctaid.y;",
            "mov.u32 %wt_x2, %ctaid.y;",
            "mad.lo.u32 %wt_x0, %wt_x0, %wt_x1, %wt_x2;",
            "mov.u32 %wt_x1, %nctaid.x;",
            "mov.u32 %wt_x2, %ctaid.x;",
            "mad.lo.u32 %wt_x0, %wt_x0, %wt_x1, %wt_x2;",
        ] {
            emit!(self, "{line}");
        }
        self.thread_in_block();
        emit!(self, "mad.lo.u32 %wt_x0, %wt_x0, %wt_x2, %wt_x3;");
    }

    /// Finds the lane (`%wt_x1`), the warps of a block (`%wt_x2`) and this warp's index in the block (`%wt_x3`).
    fn thread_in_block(&mut self) {
        for line in [
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
        ] {
            emit!(self, "{line}");
        }
    }

    /// Finds the lane's state in shared memory: `%wt_s`. Needs the values of `thread_in_block`.
    fn shared_state(&mut self) {
        let bytes = warp_bytes(self.dual, self.with_descriptor);
        emit!(self, "mov.u32 %wt_s, {DYNAMIC_SHARED};");
        emit!(self, "mov.u32 %wt_x4, %dynamic_smem_size;");
        emit!(self, "add.u32 %wt_s, %wt_s, %wt_x4;");
        emit!(self, "sub.u32 %wt_x2, %wt_x3, %wt_x2;");
        emit!(self, "mad.lo.u32 %wt_s, %wt_x2, {bytes}, %wt_s;");
        emit!(self, "mad.lo.u32 %wt_s, %wt_x1, 8, %wt_s;");
    }

    /// Prepares a function that a kernel calls.
    pub(super) fn function_prologue(&mut self, loops: &[u16]) {
        self.thread_in_block();
        self.shared_state();
        emit!(self, "mov.u32 %wt_lt, %lanemask_lt;");
        self.loop_counts(loops);
    }

    fn loop_counts(&mut self, loops: &[u16]) {
        for location in loops {
            self.loop_enter(*location);
        }
    }

    /// Prepares a kernel: the lane's record is empty, its logs are at the start of their first segments.
    pub(super) fn prologue(&mut self, loops: &[u16]) {
        self.warp_in_launch();
        self.field(32, "%wt_x5", field::FIRST_ENTRIES);
        let tracks: &[Log] = if self.dual { &[TRACE, TWIN] } else { &[TRACE] };
        for log in tracks {
            self.slice(log.track, "%wt_x6");
            // First segment: behind the heads, in the order of the lanes.
            emit!(self, "add.u32 %wt_x6, %wt_x6, {HEADS_ENTRIES};");
            emit!(self, "mad.lo.u32 {}, %wt_x1, %wt_x5, %wt_x6;", log.next);
            emit!(self, "add.u32 {}, {}, %wt_x5;", log.link, log.next);
            emit!(self, "sub.u32 {}, {}, 1;", log.link, log.link);
            self.entry_address("%wt_l", log.link);
            emit!(self, "mov.u32 %wt_z, 0;");
            emit!(self, "st.global.v4.b32 [%wt_l], {{%wt_z, %wt_z, %wt_z, %wt_z}};");
        }
        emit!(self, "mov.u32 %wt_m, 0;");
        emit!(self, "mov.u32 %wt_k, 0;");
        emit!(self, "mov.u32 %wt_t, 0;");
        if self.placement == Placement::Shared {
            self.shared_state();
            if self.with_descriptor {
                self.copy_descriptor();
            }
        }
        for log in tracks {
            self.store(log.pair, log.next, log.link);
        }
        self.store(Pair::Record, "%wt_m", "%wt_k");
        self.store_word("", Pair::Time, 0, "%wt_t");
        emit!(self, "mov.u32 %wt_lt, %lanemask_lt;");
        self.loop_counts(loops);
    }

    /// Copies the launch's descriptor to where functions find it. Every lane of the warp writes the same.
    fn copy_descriptor(&mut self) {
        let at = descriptor_offset(self.dual);
        emit!(self, "mad.lo.u32 %wt_x7, %wt_x1, -8, %wt_s;");
        for offset in (0..super::state::DESCRIPTOR_BYTES).step_by(8) {
            emit!(self, "ld.param.b64 %wt_y0, [{LAUNCH_PARAMETER}+{offset}];");
            emit!(self, "st.shared.b64 [%wt_x7+{}], %wt_y0;", at + offset);
        }
    }

    /// Computes the first entry of this warp's slice of a track, from the values of `warp_in_launch`; `%wt_x5` holds the entries
    /// of a first segment.
    fn slice(&mut self, track: u32, to: &str) {
        emit!(self, "mov.u32 %wt_x4, %wt_x0;");
        if track != 0 {
            self.field(32, "%wt_x4", field::WARPS);
            emit!(self, "mad.lo.u32 %wt_x4, %wt_x4, {track}, %wt_x0;");
        }
        emit!(self, "mad.lo.u32 %wt_x7, %wt_x5, 32, {HEADS_ENTRIES};");
        emit!(self, "mul.lo.u32 {to}, %wt_x4, %wt_x7;");
        self.field(32, "%wt_x7", field::SLICES);
        emit!(self, "add.u32 {to}, {to}, %wt_x7;");
    }

    /// Records `count` events of the lanes that are here at `location`, one after the other.
    pub(super) fn event(&mut self, location: u16, count: u32) {
        let done = self.label();
        let key = u32::from(location) << 16;
        emit!(self, "activemask.b32 %wt_a;");
        if self.dual {
            self.clock("%wt_x6");
        }
        self.load(Pair::Record, "%wt_m", "%wt_k");
        emit!(self, "xor.b32 %wt_x0, %wt_k, {key};");
        emit!(self, "setp.lt.u32 %wt_p0, %wt_x0, {};", MAX_KEY_COUNT + 1 - count);
        emit!(self, "setp.eq.and.u32 %wt_p0, %wt_m, %wt_a, %wt_p0;");
        self.vote("all", "%wt_r", "%wt_p0");
        emit!(self, "@%wt_r add.u32 %wt_k, %wt_k, {count};");
        self.store_word("@%wt_r ", Pair::Record, 1, "%wt_k");
        emit!(self, "@%wt_r bra {done};");
        self.end_run();
        if self.dual {
            emit!(self, "mov.u32 %wt_t, %wt_x6;");
        } else {
            self.clock("%wt_t");
        }
        emit!(self, "mov.u32 %wt_m, %wt_a;");
        emit!(self, "mov.u32 %wt_k, {};", key | count);
        self.store(Pair::Record, "%wt_m", "%wt_k");
        self.store_word("", Pair::Time, 0, "%wt_t");
        self.place_label(&done);
        if self.dual {
            self.twin_event(location, count);
        }
    }

    /// Appends the run that the lane is in to its log, if it is the one that keeps it. The record stays as it is.
    fn end_run(&mut self) {
        self.load(Pair::Log, "%wt_i", "%wt_e");
        self.load_word(Pair::Time, 0, "%wt_t");
        emit!(self, "and.b32 %wt_x0, %wt_m, %wt_lt;");
        emit!(self, "setp.eq.u32 %wt_w, %wt_x0, 0;");
        emit!(self, "setp.ne.and.u32 %wt_w, %wt_m, 0, %wt_w;");
        emit!(self, "mov.u32 %wt_z, 0;");
        self.append(TRACE, ["%wt_m", "%wt_k", "%wt_t", "%wt_z"]);
    }

    /// Records events on the twin's track: the lanes of `%wt_a`, at the time in `%wt_x6`.
    pub(super) fn twin_event(&mut self, location: u16, count: u32) {
        let key = u32::from(location) << 16 | count;
        self.load(Pair::Twin, "%wt_ti", "%wt_te");
        emit!(self, "and.b32 %wt_x0, %wt_a, %wt_lt;");
        emit!(self, "setp.eq.u32 %wt_w, %wt_x0, 0;");
        emit!(self, "mov.u32 %wt_x5, {key};");
        emit!(self, "mov.u32 %wt_z, 0;");
        self.append(TWIN, ["%wt_a", "%wt_x5", "%wt_x6", "%wt_z"]);
    }

    /// Records an event on the twin's track alone.
    pub(super) fn twin_only(&mut self, location: u16, count: u32) {
        emit!(self, "activemask.b32 %wt_a;");
        self.clock("%wt_x6");
        self.twin_event(location, count);
    }

    /// Appends an entry to the log of each lane for which `%wt_w` holds. All lanes that are here take part.
    fn append(&mut self, log: Log, [mask, key, time, more]: [&str; 4]) {
        let room = self.label();
        emit!(self, "setp.eq.and.u32 %wt_p1, {}, {}, %wt_w;", log.next, log.link);
        self.vote("any", "%wt_r", "%wt_p1");
        emit!(self, "@!%wt_r bra {room};");
        self.claim(log, key, time, more);
        self.place_label(&room);
        self.entry_address("%wt_l", log.next);
        emit!(self, "@%wt_w st.global.v4.b32 [%wt_l], {{{mask}, {key}, {time}, {more}}};");
        emit!(self, "@%wt_w add.u32 {next}, {next}, 1;", next = log.next);
        self.store_word("@%wt_w ", log.pair, 0, log.next);
    }

    /// Gives each lane for which `%wt_p1` holds another segment. Where memory is used up, the log is stopped, and its entry is
    /// counted as lost: `%wt_w` no longer holds then.
    ///
    /// A log that has been stopped stays at its link, which has, beside the 0 in its first word, the lost events (words 1 and 3)
    /// and the time of the first one, with the lowest bit set (word 2).
    fn claim(&mut self, log: Log, key: &str, time: &str, more: &str) {
        let again = self.label();
        self.entry_address("%wt_l", log.link);
        emit!(self, "mov.u32 %wt_x0, 0;");
        emit!(self, "@%wt_p1 ld.global.b32 %wt_x0, [%wt_l+8];");
        emit!(self, "setp.eq.and.u32 %wt_p2, %wt_x0, 0, %wt_p1;");
        self.place_label(&again);
        self.field(32, "%wt_x0", field::SEGMENT_ENTRIES);
        emit!(self, "cvt.u64.u32 %wt_y0, %wt_x0;");
        self.field(64, "%wt_y2", field::CLAIMS);
        emit!(self, "mov.u64 %wt_y1, 0;");
        emit!(self, "@%wt_p2 atom.global.add.u64 %wt_y1, [%wt_y2], %wt_y0;");
        emit!(self, "setp.eq.u64 %wt_p3, %wt_y1, -1;");
        self.vote("any", "%wt_p3", "%wt_p3");
        emit!(self, "@%wt_p3 bra {again};");
        self.field(32, "%wt_x0", field::CLAIMS_FROM);
        emit!(self, "cvt.u64.u32 %wt_y2, %wt_x0;");
        emit!(self, "add.u64 %wt_y1, %wt_y1, %wt_y2;");
        emit!(self, "add.u64 %wt_y0, %wt_y0, %wt_y1;");
        self.field(32, "%wt_x0", field::CLAIMS_END);
        emit!(self, "cvt.u64.u32 %wt_y2, %wt_x0;");
        emit!(self, "setp.le.and.u64 %wt_p3, %wt_y0, %wt_y2, %wt_p2;");
        emit!(self, "cvt.u32.u64 %wt_x0, %wt_y1;");
        emit!(self, "cvt.u32.u64 %wt_x1, %wt_y0;");
        emit!(self, "sub.u32 %wt_x1, %wt_x1, 1;");
        // The new link before the old one leads there.
        self.entry_address("%wt_y2", "%wt_x1");
        emit!(self, "mov.u32 %wt_x2, 0;");
        emit!(self, "@%wt_p3 st.global.v4.b32 [%wt_y2], {{%wt_x2, %wt_x2, %wt_x2, %wt_x2}};");
        emit!(self, "@%wt_p3 st.global.b32 [%wt_l], %wt_x0;");
        emit!(self, "@%wt_p3 mov.u32 {}, %wt_x0;", log.next);
        emit!(self, "@%wt_p3 mov.u32 {}, %wt_x1;", log.link);
        self.store_word("@%wt_p3 ", log.pair, 1, log.link);
        self.lose(key, time, more);
    }

    /// Counts the entry as lost where `%wt_p1` holds and `%wt_p3`, for "there is room", does not.
    fn lose(&mut self, key: &str, time: &str, more: &str) {
        let none = self.label();
        emit!(self, "not.pred %wt_p3, %wt_p3;");
        emit!(self, "and.pred %wt_p1, %wt_p1, %wt_p3;");
        self.vote("any", "%wt_r", "%wt_p1");
        emit!(self, "@!%wt_r bra {none};");
        emit!(self, "not.pred %wt_p3, %wt_p1;");
        emit!(self, "and.pred %wt_w, %wt_w, %wt_p3;");
        emit!(self, "and.b32 %wt_x0, {key}, {MAX_KEY_COUNT};");
        emit!(self, "cvt.u64.u32 %wt_y0, %wt_x0;");
        emit!(self, "cvt.u64.u32 %wt_y1, {more};");
        emit!(self, "add.u64 %wt_y0, %wt_y0, %wt_y1;");
        emit!(self, "@%wt_p1 ld.global.v4.b32 {{%wt_x0, %wt_x1, %wt_x2, %wt_x3}}, [%wt_l];");
        emit!(self, "mov.b64 %wt_y1, {{%wt_x1, %wt_x3}};");
        emit!(self, "add.u64 %wt_y0, %wt_y0, %wt_y1;");
        emit!(self, "mov.b64 {{%wt_x1, %wt_x3}}, %wt_y0;");
        // The first one's time stays.
        emit!(self, "and.pred %wt_p2, %wt_p2, %wt_p1;");
        emit!(self, "@%wt_p2 or.b32 %wt_x2, {time}, 1;");
        emit!(self, "mov.u32 %wt_x0, 0;");
        emit!(self, "@%wt_p1 st.global.v4.b32 [%wt_l], {{%wt_x0, %wt_x1, %wt_x2, %wt_x3}};");
        self.place_label(&none);
    }

    /// Opens a counted loop.
    pub(super) fn loop_enter(&mut self, location: u16) {
        emit!(self, "mov.u32 %wt_n{location}, 0;");
    }

    /// Counts iterations of a loop.
    pub(super) fn loop_tick(&mut self, location: u16, count: u32) {
        emit!(self, "add.u32 %wt_n{location}, %wt_n{location}, {count};");
    }

    /// Records a counted loop for the lanes that leave it together: a run for each number of iterations, of the lanes that
    /// iterated as often or more often, as long as the step from the next smaller number. The lowest lane whose number it is keeps
    /// it. Times differ by one from run to run: finding them takes longer than that.
    pub(super) fn loop_leave(&mut self, location: u16) {
        let (found, again) = (self.label(), self.label());
        let key = u32::from(location) << 16;
        emit!(self, "activemask.b32 %wt_a;");
        self.load(Pair::Record, "%wt_m", "%wt_k");
        self.end_run();
        self.clock("%wt_t");
        // Most groups iterated equally often.
        emit!(self, "bfind.u32 %wt_x1, %wt_a;");
        self.shuffle("%wt_x2", &format!("%wt_n{location}"), "%wt_x1");
        emit!(self, "setp.eq.u32 %wt_p0, %wt_x2, %wt_n{location};");
        self.vote("all", "%wt_r", "%wt_p0");
        // Lanes with as many or more; those with as many; the next smaller number; lanes with fewer.
        emit!(self, "mov.u32 %wt_x3, %wt_a;");
        emit!(self, "mov.u32 %wt_x4, %wt_a;");
        emit!(self, "mov.u32 %wt_x5, 0;");
        emit!(self, "mov.u32 %wt_x6, 0;");
        emit!(self, "@%wt_r bra {found};");
        emit!(self, "mov.u32 %wt_x3, 0;");
        emit!(self, "mov.u32 %wt_x4, 0;");
        emit!(self, "mov.u32 %wt_x0, %wt_a;");
        self.place_label(&again);
        emit!(self, "bfind.u32 %wt_x1, %wt_x0;");
        self.shuffle("%wt_x2", &format!("%wt_n{location}"), "%wt_x1");
        emit!(self, "shl.b32 %wt_x1, 1, %wt_x1;");
        emit!(self, "xor.b32 %wt_x0, %wt_x0, %wt_x1;");
        emit!(self, "setp.ge.u32 %wt_p0, %wt_x2, %wt_n{location};");
        emit!(self, "setp.eq.u32 %wt_p1, %wt_x2, %wt_n{location};");
        emit!(self, "@%wt_p0 or.b32 %wt_x3, %wt_x3, %wt_x1;");
        emit!(self, "@%wt_p1 or.b32 %wt_x4, %wt_x4, %wt_x1;");
        emit!(self, "@!%wt_p0 max.u32 %wt_x5, %wt_x5, %wt_x2;");
        emit!(self, "@!%wt_p0 add.u32 %wt_x6, %wt_x6, 1;");
        emit!(self, "setp.ne.u32 %wt_p0, %wt_x0, 0;");
        self.vote("any", "%wt_r", "%wt_p0");
        emit!(self, "@%wt_r bra {again};");
        self.place_label(&found);
        emit!(self, "and.b32 %wt_x0, %wt_x4, %wt_lt;");
        emit!(self, "setp.eq.u32 %wt_w, %wt_x0, 0;");
        emit!(self, "setp.ne.and.u32 %wt_w, %wt_n{location}, 0, %wt_w;");
        emit!(self, "mov.u32 %wt_m, %wt_x3;");
        emit!(self, "mov.u32 %wt_k, {key};");
        emit!(self, "add.u32 %wt_t, %wt_t, %wt_x6;");
        emit!(self, "sub.u32 %wt_z, %wt_n{location}, %wt_x5;");
        self.append(TRACE, ["%wt_m", "%wt_k", "%wt_t", "%wt_z"]);
        // The lane is in no run now.
        emit!(self, "mov.u32 %wt_m, 0;");
        emit!(self, "mov.u32 %wt_k, 0;");
        self.store(Pair::Record, "%wt_m", "%wt_k");
        self.loop_enter(location);
    }

    fn shuffle(&mut self, to: &str, value: &str, lane: &str) {
        if self.sync {
            emit!(self, "shfl.sync.idx.b32 {to}, {value}, {lane}, 31, %wt_a;");
        } else {
            emit!(self, "shfl.idx.b32 {to}, {value}, {lane}, 31;");
        }
    }

    /// Ends the lane's logs, before it leaves the kernel.
    pub(super) fn epilogue(&mut self) {
        emit!(self, "activemask.b32 %wt_a;");
        self.load(Pair::Record, "%wt_m", "%wt_k");
        self.end_run();
        self.warp_in_launch();
        self.field(32, "%wt_x5", field::FIRST_ENTRIES);
        self.head(TRACE);
        if self.dual {
            self.load(Pair::Twin, "%wt_ti", "%wt_te");
            self.head(TWIN);
        }
    }

    /// The epilogue for the lanes whose predicate says that they end here; answers the label behind the end for the others.
    pub(super) fn guarded_epilogue(&mut self, predicate: &str, negated: bool) -> String {
        let go_on = self.label();
        let stays = if negated { "" } else { "!" };
        emit!(self, "@{stays}{predicate} bra {go_on};");
        self.epilogue();
        go_on
    }

    /// Writes the lane's head of a log, and what the log has lost into the warp's account.
    fn head(&mut self, log: Log) {
        self.slice(log.track, "%wt_x6");
        self.entry_address("%wt_y0", "%wt_x6");
        emit!(self, "mad.wide.u32 %wt_y0, %wt_x1, 8, %wt_y0;");
        emit!(self, "mov.u32 %wt_x7, 0;");
        emit!(self, "setp.eq.u32 %wt_p0, {}, {};", log.next, log.link);
        let whole = self.label();
        self.vote("any", "%wt_r", "%wt_p0");
        emit!(self, "@!%wt_r bra {whole};");
        self.entry_address("%wt_l", log.link);
        for register in ["%wt_x2", "%wt_x3", "%wt_x7"] {
            emit!(self, "mov.u32 {register}, 0;");
        }
        emit!(self, "@%wt_p0 ld.global.v4.b32 {{%wt_x6, %wt_x2, %wt_x7, %wt_x3}}, [%wt_l];");
        emit!(self, "mov.b64 %wt_y1, {{%wt_x2, %wt_x3}};");
        emit!(self, "setp.ne.u64 %wt_p0, %wt_y1, 0;");
        self.field(64, "%wt_y2", field::ACCOUNTS);
        // `%wt_x4` is the stream's index (see `slice`).
        emit!(self, "mad.wide.u32 %wt_y2, %wt_x4, {ACCOUNT_BYTES}, %wt_y2;");
        emit!(self, "@%wt_p0 red.global.add.u64 [%wt_y2], %wt_y1;");
        emit!(self, "@%wt_p0 red.global.add.u64 [%wt_y2+{ACCOUNT_LOST}], %wt_y1;");
        self.place_label(&whole);
        emit!(self, "st.global.v2.b32 [%wt_y0], {{{}, %wt_x7}};", log.next);
    }
}
