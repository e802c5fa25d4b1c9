//! The project's chores: `cargo xtask help`.
fn main() {}
