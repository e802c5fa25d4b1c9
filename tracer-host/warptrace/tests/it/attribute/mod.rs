//! The output of `#[kernels]` for modules, using only that attribute.

mod kernels;
mod language;
mod support;
mod waits;
