//! `ecl`: CUT, then LZa2, then RLE, while the warp runs.
//!
//! Source: Azimi Moghaddam, "ECL-Tracer", MS thesis, Texas State University, 2017, chapters 4.2 to 4.4.
//! Rules: `docs/reference/codecs.md`; earlier attempts: `docs/contributors/decisions/ecl.md`.
//!
//! ```text
//! event ──CUT──> 5 bytes ──LZa2──> counts and literals ──RLE──> groups, in the chunk's payload
//! ```
//!
//! - [`lza2`]: the match stage; [`rle`]: the run stage.
//! - [`encoder`]: [`EclState`], which a warp runs: no allocation, a few memory accesses per byte.
//! - [`decoder`]: [`EclDecoder`], which accepts any bytes (feature `std`).
//! - [`mod@reference`]: the algorithm on whole buffers, deliberately simple (feature `std`).

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
