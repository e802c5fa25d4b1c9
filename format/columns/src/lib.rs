//! Columns of integers that accompany the events of a trace: times, addresses, values.
//!
//! Encoding replaces values by differences of a chosen order ([`difference`], inverse [`scan`]), differences
//! by zigzag numbers, and runs of zeros by counts ([`zero_runs`]). It then packs the result with [`bits`] or
//! [`stream_vbyte`]. [`encode`] chooses the smallest layout and applies all steps; [`decode`] reverses them.
//!
//! # Column
//! ```text
//! offset  size  field
//!      0     1  bit 0: 0 for elements of 32 bits, 1 for 64; bits 1 to 4: order, 0 to 8;
//!               bits 5 to 7: tuple - 1
//!      1     1  bits 0 and 1: packing (0 plain, 1 Stream VByte, 2 bits); bit 2: zero runs; the others 0
//!      2        values, a varint
//!               elements, a varint, if there are zero runs
//!               packed elements
//! ```
//! `docs/reference/codecs.md` has all rules.
#![cfg_attr(not(feature = "std"), no_std)]

extern crate alloc;

pub mod bits;
mod column;
mod element;
mod error;
pub mod fuzzing;
mod header;
mod scan;
mod shape;
mod source;
pub mod stream_vbyte;
pub mod zero_runs;

pub use column::{decode, encode};
pub use element::Element;
pub use error::ColumnError;
pub use header::{Header, Layout, MAX_VALUES, Packing, VALUES_PER_BYTE};
pub use scan::{difference, scan};
pub use shape::{MAX_ORDER, MAX_TUPLE, Shape};
pub use source::ColumnCursor;
