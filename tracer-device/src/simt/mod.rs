//! SIMT operations.
#[cfg(not(target_arch = "nvptx64"))]
pub mod host;
