//! `ecl`: CUT, then LZa2, then RLE, as the warp runs.
//!
//! Source: Azimi Moghaddam, "ECL-Tracer", MS thesis, Texas State University, 2017, chapters 4.2 to 4.4. The
//! exact rules are in `docs/reference/codecs.md`, what was tried before in `docs/contributors/decisions/ecl.md`.
//!
//! ```text
//! event ──CUT──> 5 bytes ──LZa2──> counts and literals ──RLE──> groups, in the chunk's payload
//! ```
//!
//! - [`lza2`]: both directions of the match stage; [`rle`]: both directions of the run stage.
//! - [`encoder`]: [`EclState`], what a warp runs: no allocation, a few accesses to memory a byte.
//! - [`decoder`]: [`EclDecoder`], which takes any bytes (feature `std`).
//! - [`mod@reference`]: the algorithm on whole buffers, naive on purpose (feature `std`).

#[cfg(feature = "std")]
pub mod decoder;
pub mod encoder;
pub mod lza2;
mod params;
#[cfg(feature = "std")]
pub mod reference;
pub mod rle;

#[cfg(feature = "std")]
pub use decoder::EclDecoder;
pub use encoder::EclState;
pub use params::EclParams;
