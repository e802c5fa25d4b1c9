//! What a column's values are predicted from.

/// The largest order of differences.
pub const MAX_ORDER: usize = 8;
/// The largest tuple.
pub const MAX_TUPLE: usize = 8;

/// Order of differences and size of tuples.
///
/// Element i's predecessor is element i - `tuple`; there is a 0 in front of the first ones. A column of pairs
/// (x, y) has tuples of size 2, so that each x is predicted from the x before. Differences of order q are
/// taken q times: of order 0 they are the values, of order 1 steps, of order 2 changes of steps.
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

    /// How often differences are taken, 0 to [`MAX_ORDER`].
    pub const fn order(self) -> usize {
        self.order as usize
    }

    /// Elements of a tuple, 1 to [`MAX_TUPLE`].
    pub const fn tuple(self) -> usize {
        self.tuple as usize
    }
}
