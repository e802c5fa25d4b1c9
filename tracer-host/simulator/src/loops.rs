//! Which lanes are a round of a loop behind.
//!
//! Lowest point first is not enough for loops. In
//!
//! ```text
//! loop {                         loop {
//!     at(1);                         at(1);
//!     if odd { at(2) }           }
//! }                              at(2);
//! ```
//!
//! some lanes move from 1 back to 1 and others on to 2. On the left the others are a round behind and must go
//! first; on the right they have left the loop and must wait. Machine code would tell by the jump at the end
//! of the loop's body, but a simulated lane only stops at operations, and the sequences of operations are the
//! same in both programs. So the simulator looks at the source as rustfmt lays it out. A group that has
//! jumped back to point `q` waits for the lowest group above `q` in the file if that one is inside the loop,
//! that is
//! - it stands in a deeper column than `q`, or
//! - it stands in the same column, and this warp has seen a jump to `q` from there or from below;
//! - and no function starts between the two.
//!
//! A function starts where the kernel does, where lanes come from another file, and at a point that is
//! reached by nothing but jumps back: that is the call of a function that stands above its caller. Lanes that
//! come to a function's start from inside of it have left it and call it again: those behind them come first.
//!
//! Nothing of this is needed where `#[warptrace::kernels]` set the trace points: there lanes do stop at the end
//! of a loop's body (`WarpOp::Join`), and functions tell when they are entered, so the lowest point is right.
//!
//! A wrong guess costs convergence, never correctness: a warp's masks may be split, but each lane's own
//! sequence is what it is. What a warp has learned is its own, so the outcome does not depend on the order of
//! warps.

use std::cell::{Cell, RefCell};

use crate::site::{NO_POINT, column, file, is_join, is_structured};

/// How lanes came from one operation to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Move {
    /// Downwards in the file, or back to the file of a caller.
    On,
    /// To a loop's next round.
    Back,
    /// Into a function, or the kernel itself.
    Call,
}

/// The loops and functions that a warp has run through.
#[derive(Default)]
pub(crate) struct LoopTable {
    /// The points that were reached other than by a jump back.
    entered: PointSet,
    headers: RefCell<Vec<Header>>,
    /// First points of functions.
    functions: RefCell<Vec<u64>>,
}

/// Points: most of them where their hash says, the others in a list.
struct PointSet {
    /// 0 where there is none.
    table: [Cell<u64>; 1 << TABLE_BITS],
    others: RefCell<Vec<u64>>,
}

const TABLE_BITS: u32 = 7;

impl Default for PointSet {
    fn default() -> Self {
        Self { table: [const { Cell::new(0) }; 1 << TABLE_BITS], others: RefCell::default() }
    }
}

impl PointSet {
    fn clear(&self) {
        self.table.iter().for_each(|slot| slot.set(0));
        self.others.borrow_mut().clear();
    }

    #[inline]
    fn slot(&self, point: u64) -> &Cell<u64> {
        &self.table[(point.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - TABLE_BITS)) as usize]
    }

    #[inline]
    fn contains(&self, point: u64) -> bool {
        match self.slot(point).get() {
            0 => false,
            found => found == point || self.others.borrow().contains(&point),
        }
    }

    #[inline]
    fn insert(&self, point: u64) {
        let slot = self.slot(point);
        match slot.get() {
            0 => slot.set(point),
            found if found == point => {}
            _ => {
                let mut others = self.others.borrow_mut();
                if !others.contains(&point) {
                    others.push(point);
                }
            }
        }
    }
}

#[derive(Clone, Copy)]
struct Header {
    point: u64,
    /// The highest point from which lanes have jumped to the header.
    extent: u64,
}

impl LoopTable {
    /// Forgets everything, for the next block.
    pub(crate) fn clear(&self) {
        self.entered.clear();
        self.headers.borrow_mut().clear();
        self.functions.borrow_mut().clear();
    }

