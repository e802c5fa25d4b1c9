//! Errors of decoding columns.

/// Error of decoding a column: it is damaged or has another element type. Other columns decode without it.
/// Offsets are in bytes from the start of the [`ColumnCursor`](crate::ColumnCursor).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ColumnError {
    /// The column ends inside a field.
    #[error("the {field} at offset {offset} need {needed} bytes, but {available} are left")]
    Short {
        /// Name of the field.
        field: &'static str,
        /// Start of the field.
        offset: usize,
        /// Minimum bytes of the field.
        needed: usize,
        /// Bytes left.
        available: usize,
    },
    /// A field has an invalid value.
    #[error("the {field} at offset {offset} is {value}; it must be {expected}")]
    Invalid {
        /// Name of the field.
        field: &'static str,
        /// Start of the field.
        offset: usize,
        /// Value of the field.
        value: u64,
        /// Valid values.
        expected: &'static str,
    },
    /// The column announces more than its bytes can hold.
    #[error("the {field} at offset {offset} is {value}; there can be at most {limit}")]
    TooMany {
        /// Name of the field.
        field: &'static str,
        /// Start of the field.
        offset: usize,
        /// Value of the field.
        value: u64,
        /// Maximum value.
        limit: u64,
    },
    /// The column has elements of another width.
    #[error("the column has elements of {found} bits, not of {expected}")]
    Width {
        /// Bits of the column's elements.
        found: u32,
        /// Bits of the requested elements.
        expected: u32,
    },
    /// The zero runs of a column do not match the announced number of values.
    #[error("element {element} of the column's zero runs: {problem}")]
    ZeroRun {
        /// Number of the element, from 0.
        element: usize,
        /// Description of the problem.
        problem: &'static str,
    },
}
