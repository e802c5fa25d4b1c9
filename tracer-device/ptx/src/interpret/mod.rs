//! Interprets PTX: the opcodes of the recording sequences and of the small kernels around them.
//!
//! The sequences are tested with it where no GPU exists, so it is strict. Errors name the instruction: an
//! access that is misaligned or outside declared memory, a read of an unwritten register or byte, an unknown
//! opcode, a vote that names lanes elsewhere, and a divergent branch of a recording sequence.
//!
//! # Lanes and groups
//! Each lane has its registers and its call stack. A *group* is a set of lanes of one warp at the same
//! instruction, which execute it in lockstep. A group splits if a branch, a `ret` or a call leads its lanes
//! to different instructions. Groups of a warp can join only at the same label of the program, if the
//! [`Schedule`] decides so. So diverged lanes never join within a recording sequence, as on hardware, because
//! its own branches are uniform. The schedule also chooses which group of any warp of any block runs next,
//! and for how many instructions. A group that sleeps gets no turn until it wakes.
//!
//! # Time
//! A warp's clock advances with its own instructions, and at a barrier to the clock of the last warp. Its
//! initial value depends on the multiprocessor. `%globaltimer` advances by one nanosecond with each
//! instruction of any group. If all groups sleep, it advances to the time when the first one wakes.
//!
//! # The host
//! Between turns a host may read and write global memory ([`run_with_host`]). Host and lanes see all earlier
//! writes of each other.
//!
//! # Barriers and generic addresses
//! At `bar.sync` a group waits for all threads of its block that have not ended, or for the given number.
//! Groups do not join there. At an instruction that names lanes, a group waits for the named lanes that have
//! not ended, and joins them; in a recording sequence they must be active already. A generic address refers
//! to global memory, or to shared or local memory in an address window.
//!
//! # Limits
//! Results are rounded to nearest. Approximate instructions differ from a GPU's in the last bits. Not
//! supported: textures and surfaces, matrix instructions, copies by the tensor memory accelerator, barriers
//! in memory, `bar.red` and `bar.arrive`, and arithmetic with rounding modes other than to nearest.

mod address;
mod atomic;
mod collective;
mod compute;
mod decode;
mod error;
mod execute;
mod float;
#[cfg(test)]
mod foreign_tests;
mod initial;
mod machine;
mod memory;
mod observed;
mod op;
mod operand;
mod program;
mod random;
mod schedule;
#[cfg(test)]
mod tests;

pub use self::error::{Fault, InterpretError};
pub use self::machine::{CLOCKS_APART, Launch, run, run_with_host};
pub use self::memory::Memory;
pub use self::observed::{Access, Executions, MarkerEvent, Observed};
pub use self::program::Program;
pub use self::schedule::Schedule;
