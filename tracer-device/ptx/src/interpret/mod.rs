//! Interprets PTX: the opcodes of the recording sequences, and what small kernels around them need.
//!
//! It is how the sequences are tested where there is no GPU. So it is strict: an access outside declared
//! memory, a misaligned one, a read of a register or of a byte of shared or local memory that nothing wrote,
//! an opcode that it does not know, a vote that names lanes which are elsewhere, and a branch of a recording
//! sequence at which lanes diverge are errors that name the instruction.
//!
//! # Lanes and groups
//! Each lane has its registers and its stack of calls. A *group* is a set of lanes of one warp at the same
//! instruction, which execute it in lock step. Where a branch, a `ret` or a call leads lanes to different
//! instructions, the group splits. Groups of a warp can join only where they stand at the same label of the
//! program, if the [`Schedule`] wants that. So lanes that went separate ways never join within a recording
//! sequence, as on hardware: the sequences' own branches are uniform. The schedule also chooses whose turn it
//! is: any group of any warp of any block, for any number of instructions. A group that sleeps ends its turn
//! and has none until it wakes.
//!
//! # Time
//! A warp's clock advances with its own instructions, and at a barrier to that of the last warp; where it
//! begins depends on the multiprocessor. `%globaltimer` advances by a nanosecond with each instruction of any
//! group. Where all groups sleep, it goes on to when the first one wakes.
//!
//! # The host
//! Between turns a host may read and write global memory ([`run_with_host`]). It sees what has been executed
//! until then, and lanes see what it has written: nothing is on its way.
//!
//! # Barriers and generic addresses
//! At `bar.sync` a group waits until all threads of its block that have not ended do, or as many as it says.
//! Groups do not join there. At an instruction that names lanes a group waits for those of its warp that have
//! not ended, and joins them; in a recording sequence they must be here. A generic address is one of global
//! memory, or one of the block's shared or the thread's local memory above a window's start.
//!
//! # Numbers with a fraction
//! Results are the nearest numbers; what an instruction only approximates is the host's, not a GPU's to the
//! last bit.
//!
//! What the model leaves out: textures and surfaces, matrix instructions, copies by the tensor memory
//! accelerator and barriers in memory, `bar.red` and `bar.arrive`, rounding of arithmetic other than to the
//! nearest number.

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
