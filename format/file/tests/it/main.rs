//! All integration tests of this package, in one binary.

mod codec_corrupt;
mod codec_inputs;
mod codec_room;
mod codec_runs;
mod codec_streaming;
mod codec_vectors;
mod common;
mod items;
mod predict;
mod predict_vectors;
