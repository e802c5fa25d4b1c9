//! Predictions for the runs of a site, which keep their columns small.
//!
//! Addresses are in *units*: 2^shift bytes from the site's least base. Arithmetic on units is modulo 2^64.

use warptrace_columns::Element;

use super::groups::{Group, lanes};
use crate::data::{LaneRun, Owner, lane_base};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Units {
    pub(super) least: u64,
    pub(super) shift: u32,
}

impl Units {
    pub(super) fn new(runs: &[LaneRun]) -> Self {
        let least = runs.iter().map(|run| run.base).min().unwrap_or(0);
        let bits = runs.iter().map(|run| run.base.wrapping_sub(least) | i64::from(run.step).cast_unsigned());
        let shift = bits.fold(0, |all, bits| all | bits).trailing_zeros();
        Self { least, shift: if shift == 64 { 0 } else { shift } }
    }

    /// Converts a run to units, rounded down.
    pub(super) fn run(self, run: LaneRun) -> UnitRun {
        let Self { least, shift } = self;
        let base = run.base.wrapping_sub(least) >> shift;
        UnitRun { base, step: (i64::from(run.step) >> shift).cast_unsigned(), count: run.count }
    }

    /// Converts a run to bytes. Returns `None` if its step exceeds 32 bits.
    pub(super) fn bytes(self, run: UnitRun) -> Option<LaneRun> {
        let Self { least, shift } = self;
        let step = i32::try_from(run.step.cast_signed().checked_mul(1i64.checked_shl(shift)?)?).ok()?;
        Some(LaneRun { base: least.wrapping_add(run.base << shift), step, count: run.count })
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct UnitRun {
    pub(super) base: u64,
    pub(super) step: u64,
    pub(super) count: u32,
}

impl UnitRun {
    fn nth(self, number: u32) -> u64 {
        self.base.wrapping_add(self.step.wrapping_mul(number.into()))
    }
}

/// Prediction of a base. The discriminants are the format's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BaseBy {
    /// No prediction: the base itself.
    Itself,
    /// Difference to the next access that the lane's previous run predicts; without such a run, as `Before`.
    Lane,
    /// Difference to the base of the previous run in the column.
    Before,
    /// Difference to the next access that the previous run in the column predicts.
    Behind,
    /// XOR with the last access of the lane's previous run; without one, with the previous run's base.
    Bits,
}

impl BaseBy {
    pub(super) const ALL: [Self; 5] = [Self::Itself, Self::Lane, Self::Before, Self::Behind, Self::Bits];
}

/// Prediction of a step, for runs of at least two accesses. The discriminants are the format's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StepBy {
    /// No prediction: the step itself.
    Itself,
    /// The second access.
    Second,
    /// Difference to the previous step in the column.
    Before,
    /// The second access XOR the base.
    Bits,
}

impl StepBy {
    pub(super) const ALL: [Self; 4] = [Self::Itself, Self::Second, Self::Before, Self::Bits];
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Whose {
    Lane(u32),
    /// All lanes of a mask, with the spread of their bases. The run is the lowest lane's.
    Affine(u32, i32),
    /// A group with unknown lanes.
    Unknown,
}

impl Whose {
    pub(super) const fn new(owner: Owner) -> Self {
        match owner {
            Owner::Lane(lane) => Self::Lane(lane),
            Owner::Group(_) => Self::Unknown,
        }
    }

