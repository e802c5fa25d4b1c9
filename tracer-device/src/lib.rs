//! What a traced kernel calls.
#![cfg_attr(target_arch = "nvptx64", no_std)]
pub mod simt;
