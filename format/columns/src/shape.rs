//! Order of differences and size of tuples.

/// Maximum order of differences.
pub const MAX_ORDER: usize = 8;
/// Maximum size of a tuple.
pub const MAX_TUPLE: usize = 8;

/// Order of differences and size of tuples. The predecessor of element i is element i - `tuple`; the first
/// elements have the predecessor 0. A column of pairs (x, y) has tuples of size 2, so that each x is
/// predicted from the previous x. Order 0 is the values, order 1 the steps, order 2 the changes of steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    order: u8,
    tuple: u8,
}

impl Shape {
    /// Returns the shape, if `order` is at most [`MAX_ORDER`] and `tuple` is 1 to [`MAX_TUPLE`].
    pub const fn new(order: usize, tuple: usize) -> Option<Self> {
        if order > MAX_ORDER || tuple == 0 || tuple > MAX_TUPLE {
            return None;
        }
        Some(Self { order: order as u8, tuple: tuple as u8 })
    }

    /// Returns the order of differences, 0 to [`MAX_ORDER`].
    pub const fn order(self) -> usize {
        self.order as usize
    }

    /// Returns the elements of a tuple, 1 to [`MAX_TUPLE`].
    pub const fn tuple(self) -> usize {
        self.tuple as usize
    }
}