    pub(super) fn of_group(group: &Group) -> impl Iterator<Item = Self> {
        let known = group.mask & !group.missing;
        let affine = group.spread.filter(|_| known != 0).map(|spread| Self::Affine(group.mask, spread));
        let each = if group.spread.is_some() { 0 } else { known };
        affine.into_iter().chain(lanes(each).map(Self::Lane))
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Known {
    lanes: [UnitRun; 32],
    has_run: u32,
    affine: Affine,
    before: UnitRun,
    step: u64,
}

/// Last run of an affine group. The runs of its lanes are computed on demand, which is rare.
#[derive(Clone, Copy, Debug, Default)]
struct Affine {
    lanes: u32,
    mask: u32,
    spread: i32,
    run: UnitRun,
    units: Units,
}

impl Affine {
    fn unit_run(&self, lane: u32) -> UnitRun {
        let Self { mask, spread, run, units, .. } = *self;
        let lowest = units.least.wrapping_add(run.base << units.shift);
        let base = lane_base(mask, lowest, spread, lane).unwrap_or(lowest);
        UnitRun { base: base.wrapping_sub(units.least) >> units.shift, ..run }
    }
}

impl Known {
    pub(super) const fn next_warp(&mut self) {
        (self.has_run, self.affine.lanes) = (0, 0);
    }

    fn lane(&self, whose: Whose) -> Option<UnitRun> {
        let lane = match whose {
            Whose::Lane(lane) => lane % 32,
            Whose::Affine(mask, _) => mask.trailing_zeros() % 32,
            Whose::Unknown => return None,
        };
        if self.affine.lanes >> lane & 1 == 1 {
            return Some(self.affine.unit_run(lane));
        }
        (self.has_run >> lane & 1 == 1).then_some(self.lanes[lane as usize])
    }

    pub(super) fn base_residual(&self, by: BaseBy, whose: Whose, base: u64) -> u64 {
        match by {
            BaseBy::Itself => base,
            BaseBy::Bits => base ^ self.expected(by, whose),
            _ => base.wrapping_sub(self.expected(by, whose)).zigzag(),
        }
    }

    pub(super) fn base(&self, by: BaseBy, whose: Whose, residual: u64) -> u64 {
        match by {
            BaseBy::Itself => residual,
            BaseBy::Bits => residual ^ self.expected(by, whose),
            _ => self.expected(by, whose).wrapping_add(residual.unzigzag()),
        }
    }

    fn expected(&self, by: BaseBy, whose: Whose) -> u64 {
        let lane = if matches!(by, BaseBy::Lane | BaseBy::Bits) { self.lane(whose) } else { None };
        match (by, lane) {
            (BaseBy::Lane, Some(run)) => run.nth(run.count),
            (BaseBy::Bits, Some(run)) => run.nth(run.count.wrapping_sub(1)),
            (BaseBy::Behind, _) => self.before.nth(self.before.count),
            _ => self.before.base,
        }
    }

    pub(super) fn step_residual(&self, by: StepBy, UnitRun { base, step, .. }: UnitRun) -> u64 {
        match by {
            StepBy::Itself => step.zigzag(),
            StepBy::Second => base.wrapping_add(step),
            StepBy::Before => step.wrapping_sub(self.step).zigzag(),
            StepBy::Bits => base.wrapping_add(step) ^ base,
        }
    }

    pub(super) const fn step(&self, by: StepBy, base: u64, residual: u64) -> u64 {
        let signed = residual >> 1 ^ (residual & 1).wrapping_neg();
        match by {
            StepBy::Itself => signed,
            StepBy::Second => residual.wrapping_sub(base),
            StepBy::Before => self.step.wrapping_add(signed),
            StepBy::Bits => (residual ^ base).wrapping_sub(base),
        }
    }

    pub(super) fn push(&mut self, whose: Whose, run: UnitRun, units: Units) {
        match whose {
            Whose::Lane(lane) => {
                let lane = lane % 32;
                self.lanes[lane as usize] = run;
                self.has_run |= 1 << lane;
                self.affine.lanes &= !(1 << lane);
            }
            Whose::Affine(mask, spread) => {
                let others = self.affine.lanes & !mask;
                for lane in lanes(others) {
                    self.lanes[lane as usize] = self.affine.unit_run(lane);
                }
                self.has_run |= others;
                self.affine = Affine { lanes: mask, mask, spread, run, units };
            }
            Whose::Unknown => {}
        }
        self.before = run;
        if run.count > 1 {
            self.step = run.step;
        }
    }
}

/// Estimate of a column's size: the bits of its numbers' bytes in an entropy code.
#[derive(Debug)]
pub(super) struct Estimate {
    bytes: [u32; 256],
    lengths: [u32; 9],
}

impl Estimate {
    pub(super) const fn new() -> Self {
        Self { bytes: [0; 256], lengths: [0; 9] }
    }

    pub(super) fn push(&mut self, number: u64) {
        let length = 8 - number.leading_zeros() as usize / 8;
        self.lengths[length] += 1;
        for byte in &number.to_le_bytes()[..length] {
            self.bytes[usize::from(*byte)] += 1;
        }
    }

    pub(super) fn bits(&self) -> f64 {
        let of = |counts: &[u32]| {
            let sum = f64::from(counts.iter().sum::<u32>());
            let bits = |&count: &u32| f64::from(count) * (sum / f64::from(count)).log2();
            counts.iter().filter(|count| **count > 0).map(bits).sum::<f64>()
        };
        of(&self.bytes) + of(&self.lengths)
    }
}
