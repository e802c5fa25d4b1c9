//! The `warptrace` tool.
fn main() {}
