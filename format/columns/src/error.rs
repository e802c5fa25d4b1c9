//! What can be wrong with the bytes of a column.

/// Why bytes are no column.
///
/// Offsets are in bytes from the start of the [`ColumnCursor`](crate::ColumnCursor). An error means that the column is
/// damaged, or is no column of this element: drop it; other columns decode without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ColumnError {
    /// The column ends inside a field.
    #[error("the {field} at offset {offset} need {needed} bytes, but {available} are left")]
    Short {
        /// Name of the field.
        field: &'static str,
        /// Where it starts.
        offset: usize,
        /// Bytes that it has at least.
        needed: usize,
        /// Bytes that are left.
        available: usize,
    },
    /// A field has a value that it cannot have.
    #[error("the {field} at offset {offset} is {value}; it must be {expected}")]
    Invalid {
        /// Name of the field.
        field: &'static str,
        /// Where it starts.
        offset: usize,
        /// Its value.
        value: u64,
        /// What it may be.
        expected: &'static str,
    },
    /// The column announces more than its bytes can hold.
    #[error("the {field} at offset {offset} is {value}; there can be at most {limit}")]
    TooMany {
        /// Name of the field.
        field: &'static str,
        /// Where it starts.
        offset: usize,
        /// Its value.
        value: u64,
        /// The most that it may be.
        limit: u64,
    },
    /// The column has elements of another width.
    #[error("the column has elements of {found} bits, not of {expected}")]
    Width {
        /// Bits of the column's elements.
        found: u32,
        /// Bits of the elements that were asked for.
        expected: u32,
    },
    /// The zero runs of a column are not those of the announced number of values.
    #[error("element {element} of the column's zero runs: {problem}")]
    ZeroRun {
        /// Number of the element, from 0.
        element: usize,
        /// What is wrong.
        problem: &'static str,
    },
}
