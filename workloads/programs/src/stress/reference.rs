//! CPU reference.
//!
//! A walk's path depends only on its own draws, but its results also on the other lanes of its warp, because
//! they take sides together. So the reference draws the steps of each walk, then computes results by warp.

use rayon::prelude::*;
use warptrace_kernels::stress::{BINS, CLIMB_STEPS, COUNTERS, at, draw, key, mix};

use super::{StressOptions, StressResult};

const WARP: u64 = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Pass(u16),
    Mix(u32),
    /// Increments the global counter of this number.
    Count(u32),
    /// Increments the global counter that the checksum selects.
    CountSum,
    /// Adds a number to a shared counter of the block.
    Add(u32, u32),
    /// Takes a side of the warp (true: near), and mixes the mask of lanes on the near side into the checksum.
    Side(bool),
}

struct Route {
    key: u32,
    draws: u32,
    steps: Vec<Step>,
}

impl Route {
    fn steps(options: &StressOptions, thread: u64) -> Vec<Step> {
        let thread = thread as u32;
        let mut way = Self { key: key(options.seed, thread), draws: 0, steps: Vec::new() };
        way.pass(at::ENTER);
        way.pass(if thread % options.block <= COUNTERS { at::CLEAR } else { at::CLEAR_NOT });
        if thread >= options.walks {
            way.pass(at::OUTSIDE);
            return way.steps;
        }
        for left in (0..way.draw() % options.rounds + 1).rev() {
            way.round();
            if way.draw().is_multiple_of(128) {
                way.pass(at::QUIT);
                break;
            }
            way.pass(if left == 0 { at::DONE } else { at::AGAIN });
        }
        way.steps
    }

    fn draw(&mut self) -> u32 {
        self.draws += 1;
        draw(self.key, self.draws)
    }

    fn pass(&mut self, location: u16) {
        self.steps.push(Step::Pass(location));
    }

    fn round(&mut self) {
        self.pass(at::ROUND);
        for _ in 0..self.draw() % 12 {
            self.pass(at::SPIN);
            self.steps.push(Step::CountSum);
        }
        self.cross();
        let top = self.climb();
        self.steps.push(Step::Mix(top));
        self.fan_out();
        self.take_sides();
    }

    fn cross(&mut self) {
        for _ in 0..self.draw() % 4 {
            self.pass(at::ROW);
            for _ in 0..self.draw() % 5 {
                self.pass(at::CELL);
                let way = self.draw();
                if way.is_multiple_of(2) {
                    self.pass(at::CELL_LEFT);
                } else {
                    self.pass(at::CELL_RIGHT);
                    self.steps.push(Step::Count(way / 256));
                }
                if (way / 2).is_multiple_of(16) {
                    self.pass(at::CUT);
                    return;
                }
            }
        }
    }

    fn climb(&mut self) -> u32 {
        let mut number = self.draw() % 64 + 1;
        for _ in 0..CLIMB_STEPS {
            if number == 1 {
                break;
            }
            self.pass(at::CLIMB);
            if number.is_multiple_of(2) {
                self.pass(at::CLIMB_EVEN);
                number /= 2;
            } else {
                self.pass(at::CLIMB_ODD);
                number = 3 * number + 1;
            }
        }
        if number == 1 {
            self.pass(at::CLIMB_TOP);
        } else {
            self.pass(at::CLIMB);
            self.pass(at::CLIMB_LONG);
        }
        number
    }

    fn fan_out(&mut self) {
        const WAYS: [u16; 8] =
            [at::FAN_0, at::FAN_1, at::FAN_2, at::FAN_3, at::FAN_4, at::FAN_5, at::FAN_6, at::FAN_7];
        let way = self.draw();
        self.pass(WAYS[(way % 8) as usize]);
        match way % 8 {
            2 => self.steps.push(Step::Count(way / 256)),
            4 => self.steps.push(Step::Add(way / 256 % COUNTERS, 1)),
            _ => {}
        }
    }

