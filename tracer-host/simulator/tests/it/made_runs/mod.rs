//! Runs of lanes, built by hand.

pub(crate) const LANES: usize = 32;

/// A run of a log. Its mask is unique.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MadeRun {
    pub(crate) mask: u32,
    pub(crate) location: u16,
    /// 0 for an entry that holds no run.
    pub(crate) count: u32,
    /// In units of 16 cycles, without wrapping.
    pub(crate) time: u64,
}

pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// In each lane, the first run begins after `start`, each further one 1 to `max_between` units later.
pub(crate) fn lanes(
    numbers: &mut Numbers,
    lengths: &[usize],
    start: u64,
    max_between: u64,
) -> Vec<Vec<MadeRun>> {
    let mut mask = 0;
    let mut lanes: Vec<Vec<_>> = lengths
        .iter()
        .map(|&length| {
            let mut time = start + numbers.below(max_between);
            let mut run = || {
                mask += 1;
                time += 1 + numbers.below(max_between);
                let (location, count) = (1 + numbers.below(255) as u16, 1 + numbers.below(9) as u32);
                MadeRun { mask, location, count, time }
            };
            (0..length).map(|_| run()).collect()
        })
        .collect();
    lanes.resize(LANES, Vec::new());
    lanes
}
