//! The registers of the sequences. A register's type is its width, so a function that is given another width
//! does not compile. What stands in the text of an instruction only the assembler checks.
//!
//! What a lane keeps from one sequence to the next has registers of its own. [`X`], [`Y`] and [`P`] are free
//! at the start of each sequence: functions name those they use, take the registers of their operands, and
//! return those of their results. A result is there until the next function that uses its register.

use std::fmt::{Display, Formatter, Result};

use warptrace_abi::recording::{Recording, Spaces};

use crate::splice::state::Pair;

/// A register of this many bits, displayed as it stands in PTX; a predicate has one bit.
#[derive(Clone, Copy)]
pub(super) struct Register<const BITS: u32> {
    name: &'static str,
    number: Option<u16>,
}

pub(super) type R32 = Register<32>;
pub(super) type R64 = Register<64>;
pub(super) type Pred = Register<1>;

impl<const BITS: u32> Register<BITS> {
    const fn named(name: &'static str) -> Self {
        Self { name, number: None }
    }

    const fn all<const COUNT: usize>(names: [&'static str; COUNT]) -> [Self; COUNT] {
        let mut all = [Self::named(""); COUNT];
        let mut at = 0;
        while at < COUNT {
            all[at].name = names[at];
            at += 1;
        }
        all
    }
}

impl<const BITS: u32> Display for Register<BITS> {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        out.write_str(self.name)?;
        self.number.map_or(Ok(()), |number| write!(out, "{number}"))
    }
}

/// Registers that are one operand, from the lowest word on: `{%wt_tl, %wt_th}`.
#[derive(Clone, Copy)]
pub(super) struct Vector<const WORDS: usize>(pub(super) [R32; WORDS]);

impl<const WORDS: usize> Display for Vector<WORDS> {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        for (at, word) in self.0.iter().enumerate() {
            out.write_str(if at == 0 { "{" } else { ", " })?;
            word.fmt(out)?;
        }
        out.write_str("}")
    }
}

/// The run that the lane is in: mask, key (location and count), and the clock when it began.
pub(super) const MASK: R32 = Register::named("%wt_m");
pub(super) const KEY: R32 = Register::named("%wt_k");
pub(super) const TIME: Vector<2> = Vector([Register::named("%wt_tl"), Register::named("%wt_th")]);
pub(super) const RECORD: Vector<4> = Vector([MASK, KEY, TIME.0[0], TIME.0[1]]);
/// The lanes below this one.
pub(super) const LANES_BELOW: R32 = Register::named("%wt_lt");
/// The address of the lane's state in shared memory.
pub(super) const STATE: R32 = Register::named("%wt_s");
/// The lanes that are here, and take part in votes.
pub(super) const ACTIVE: R32 = Register::named("%wt_a");
/// What the raw shadow records of an event: its key and its time.
pub(super) const SHADOW_KEY: R32 = Register::named("%wt_tk");
pub(super) const NOW: Vector<2> = Vector([Register::named("%wt_cl"), Register::named("%wt_ch")]);

/// Results of votes: of most; whether any lane's segment is full.
pub(super) const VOTE: Pred = Register::named("%wt_r");
pub(super) const ANY_FULL: Pred = Register::named("%wt_g");
/// Whether the lane writes an entry.
pub(super) const WRITES: Pred = Register::named("%wt_w");
/// An address in a log; the clock; what [`Emitter::field`](super::Emitter::field) needs.
pub(super) const AT: R64 = Register::named("%wt_l");
pub(super) const CLOCK: R64 = Register::named("%wt_c");
pub(super) const FIELD: R32 = Register::named("%wt_f");
/// The clock and the global timer when lanes began to leave the kernel.
pub(super) const END_CLOCK: R64 = Register::named("%wt_ec");
pub(super) const END_TIMER: R64 = Register::named("%wt_et");
pub(super) const X: [R32; 9] =
    Register::all(["%wt_x0", "%wt_x1", "%wt_x2", "%wt_x3", "%wt_x4", "%wt_x5", "%wt_x6", "%wt_x7", "%wt_x8"]);
