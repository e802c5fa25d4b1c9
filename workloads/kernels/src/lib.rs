//! The traced kernels, one file each. The same source is compiled for `nvptx64` and for the simulator.
#![cfg_attr(target_arch = "nvptx64", no_std)]
#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx, asm_experimental_arch))]

pub mod dmr;
pub mod fault;
pub mod float4;
pub mod fractal;
pub mod hash;
pub mod matmul;
pub mod mis;
pub mod mst;
pub mod nbody;
pub mod stress;
pub mod triad;
