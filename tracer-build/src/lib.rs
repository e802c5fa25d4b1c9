//! Compiles a kernels crate to PTX from build.rs or a chore.
