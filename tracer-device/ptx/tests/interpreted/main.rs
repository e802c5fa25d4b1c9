//! The recording sequences, interpreted: random programs of each lane, in random order, with little memory.

mod after;
mod case;
mod chosen;
mod data;
mod drainer;
mod foreign;
mod kernels;
mod logs;
mod memory;
mod model;
mod native;
mod program;
mod proven;
mod rings;
mod segments;
mod sequences;
mod spans;
mod streamed;
mod streams;
