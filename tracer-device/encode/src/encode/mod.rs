//! Encodes stretches of merged runs into the chunks that wait for them.

pub(crate) mod cooperative;
mod encoder;
pub(crate) mod serial;
mod stream;
pub(crate) mod times;

pub(crate) use encoder::Encoder;
pub use serial::serial_shared_bytes;
pub(crate) use serial::{encode_all, state_bytes};
