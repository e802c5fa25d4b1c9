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

    const fn numbered<const COUNT: usize>(name: &'static str) -> [Self; COUNT] {
        let mut all = [Self { name, number: None }; COUNT];
        let mut at = 0;
        while at < COUNT {
            all[at].number = Some(at as u16);
            at += 1;
        }
        all
    }
}

impl<const BITS: u32> Display for Register<BITS> {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        write!(out, "%wt_{}", self.name)?;
        self.number.map_or(Ok(()), |number| write!(out, "{number}"))
    }
}

/// Registers that are one operand, from the lowest word on: `{%wt_tl, %wt_th}`.
#[derive(Clone, Copy)]
pub(super) struct Vector<const WORDS: usize>(pub(super) [R32; WORDS]);

impl<const WORDS: usize> Display for Vector<WORDS> {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        for (at, word) in self.0.iter().enumerate() {
            write!(out, "{}{word}", if at == 0 { "{" } else { ", " })?;
        }
        out.write_str("}")
    }
}

/// The run that the lane is in: mask, key (location and count), and the clock when it began.
pub(super) const MASK: R32 = Register::named("m");
pub(super) const KEY: R32 = Register::named("k");
pub(super) const TIME: Vector<2> = Vector([Register::named("tl"), Register::named("th")]);
pub(super) const RECORD: Vector<4> = Vector([MASK, KEY, TIME.0[0], TIME.0[1]]);
/// The lanes below this one.
pub(super) const LANES_BELOW: R32 = Register::named("lt");
/// The address of the lane's state in shared memory.
pub(super) const STATE: R32 = Register::named("s");
/// The lanes that are here, and take part in votes.
pub(super) const ACTIVE: R32 = Register::named("a");
/// What the raw shadow records of an event: its key and its time.
pub(super) const SHADOW_KEY: R32 = Register::named("tk");
pub(super) const NOW: Vector<2> = Vector([Register::named("cl"), Register::named("ch")]);

/// Results of votes: of most; whether any lane's segment is full.
pub(super) const VOTE: Pred = Register::named("r");
pub(super) const ANY_FULL: Pred = Register::named("g");
/// Whether the lane writes an entry.
pub(super) const WRITES: Pred = Register::named("w");
/// An address in a log; the clock; what [`Emitter::field`](super::Emitter::field) needs.
pub(super) const AT: R64 = Register::named("l");
pub(super) const CLOCK: R64 = Register::named("c");
pub(super) const FIELD: R32 = Register::named("f");
/// The clock and the global timer when lanes began to leave the kernel.
pub(super) const END_CLOCK: R64 = Register::named("ec");
pub(super) const END_TIMER: R64 = Register::named("et");
pub(super) const X: [R32; 9] = Register::numbered("x");
pub(super) const Y: [R64; 4] = Register::numbered("y");
pub(super) const P: [Pred; 6] = Register::numbered("p");

/// What sites use beside the registers above: an access, and what becomes of a lane's run.
pub(super) const D: [R32; 12] = Register::numbered("d");
pub(super) const E: [R64; 4] = Register::numbered("b");
pub(super) const Q: [Pred; 6] = Register::numbered("q");

/// The iterations of a counted loop that were not recorded yet.
pub(super) fn iterations(location: u16) -> R32 {
    Register { name: "n", number: Some(location) }
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
    low: Register::named("pl"),
    high: Register::named("ph"),
    link: Register::named("e"),
    tag: Register::named("g0"),
    next_pair: Pair::Log,
    link_pair: Pair::Link,
    track: 0,
};
/// The log of the raw shadow.
pub(super) const SHADOW: Log = Log {
    low: Register::named("ul"),
    high: Register::named("uh"),
    link: Register::named("ue"),
    tag: Register::named("g1"),
    next_pair: Pair::ShadowLog,
    link_pair: Pair::ShadowLink,
    track: 1,
};

/// The log of addresses and values, which has no register from one sequence to the next.
pub(super) const DATA: Log = Log {
    low: Register::named("vl"),
    high: Register::named("vh"),
    link: Register::named("ve"),
    // It is never streamed.
    tag: Register::named("g2"),
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