    fn take_sides(&mut self) {
        let way = self.draw();
        let (near, steps) = (way.is_multiple_of(2), way / 256 % 8);
        self.pass(if near { at::NEAR } else { at::FAR });
        for step in (1..=steps).rev() {
            if near {
                self.pass(at::NEAR_STEP);
                self.steps.push(Step::Add(step, 1));
            } else {
                self.pass(at::FAR_STEP);
                if (way >> 16) & step != 0 {
                    self.pass(at::FAR_COUNTED);
                    self.steps.push(Step::Add(0, step));
                } else {
                    self.pass(at::FAR_PASSED);
                }
            }
        }
        self.pass(if near { at::NEAR_MET } else { at::FAR_MET });
        self.steps.push(Step::Side(near));
    }
}

/// Returns the locations of thread `thread`, in order.
pub fn lane_locations(options: &StressOptions, thread: u64) -> Vec<u16> {
    let location = |step| match step {
        Step::Pass(location) => Some(location),
        _ => None,
    };
    Route::steps(options, thread).into_iter().filter_map(location).collect()
}

/// Computes the same results as [`run`](super::run). Panics if an option is out of the range of `run`.
pub fn reference(options: &StressOptions) -> StressResult {
    let block = u64::from(options.block);
    let blocks: Vec<StressResult> =
        (0..options.threads() / block).into_par_iter().map(|block| one_block(options, block)).collect();
    let mut all = StressResult {
        sums: Vec::with_capacity(options.walks as usize),
        passed: Vec::with_capacity(options.walks as usize),
        bins: vec![0; BINS as usize],
        counts: Vec::new(),
    };
    for block in blocks {
        all.sums.extend(block.sums);
        all.passed.extend(block.passed);
        all.counts.extend(block.counts);
        all.bins.iter_mut().zip(block.bins).for_each(|(all, bin)| *all = all.wrapping_add(bin));
    }
    all
}

fn one_block(options: &StressOptions, block: u64) -> StressResult {
    let mut result = StressResult {
        sums: Vec::new(),
        passed: Vec::new(),
        bins: vec![0; BINS as usize],
        counts: vec![0; COUNTERS as usize],
    };
    let first = block * u64::from(options.block);
    for warp in (first..first + u64::from(options.block)).step_by(WARP as usize) {
        let ways: Vec<Vec<Step>> = (warp..warp + WARP).map(|thread| Route::steps(options, thread)).collect();
        let near = near_sides(&ways);
        for (way, thread) in ways.iter().zip(warp..) {
            let (sum, passed) = walk(way, &near, &mut result);
            if thread < u64::from(options.walks) {
                result.sums.push(sum);
                result.passed.push(passed);
            }
        }
    }
    result
}

/// Returns the mask of lanes on the near side, for each round.
fn near_sides(ways: &[Vec<Step>]) -> Vec<u32> {
    let mut rounds = Vec::new();
    for (lane, way) in ways.iter().enumerate() {
        let sides = way.iter().filter_map(|step| match step {
            Step::Side(near) => Some(*near),
            _ => None,
        });
        for (round, near) in sides.enumerate() {
            if round == rounds.len() {
                rounds.push(0);
            }
            rounds[round] |= u32::from(near) << lane;
        }
    }
    rounds
}

/// Executes a walk's steps. Returns its checksum and its number of trace points.
fn walk(way: &[Step], near: &[u32], result: &mut StressResult) -> (u32, u32) {
    let (mut sum, mut passed, mut round) = (0, 0, 0);
    let mut count = |number: u32| {
        let bin = &mut result.bins[(number % BINS) as usize];
        *bin = bin.wrapping_add(1);
    };
    for &step in way {
        match step {
            Step::Pass(location) => {
                passed += 1;
                sum = mix(sum, u32::from(location));
            }
            Step::Mix(number) => sum = mix(sum, number),
            Step::Count(number) => count(number),
            Step::CountSum => count(sum),
            Step::Add(counter, number) => {
                let counter = &mut result.counts[counter as usize];
                *counter = counter.wrapping_add(number);
            }
            Step::Side(_) => {
                sum = mix(sum, near[round]);
                round += 1;
            }
        }
    }
    (sum, passed)
}