pub(super) const Y: [R64; 4] = Register::all(["%wt_y0", "%wt_y1", "%wt_y2", "%wt_y3"]);
pub(super) const P: [Pred; 6] = Register::all(["%wt_p0", "%wt_p1", "%wt_p2", "%wt_p3", "%wt_p4", "%wt_p5"]);

/// Whether the lane leads the run that lanes begin.
pub(super) const OPENS: Pred = P[5];

/// What sites use beside the registers above: an access, and what becomes of a lane's run.
pub(super) const D: [R32; 12] = Register::all([
    "%wt_d0", "%wt_d1", "%wt_d2", "%wt_d3", "%wt_d4", "%wt_d5", "%wt_d6", "%wt_d7", "%wt_d8", "%wt_d9",
    "%wt_d10", "%wt_d11",
]);
pub(super) const E: [R64; 4] = Register::all(["%wt_b0", "%wt_b1", "%wt_b2", "%wt_b3"]);
pub(super) const Q: [Pred; 6] = Register::all(["%wt_q0", "%wt_q1", "%wt_q2", "%wt_q3", "%wt_q4", "%wt_q5"]);

/// The iterations of a counted loop that were not recorded yet.
pub(super) fn iterations(location: u16) -> R32 {
    Register { name: "%wt_n", number: Some(location) }
}

/// A log of the lane.
#[derive(Clone, Copy)]
pub(super) struct Log {
    /// The address of the next entry.
    pub(super) low: R32,
    pub(super) high: R32,
    /// The lower half of the link's address; segments do not cross a multiple of 4 GiB, so `high` is its
    /// upper half.
    pub(super) link: R32,
    /// A streamed log's tag.
    pub(super) tag: R32,
    /// Where `low` and `high`, and where `link` and `tag` are in memory.
    pub(super) next_pair: Pair,
    pub(super) link_pair: Pair,
    pub(super) track: u32,
}

impl Log {
    pub(super) const fn next(self) -> Vector<2> {
        Vector([self.low, self.high])
    }
}

pub(super) const TRACE: Log = Log {
    low: Register::named("%wt_pl"),
    high: Register::named("%wt_ph"),
    link: Register::named("%wt_e"),
    tag: Register::named("%wt_g0"),
    next_pair: Pair::Log,
    link_pair: Pair::Link,
    track: 0,
};
/// The log of the raw shadow.
pub(super) const SHADOW: Log = Log {
    low: Register::named("%wt_ul"),
    high: Register::named("%wt_uh"),
    link: Register::named("%wt_ue"),
    tag: Register::named("%wt_g1"),
    next_pair: Pair::ShadowLog,
    link_pair: Pair::ShadowLink,
    track: 1,
};

/// The log of addresses and values, which has no register from one sequence to the next.
pub(super) const DATA: Log = Log {
    low: Register::named("%wt_vl"),
    high: Register::named("%wt_vh"),
    link: Register::named("%wt_ve"),
    // It is never streamed.
    tag: Register::named("%wt_g2"),
    next_pair: Pair::DataLog,
    link_pair: Pair::DataLink,
    track: 1,
};
const _: () = assert!(matches!(Recording { data: Spaces::ALL, ..Recording::DEFAULT }.data_track(), Some(1)));

/// The registers of a pair of words of the lane's state.
pub(super) const fn registers_of(pair: Pair) -> Vector<2> {
    match pair {
        Pair::Record => Vector([MASK, KEY]),
        Pair::Time => TIME,
        Pair::Log => TRACE.next(),
        Pair::Link => Vector([TRACE.link, TRACE.tag]),
        Pair::ShadowLog => SHADOW.next(),
        Pair::ShadowLink => Vector([SHADOW.link, SHADOW.tag]),
        Pair::DataLog => DATA.next(),
        Pair::DataLink => Vector([DATA.link, DATA.tag]),
    }
}
