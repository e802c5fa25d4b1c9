//! The instructions that record, as PTX text.
//!
//! Registers begin with `%wt_`, labels with `$warptrace_`. All are declared once in a function, by [`Emitter::declarations`].
//!
//! What `ptxas` makes of it decides the cost, so each line has its reason:
//! - A repetition is the path that counts: nine instructions, none of which touches memory where the record is in registers;
//!   six at the [hot](super::style::Style::hot) location.
//! - An event that begins a run takes about ten more. The words of an entry are the registers in which they are kept, in their order,
//!   so that one store of 16 bytes takes them as they are.
//! - `vote` without `.sync` is one instruction; with `.sync` and a mask in a register the assembler first finds out whether
//!   those lanes are here. PTX has the plain one up to version 6.3. Between `activemask` and the votes there is no branch, so
//!   both speak of the same lanes.
//! - A branch on a vote's answer is uniform, and the assembler knows it: no lane waits for another there.

use std::fmt::Write;

use super::state::{Pair, Placement, descriptor_offset, local_bytes, warp_bytes};
use super::style::{Claim, Style};

/// Offsets of the fields of the launch's descriptor (`warptrace_format::log::LaunchLogs`).
mod field {
    pub(super) const LOGS: u32 = 0;
    pub(super) const CLAIMS: u32 = 8;
    pub(super) const ACCOUNTS: u32 = 16;
    pub(super) const SLICES: u32 = 24;
    pub(super) const WARPS: u32 = 28;
    pub(super) const FIRST_ENTRIES: u32 = 32;
    pub(super) const SEGMENT_ENTRIES: u32 = 36;
    pub(super) const CLAIMS_FROM: u32 = 40;
    pub(super) const CLAIMS_END: u32 = 44;
}

/// Entries of a slice before the first segments.
const HEADS_ENTRIES: u32 = 32;
/// Bytes of a lane's head.
const HEAD_BYTES: u32 = 8;
/// Bytes of an entry.
const ENTRY_BYTES: u32 = 16;
/// Bits by which the clock is shifted in a time.
const TIME_SHIFT: u32 = 4;
/// Bytes of a warp's account, and where in it lost events are; attempted ones are first.
const ACCOUNT_BYTES: u32 = 32;
const ACCOUNT_LOST: u32 = 16;
/// The most that a key counts.
pub(super) const MAX_KEY_COUNT: u32 = 0xffff;
/// The hot location in a record.
const HOT_KEY: u32 = 0xffff_0000;

/// Name of the parameter that a traced kernel has beyond its own.
pub(super) const LAUNCH_PARAMETER: &str = "warptrace_launch";
/// Name of the block's dynamic shared memory.
pub(super) const DYNAMIC_SHARED: &str = "warptrace_dynamic";
const LOCAL: &str = "warptrace_local";

/// A log of the lane, by its registers: the address of the next entry, in two halves, and the lower half of that of the link.
/// Segments do not cross a multiple of 4 GiB, so the upper half is the link's too.
#[derive(Clone, Copy)]
struct Log {
    low: &'static str,
    high: &'static str,
    link: &'static str,
    /// Where the address is in memory, and where the link's.
    pointer: Pair,
    end: Pair,
    track: u32,
}

const TRACE: Log =
    Log { low: "%wt_pl", high: "%wt_ph", link: "%wt_e", pointer: Pair::Log, end: Pair::Link, track: 0 };