    /// Notes that lanes moved from `from` (0 at the kernel's start) to `to`. Noting a move twice changes
    /// nothing. After a [`Move::Call`] the lowest `to` of the lanes that moved together is a function's
    /// start.
    #[inline]
    pub(crate) fn note(&self, from: u64, to: u64) -> Move {
        if is_structured(to) {
            return Move::On;
        }
        let same_file = from != 0 && file(to) == file(from);
        let call = if same_file { to < from && !self.entered.contains(to) } else { from == 0 || to < from };
        if !(call && same_file) {
            self.entered.insert(to);
        }
        if call && !self.is_called_again(from, to) {
            return Move::Call;
        }
        if to > from || is_join(from) {
            return Move::On;
        }
        let mut headers = self.headers.borrow_mut();
        match headers.iter_mut().find(|header| header.point == to) {
            Some(header) => header.extent = header.extent.max(from),
            None => headers.push(Header { point: to, extent: from }),
        }
        Move::Back
    }

    /// Whether lanes that come from inside of a function have left it and call it again: as in a loop, those
    /// that are still in it come first.
    fn is_called_again(&self, from: u64, to: u64) -> bool {
        let functions = self.functions.borrow();
        to < from && functions.contains(&to) && !functions.iter().any(|&start| to < start && start <= from)
    }

    /// Notes that a function starts at `point`.
    #[cold]
    pub(crate) fn note_function(&self, point: u64) {
        let mut functions = self.functions.borrow_mut();
        if !functions.contains(&point) {
            functions.push(point);
        }
    }

    /// Whether `point`, which is above `header`, is inside the loop to whose start lanes have jumped back.
    pub(crate) fn contains(&self, header: u64, point: u64) -> bool {
        if point == NO_POINT || file(point) != file(header) || column(point) < column(header) {
            return false;
        }
        let learned = |known: &Header| known.point == header && point <= known.extent;
        (column(point) > column(header) || self.headers.borrow().iter().any(learned))
            && !self.functions.borrow().iter().any(|&start| header < start && start <= point)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A point in the first file.
    fn at(line: u64, column: u64) -> u64 {
        255 << 56 | 255 << 48 | line << 28 | column << 16
    }

    #[test]
    fn a_deeper_column_is_inside_and_a_shallower_one_is_not() {
        let loops = LoopTable::default();
        assert_eq!(loops.note(0, at(10, 9)), Move::Call);
        assert_eq!(loops.note(at(10, 9), at(10, 9)), Move::Back);
        assert!(loops.contains(at(10, 9), at(12, 13)));
        assert!(!loops.contains(at(10, 9), at(12, 5)));
        assert!(!loops.contains(at(10, 9), NO_POINT));
        assert!(!loops.contains(at(10, 9), at(12, 13) - (1 << 48)), "another file");
    }

    #[test]
    fn the_same_column_is_inside_up_to_where_jumps_have_come_from() {
        let loops = LoopTable::default();
        loops.note(0, at(9, 5));
        assert_eq!(loops.note(at(9, 5), at(10, 9)), Move::On);
        assert_eq!(loops.note(at(10, 9), at(10, 9)), Move::Back);
        assert!(!loops.contains(at(10, 9), at(12, 9)));
        loops.note(at(10, 9), at(14, 9));
        assert_eq!(loops.note(at(14, 9), at(10, 9)), Move::Back);
        assert!(loops.contains(at(10, 9), at(12, 9)));
        assert!(loops.contains(at(10, 9), at(14, 9)));
        assert!(!loops.contains(at(10, 9), at(15, 9)));
        loops.clear();
        assert!(!loops.contains(at(10, 9), at(12, 9)));
    }

    #[test]
    fn a_call_of_a_function_above_is_no_loop_and_its_loops_end_in_it() {
        let loops = LoopTable::default();
        assert_eq!(loops.note(0, at(100, 9)), Move::Call);
        loops.note_function(at(100, 9));
        assert_eq!(loops.note(at(100, 9), at(10, 5)), Move::Call);
        assert_eq!(loops.note(at(10, 5), at(110, 9)), Move::On, "the return");
        assert_eq!(loops.note(at(110, 9), at(10, 5)), Move::Call, "another call");
        assert_eq!(loops.note(at(10, 5), at(10, 5)), Move::Back, "a loop in it");
        assert!(loops.contains(at(10, 5), at(11, 9)));
        assert!(!loops.contains(at(10, 5), at(110, 9)), "the caller");
    }
}
