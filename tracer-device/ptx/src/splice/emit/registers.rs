//! Registers of the sequences. A register's type includes its width, so passing another width to a function
//! does not compile. Within the text of an instruction, only the assembler checks widths. State that a lane
//! keeps between sequences has dedicated registers. [`X`], [`Y`] and [`P`] are free at the start of each
//! sequence: functions name the ones they use, take the registers of their operands and return the registers
//! of their results. A result is valid until the next function that uses its register.

use std::fmt::{Display, Formatter, Result};

use warptrace_abi::recording::{Recording, Spaces};

use crate::splice::state::Pair;

/// A register of `BITS` bits, displayed in PTX syntax. A predicate has one bit.
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

/// Registers that form one operand, lowest word first: `{%wt_tl, %wt_th}`.
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

/// The lane's current run: mask, key (location and count), and the clock at its start.
pub(super) const MASK: R32 = Register::named("%wt_m");
pub(super) const KEY: R32 = Register::named("%wt_k");
pub(super) const TIME: Vector<2> = Vector([Register::named("%wt_tl"), Register::named("%wt_th")]);
pub(super) const RECORD: Vector<4> = Vector([MASK, KEY, TIME.0[0], TIME.0[1]]);
pub(super) const LANES_BELOW: R32 = Register::named("%wt_lt");
/// Address of the lane's state in shared memory.
pub(super) const STATE: R32 = Register::named("%wt_s");
/// The active lanes, which take part in votes.
pub(super) const ACTIVE: R32 = Register::named("%wt_a");
/// Key and time of an event for the raw shadow.
pub(super) const SHADOW_KEY: R32 = Register::named("%wt_tk");
pub(super) const NOW: Vector<2> = Vector([Register::named("%wt_cl"), Register::named("%wt_ch")]);

/// Results of votes: general; whether any lane's segment is full.
pub(super) const VOTE: Pred = Register::named("%wt_r");
pub(super) const ANY_FULL: Pred = Register::named("%wt_g");
pub(super) const WRITES: Pred = Register::named("%wt_w");
/// An address in a log; the clock; scratch of [`Emitter::field`](super::Emitter::field).
pub(super) const AT: R64 = Register::named("%wt_l");
pub(super) const CLOCK: R64 = Register::named("%wt_c");
pub(super) const FIELD: R32 = Register::named("%wt_f");
/// Clock and global timer at the start of the epilogue.
pub(super) const END_CLOCK: R64 = Register::named("%wt_ec");
pub(super) const END_TIMER: R64 = Register::named("%wt_et");
pub(super) const X: [R32; 9] =
    Register::all(["%wt_x0", "%wt_x1", "%wt_x2", "%wt_x3", "%wt_x4", "%wt_x5", "%wt_x6", "%wt_x7", "%wt_x8"]);
pub(super) const Y: [R64; 4] = Register::all(["%wt_y0", "%wt_y1", "%wt_y2", "%wt_y3"]);
pub(super) const P: [Pred; 6] = Register::all(["%wt_p0", "%wt_p1", "%wt_p2", "%wt_p3", "%wt_p4", "%wt_p5"]);

/// Whether the lane leads the run that begins.
pub(super) const OPENS: Pred = P[5];

/// Additional registers of sites: an access, and the state of a lane's run.
pub(super) const D: [R32; 12] = Register::all([
    "%wt_d0", "%wt_d1", "%wt_d2", "%wt_d3", "%wt_d4", "%wt_d5", "%wt_d6", "%wt_d7", "%wt_d8", "%wt_d9",
    "%wt_d10", "%wt_d11",
]);
pub(super) const E: [R64; 4] = Register::all(["%wt_b0", "%wt_b1", "%wt_b2", "%wt_b3"]);
pub(super) const Q: [Pred; 6] = Register::all(["%wt_q0", "%wt_q1", "%wt_q2", "%wt_q3", "%wt_q4", "%wt_q5"]);

/// Iterations of a counted loop that are not recorded yet.
pub(super) fn iterations(location: u16) -> R32 {
    Register { name: "%wt_n", number: Some(location) }
}

#[derive(Clone, Copy)]
pub(super) struct Log {
    pub(super) low: R32,
    pub(super) high: R32,
    /// Lower half of the link's address; `high` is its upper half: segments cross no multiple of 4 GiB.
    pub(super) link: R32,
    pub(super) tag: R32,
    /// Memory locations of `low` and `high`, and of `link` and `tag`.
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
pub(super) const SHADOW: Log = Log {
    low: Register::named("%wt_ul"),
    high: Register::named("%wt_uh"),
    link: Register::named("%wt_ue"),
    tag: Register::named("%wt_g1"),
    next_pair: Pair::ShadowLog,
    link_pair: Pair::ShadowLink,
    track: 1,
};

/// The log of addresses and values. Its state is not kept in registers between sequences.
pub(super) const DATA: Log = Log {
    low: Register::named("%wt_vl"),
    high: Register::named("%wt_vh"),
    link: Register::named("%wt_ve"),
    // Unused: this log is never streamed.
    tag: Register::named("%wt_g2"),
    next_pair: Pair::DataLog,
    link_pair: Pair::DataLink,
    track: 1,
};
const _: () = assert!(matches!(Recording { data: Spaces::ALL, ..Recording::DEFAULT }.data_track(), Some(1)));

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