const TWIN: Log = Log {
    low: "%wt_ul",
    high: "%wt_uh",
    link: "%wt_ue",
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

macro_rules! emit {
    ($emitter:expr, $($text:tt)*) => {{
        $emitter.out.push('\t');
        // Writing to a string does not fail.
        let _ = writeln!($emitter.out, $($text)*);
    }};
}

impl Emitter {
    pub(super) fn new(style: Style) -> Self {
        Self { style, labels: 0, out: String::new(), rare: String::new() }
    }

    /// Takes what was written since the last time.
    pub(super) fn take(&mut self) -> String {
        std::mem::take(&mut self.out)
    }

    /// Takes what is executed rarely, for the end of the function: control does not fall into it.
    pub(super) fn take_rare(&mut self) -> String {
        std::mem::take(&mut self.rare)
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
        if self.style.dual { &[TRACE, TWIN] } else { &[TRACE] }
    }

    /// Declares the registers of a function; `loops` are the locations of its counted loops.
    pub(super) fn declarations(&mut self, loops: &[u16]) {
        self.lines(&[
            ".reg .b32 %wt_m, %wt_k, %wt_tl, %wt_th, %wt_pl, %wt_ph, %wt_e, %wt_lt, %wt_a, %wt_f, %wt_x<9>;",
            ".reg .b64 %wt_l, %wt_c, %wt_y<4>;",
            ".reg .pred %wt_r, %wt_g, %wt_w, %wt_p<6>;",
        ]);
        if self.style.dual {
            emit!(self, ".reg .b32 %wt_ul, %wt_uh, %wt_ue, %wt_cl, %wt_ch, %wt_tk;");
        }
        if self.style.placement == Placement::Shared {
            emit!(self, ".reg .b32 %wt_s;");
        }
        if self.style.placement == Placement::Local {
            emit!(self, ".local .align 8 .b8 {LOCAL}[{}];", local_bytes(self.style.dual));
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
            let at = descriptor_offset(self.style.dual) + offset;
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
        self.load_word(log.end, log.link);
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

    /// Finds this warp's index in the launch (`%wt_x0`) and the lane (`%wt_x1`).
    fn warp_in_launch(&mut self) {
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
        emit!(self, "mad.lo.u32 %wt_x0, %wt_x0, %wt_x2, %wt_x3;");
    }

    /// Finds the lane (`%wt_x1`), the warps of a block (`%wt_x2`) and this warp's index in the block (`%wt_x3`).
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
        let bytes = warp_bytes(self.style.dual, self.style.with_descriptor);
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
        loops.iter().for_each(|location| self.loop_enter(*location));
    }

    /// Prepares a kernel: the lane is in no run, its logs are at the start of their first segments.
    pub(super) fn prologue(&mut self, loops: &[u16]) {
        self.warp_in_launch();
        self.field(32, "%wt_x5", field::FIRST_ENTRIES);
        for log in self.logs() {
            self.first_segment(*log);
        }
        self.no_run();
        emit!(self, "mov.u32 %wt_tl, 0;");
        emit!(self, "mov.u32 %wt_th, 0;");
        if self.style.placement == Placement::Shared {
            self.shared_state();
            if self.style.with_descriptor {
                self.copy_descriptor();
            }
        }
        for log in self.logs() {
            self.store(log.pointer, log.low, log.high);
            self.store_word("", log.end, 0, log.link);
        }
        self.store(Pair::Record, "%wt_m", "%wt_k");
        self.store(Pair::Time, "%wt_tl", "%wt_th");
        emit!(self, "mov.u32 %wt_lt, %lanemask_lt;");
        loops.iter().for_each(|location| self.loop_enter(*location));
    }

    /// Puts a log to the start of its first segment: behind the heads of the slice, in the order of the lanes.
    fn first_segment(&mut self, log: Log) {
        self.slice(log.track, "%wt_x6");
        emit!(self, "add.u32 %wt_x6, %wt_x6, {HEADS_ENTRIES};");
        emit!(self, "mad.lo.u32 %wt_x6, %wt_x1, %wt_x5, %wt_x6;");
        self.field(64, "%wt_y0", field::LOGS);
        emit!(self, "mad.wide.u32 %wt_y0, %wt_x6, {ENTRY_BYTES}, %wt_y0;");
        emit!(self, "mov.b64 {{{}, {}}}, %wt_y0;", log.low, log.high);
        emit!(self, "sub.u32 %wt_x6, %wt_x5, 1;");
        emit!(self, "mad.wide.u32 %wt_y0, %wt_x6, {ENTRY_BYTES}, %wt_y0;");
        emit!(self, "cvt.u32.u64 {}, %wt_y0;", log.link);
    }

    /// Puts the lane's record to "in no run": of all lanes, so that only lane 0 would keep it, and of no event. (An entry without
    /// events is passed over.)
    fn no_run(&mut self) {
        emit!(self, "mov.u32 %wt_m, -1;");
        emit!(self, "mov.u32 %wt_k, 0;");
    }

    /// Copies the launch's descriptor to where functions find it. Every lane of the warp writes the same.
    fn copy_descriptor(&mut self) {
        let at = descriptor_offset(self.style.dual);
        emit!(self, "mad.lo.u32 %wt_x7, %wt_x1, -8, %wt_s;");
        for offset in (0..super::state::DESCRIPTOR_BYTES).step_by(8) {
            emit!(self, "ld.param.b64 %wt_y0, [{LAUNCH_PARAMETER}+{offset}];");
            emit!(self, "st.shared.b64 [%wt_x7+{}], %wt_y0;", at + offset);
        }
    }

    /// Computes the first entry of this warp's slice of a track, and the stream's index (`%wt_x4`), from the values of
    /// `warp_in_launch`; `%wt_x5` holds the entries of a first segment.
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
        let mut key = u32::from(location) << 16;
        emit!(self, "activemask.b32 %wt_a;");
        if self.style.dual {
            self.clock("%wt_cl", "%wt_ch");
        }
        self.load(Pair::Record, "%wt_m", "%wt_k");
        if self.style.hot == Some(location) {
            key = HOT_KEY;
            emit!(self, "setp.lt.s32 %wt_p0, %wt_k, -{count};");
        } else {
            emit!(self, "xor.b32 %wt_x0, %wt_k, {key};");
            emit!(self, "setp.lt.u32 %wt_p0, %wt_x0, {};", MAX_KEY_COUNT + 1 - count);
        }
        emit!(self, "setp.eq.and.u32 %wt_p0, %wt_m, %wt_a, %wt_p0;");
        let asks_early = self.asks_early(location);
        if asks_early {
            self.ask_full(TRACE);
        }
        self.vote("all", "%wt_r", "%wt_p0");
        emit!(self, "@%wt_r add.u32 %wt_k, %wt_k, {count};");
        self.store_word("@%wt_r ", Pair::Record, 1, "%wt_k");
        emit!(self, "@%wt_r bra {done};");
        self.end_run(asks_early);
        if self.style.dual {
            emit!(self, "mov.u32 %wt_tl, %wt_cl;");
            emit!(self, "mov.u32 %wt_th, %wt_ch;");
        } else {
            self.clock("%wt_tl", "%wt_th");
        }
        emit!(self, "mov.u32 %wt_m, %wt_a;");
        emit!(self, "mov.u32 %wt_k, {};", key | count);
        self.store(Pair::Record, "%wt_m", "%wt_k");
        self.store(Pair::Time, "%wt_tl", "%wt_th");
        self.place_label(&done);
        if self.style.dual {
            self.twin_event(location, count);
        }
    }

    /// Whether an event at a location asks for full segments together with the question whether it repeats. Where most events begin
    /// a run, that is a vote's latency less; where most repeat one, two instructions more.
    fn asks_early(&self, location: u16) -> bool {
        self.style.placement == Placement::Registers && self.style.hot != Some(location)
    }

    /// Asks whether any lane's segment is full: `%wt_g`; the lane's own is in `%wt_p1`.
    fn ask_full(&mut self, log: Log) {
        emit!(self, "setp.eq.u32 %wt_p1, {}, {};", log.low, log.link);
        self.vote("any", "%wt_g", "%wt_p1");
    }

    /// Appends the run that the lane is in to its log, if it is the one that keeps it. The record is used up.
    ///
    /// `asked`: whether `ask_full` has been asked already.
    fn end_run(&mut self, asked: bool) {
        self.load(Pair::Time, "%wt_tl", "%wt_th");
        emit!(self, "and.b32 %wt_x0, %wt_m, %wt_lt;");
        emit!(self, "setp.eq.u32 %wt_w, %wt_x0, 0;");
        if self.style.counts_loops {
            emit!(self, "setp.ne.and.u32 %wt_w, %wt_k, 0, %wt_w;");
        }
        if let Some(hot) = self.style.hot {
            let back = (u32::from(hot) << 16).wrapping_sub(HOT_KEY);
            emit!(self, "setp.lt.s32 %wt_p0, %wt_k, 0;");
            emit!(self, "@%wt_p0 add.u32 %wt_k, %wt_k, {back};");
        }
        self.append(TRACE, RECORD, asked);
    }

    /// Records events on the twin's track: of the lanes of `%wt_a`, at the time in `%wt_cl`, `%wt_ch`.
    fn twin_event(&mut self, location: u16, count: u32) {
        let key = u32::from(location) << 16 | count;
        emit!(self, "and.b32 %wt_x0, %wt_a, %wt_lt;");
        emit!(self, "setp.eq.u32 %wt_w, %wt_x0, 0;");
        emit!(self, "mov.u32 %wt_tk, {key};");
        self.append(TWIN, ["%wt_a", "%wt_tk", "%wt_cl", "%wt_ch"], false);
    }

    /// Appends an entry to the log of each lane for which `%wt_w` holds. All lanes that are here take part. `asked`: see `end_run`.
    fn append(&mut self, log: Log, words: Words, asked: bool) {
        let (full, room) = (self.label(), self.label());
        self.load_log(log);
        if !asked {
            self.ask_full(log);
        }
        emit!(self, "@%wt_g bra {full};");
        self.place_label(&room);
        let before = std::mem::take(&mut self.out);
        self.place_label(&full);
        self.claim(log, words);
        emit!(self, "bra {room};");
        let claim = std::mem::replace(&mut self.out, before);
        self.rare.push_str(&claim);
        emit!(self, "mov.b64 %wt_l, {{{}, {}}};", log.low, log.high);
        emit!(self, "@%wt_w st.global.v4.b32 [%wt_l], {{{}}};", words.join(", "));
        emit!(self, "@%wt_w add.u32 {low}, {low}, {ENTRY_BYTES};", low = log.low);
        self.store_word("@%wt_w ", log.pointer, 0, log.low);
    }

    /// Gives each lane for which `%wt_p1` holds another segment. Where memory is used up, the log is stopped, and what its lane
    /// keeps is counted as lost: `%wt_w` no longer holds then.
    ///
    /// A log that has been stopped stays at its link, with the lowest bit set in both addresses. The link has, beside the 0 in its
    /// first word, the lost events (words 1 and 3) and the time of the first one, with the lowest bit set (word 2).
    fn claim(&mut self, log: Log, words: Words) {
        emit!(self, "and.b32 %wt_x2, {}, 1;", log.link);
        emit!(self, "setp.eq.and.u32 %wt_p2, %wt_x2, 0, %wt_p1;");
        emit!(self, "xor.b32 %wt_x2, {}, %wt_x2;", log.link);
        emit!(self, "mov.b64 %wt_l, {{%wt_x2, {}}};", log.high);
        self.claim_entries();
        emit!(self, "@%wt_p3 st.global.b32 [%wt_l], %wt_x0;");
        emit!(self, "@%wt_p3 mov.b64 {{{}, {}}}, %wt_y1;", log.low, log.high);
        emit!(self, "@%wt_p3 cvt.u32.u64 {}, %wt_y2;", log.link);
        // Stopped are those who asked for a segment and got none.
        emit!(self, "not.pred %wt_p3, %wt_p3;");
        emit!(self, "and.pred %wt_p2, %wt_p2, %wt_p3;");
        emit!(self, "@%wt_p2 or.b32 {low}, {low}, 1;", low = log.low);
        emit!(self, "@%wt_p2 or.b32 {link}, {link}, 1;", link = log.link);
        self.store(log.pointer, log.low, log.high);
        self.store_word("", log.end, 0, log.link);
        self.lose(words);
    }

    /// Claims a segment for each lane for which `%wt_p2` holds: `%wt_p3` says whether there is one, `%wt_x0` is the index of its
    /// first entry, `%wt_y1` its address, `%wt_y2` that of its link.
    fn claim_entries(&mut self) {
        let again = self.label();
        let own_loop = self.style.claim == Claim::OwnLoop;
        if own_loop {
            self.place_label(&again);
        }
        self.field(32, "%wt_x1", field::SEGMENT_ENTRIES);
        emit!(self, "cvt.u64.u32 %wt_y0, %wt_x1;");
        self.field(64, "%wt_y2", field::CLAIMS);
        emit!(self, "mov.u64 %wt_y1, 0;");
        emit!(self, "@%wt_p2 atom.global.add.u64 %wt_y1, [%wt_y2], %wt_y0;");
        if own_loop {
            // The counter never is so large; the assembler does not know.
            emit!(self, "setp.eq.u64 %wt_p3, %wt_y1, -1;");
            self.vote("any", "%wt_p3", "%wt_p3");
            emit!(self, "@%wt_p3 bra {again};");
        }
        self.field(32, "%wt_x0", field::CLAIMS_FROM);
        emit!(self, "cvt.u64.u32 %wt_y2, %wt_x0;");
        emit!(self, "add.u64 %wt_y1, %wt_y1, %wt_y2;");
        emit!(self, "add.u64 %wt_y0, %wt_y0, %wt_y1;");
        self.field(32, "%wt_x0", field::CLAIMS_END);
        emit!(self, "cvt.u64.u32 %wt_y2, %wt_x0;");
        emit!(self, "setp.le.and.u64 %wt_p3, %wt_y0, %wt_y2, %wt_p2;");
        emit!(self, "cvt.u32.u64 %wt_x0, %wt_y1;");
        self.field(64, "%wt_y3", field::LOGS);
        emit!(self, "mad.wide.u32 %wt_y1, %wt_x0, {ENTRY_BYTES}, %wt_y3;");
        emit!(self, "sub.u32 %wt_x1, %wt_x1, 1;");
        emit!(self, "mad.wide.u32 %wt_y2, %wt_x1, {ENTRY_BYTES}, %wt_y1;");
    }

    /// Counts the entry as lost where `%wt_p1` and `%wt_p3` hold, for "is full" and "has no room", if the lane keeps it. `%wt_p2` says
    /// that the log has just been stopped; `%wt_l` is the address of the link.
    fn lose(&mut self, [_, key, time_low, time_high]: Words) {
        let none = self.label();
        emit!(self, "and.pred %wt_p1, %wt_p1, %wt_p3;");
        self.vote("any", "%wt_r", "%wt_p1");
        emit!(self, "@!%wt_r bra {none};");
        self.lines(&["mov.u32 %wt_x1, 0;", "mov.u32 %wt_x2, 0;", "mov.u32 %wt_x3, 0;"]);
        emit!(self, "not.pred %wt_p3, %wt_p2;");
        emit!(self, "and.pred %wt_p3, %wt_p3, %wt_p1;");
        emit!(self, "@%wt_p3 ld.global.v4.b32 {{%wt_x0, %wt_x1, %wt_x2, %wt_x3}}, [%wt_l];");
        // Only what the lane keeps.
        emit!(self, "and.pred %wt_p4, %wt_p1, %wt_w;");
        emit!(self, "and.b32 %wt_x0, {key}, {MAX_KEY_COUNT};");
        emit!(self, "selp.u32 %wt_x0, %wt_x0, 0, %wt_p4;");
        emit!(self, "cvt.u64.u32 %wt_y0, %wt_x0;");
        emit!(self, "mov.b64 %wt_y1, {{%wt_x1, %wt_x3}};");
        emit!(self, "add.u64 %wt_y0, %wt_y0, %wt_y1;");
        emit!(self, "mov.b64 {{%wt_x1, %wt_x3}}, %wt_y0;");
        // The first one's time stays.
        emit!(self, "setp.eq.and.u32 %wt_p4, %wt_x2, 0, %wt_p4;");
        emit!(self, "mov.b64 %wt_y1, {{{time_low}, {time_high}}};");
        emit!(self, "shr.u64 %wt_y1, %wt_y1, {TIME_SHIFT};");
        emit!(self, "cvt.u32.u64 %wt_x0, %wt_y1;");
        emit!(self, "@%wt_p4 or.b32 %wt_x2, %wt_x0, 1;");
        emit!(self, "mov.u32 %wt_x0, 0;");
        emit!(self, "@%wt_p1 st.global.v4.b32 [%wt_l], {{%wt_x0, %wt_x1, %wt_x2, %wt_x3}};");
        emit!(self, "not.pred %wt_p3, %wt_p1;");
        emit!(self, "and.pred %wt_w, %wt_w, %wt_p3;");
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
    /// it.
    pub(super) fn loop_leave(&mut self, location: u16) {
        emit!(self, "activemask.b32 %wt_a;");
        self.load(Pair::Record, "%wt_m", "%wt_k");
        self.end_run(false);
        self.clock("%wt_tl", "%wt_th");
        self.find_run(location);
        self.append_iterations(location);
        self.no_run();
        self.store(Pair::Record, "%wt_m", "%wt_k");
        self.loop_enter(location);
    }

    /// Finds the lane's run of a counted loop: the lanes with as many iterations or more (`%wt_m`), whether it keeps the run
    /// (`%wt_p5`), its length (`%wt_x8`) and time. Times differ by a unit from one run to the next: finding them takes longer than
    /// that, so the lanes' next events are later still.
    fn find_run(&mut self, location: u16) {
        let (found, again) = (self.label(), self.label());
        let iterations = format!("%wt_n{location}");
        // Most groups iterated equally often.
        emit!(self, "bfind.u32 %wt_x1, %wt_a;");
        self.shuffle("%wt_x2", &iterations, "%wt_x1");
        emit!(self, "setp.eq.u32 %wt_p0, %wt_x2, {iterations};");
        self.vote("all", "%wt_r", "%wt_p0");
        // Lanes with as many or more; those with as many; the next smaller number; how many lanes have fewer.
        self.lines(&[
            "mov.u32 %wt_m, %wt_a;",
            "mov.u32 %wt_x4, %wt_a;",
            "mov.u32 %wt_x5, 0;",
            "mov.u32 %wt_x6, 0;",
        ]);
        emit!(self, "@%wt_r bra {found};");
        self.lines(&["mov.u32 %wt_m, 0;", "mov.u32 %wt_x4, 0;", "mov.u32 %wt_x0, %wt_a;"]);
        self.place_label(&again);
        emit!(self, "bfind.u32 %wt_x1, %wt_x0;");
        self.shuffle("%wt_x2", &iterations, "%wt_x1");
        emit!(self, "shl.b32 %wt_x1, 1, %wt_x1;");
        emit!(self, "xor.b32 %wt_x0, %wt_x0, %wt_x1;");
        emit!(self, "setp.ge.u32 %wt_p0, %wt_x2, {iterations};");
        emit!(self, "setp.eq.u32 %wt_p1, %wt_x2, {iterations};");
        emit!(self, "@%wt_p0 or.b32 %wt_m, %wt_m, %wt_x1;");
        emit!(self, "@%wt_p1 or.b32 %wt_x4, %wt_x4, %wt_x1;");
        emit!(self, "@!%wt_p0 max.u32 %wt_x5, %wt_x5, %wt_x2;");
        emit!(self, "@!%wt_p0 add.u32 %wt_x6, %wt_x6, 1;");
        emit!(self, "setp.ne.u32 %wt_p0, %wt_x0, 0;");
        self.vote("any", "%wt_r", "%wt_p0");
        emit!(self, "@%wt_r bra {again};");
        self.place_label(&found);
        emit!(self, "and.b32 %wt_x0, %wt_x4, %wt_lt;");
        emit!(self, "setp.eq.u32 %wt_p5, %wt_x0, 0;");
        emit!(self, "sub.u32 %wt_x8, {iterations}, %wt_x5;");
        emit!(self, "mov.b64 %wt_c, {{%wt_tl, %wt_th}};");
        emit!(self, "mad.wide.u32 %wt_c, %wt_x6, {}, %wt_c;", 1 << TIME_SHIFT);
        emit!(self, "mov.b64 {{%wt_tl, %wt_th}}, %wt_c;");
    }

    /// Appends the run that `find_run` has found, in as many entries as its length takes, to the logs of its keeper.
    fn append_iterations(&mut self, location: u16) {
        let piece = self.label();
        self.place_label(&piece);
        emit!(self, "min.u32 %wt_k, %wt_x8, {MAX_KEY_COUNT};");
        emit!(self, "sub.u32 %wt_x8, %wt_x8, %wt_k;");
        emit!(self, "or.b32 %wt_k, %wt_k, {};", u32::from(location) << 16);
        for log in self.logs() {
            emit!(self, "and.b32 %wt_x0, %wt_k, {MAX_KEY_COUNT};");
            emit!(self, "setp.ne.and.u32 %wt_w, %wt_x0, 0, %wt_p5;");
            self.append(*log, RECORD, false);
        }
        emit!(self, "setp.ne.u32 %wt_p0, %wt_x8, 0;");
        self.vote("any", "%wt_r", "%wt_p0");
        emit!(self, "@%wt_r bra {piece};");
    }

    /// Ends the lane's logs, before it leaves the kernel.
    pub(super) fn epilogue(&mut self) {
        emit!(self, "activemask.b32 %wt_a;");
        self.load(Pair::Record, "%wt_m", "%wt_k");
        self.end_run(false);
        self.warp_in_launch();
        self.field(32, "%wt_x5", field::FIRST_ENTRIES);
        for log in self.logs() {
            self.load_log(*log);
            self.head(*log);
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
        let whole = self.label();
        self.slice(log.track, "%wt_x6");
        self.field(64, "%wt_y3", field::LOGS);
        emit!(self, "mad.wide.u32 %wt_y0, %wt_x6, {ENTRY_BYTES}, %wt_y3;");
        emit!(self, "mad.wide.u32 %wt_y0, %wt_x1, {HEAD_BYTES}, %wt_y0;");
        emit!(self, "mov.u32 %wt_x7, 0;");
        // A log that has been stopped has something to say.
        emit!(self, "and.b32 %wt_x2, {}, 1;", log.link);
        emit!(self, "setp.ne.u32 %wt_p0, %wt_x2, 0;");
        self.vote("any", "%wt_r", "%wt_p0");
        emit!(self, "@!%wt_r bra {whole};");
        emit!(self, "xor.b32 %wt_x2, {}, %wt_x2;", log.link);
        emit!(self, "mov.b64 %wt_l, {{%wt_x2, {}}};", log.high);
        self.lines(&["mov.u32 %wt_x2, 0;", "mov.u32 %wt_x3, 0;"]);
        emit!(self, "@%wt_p0 ld.global.v4.b32 {{%wt_x6, %wt_x2, %wt_x7, %wt_x3}}, [%wt_l];");
        emit!(self, "mov.b64 %wt_y1, {{%wt_x2, %wt_x3}};");
        emit!(self, "setp.ne.u64 %wt_p0, %wt_y1, 0;");
        self.field(64, "%wt_y2", field::ACCOUNTS);
        emit!(self, "mad.wide.u32 %wt_y2, %wt_x4, {ACCOUNT_BYTES}, %wt_y2;");
        emit!(self, "@%wt_p0 red.global.add.u64 [%wt_y2], %wt_y1;");
        emit!(self, "@%wt_p0 red.global.add.u64 [%wt_y2+{ACCOUNT_LOST}], %wt_y1;");
        self.place_label(&whole);
        // The index of the entry after the last one.
        emit!(self, "mov.b64 %wt_l, {{{}, {}}};", log.low, log.high);
        emit!(self, "sub.u64 %wt_l, %wt_l, %wt_y3;");
        emit!(self, "shr.u64 %wt_l, %wt_l, {};", ENTRY_BYTES.ilog2());
        emit!(self, "cvt.u32.u64 %wt_x6, %wt_l;");
        emit!(self, "st.global.v2.b32 [%wt_y0], {{%wt_x6, %wt_x7}};");
    }
}
