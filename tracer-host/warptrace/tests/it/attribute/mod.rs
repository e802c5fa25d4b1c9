//! What `#[kernels]` makes of modules, by that attribute alone, without this package's own.

mod kernels;
mod language;
mod support;
mod waits;
