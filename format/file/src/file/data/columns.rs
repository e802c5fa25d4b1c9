//! Columns of a site's groups.

use warptrace_columns::Element;

use super::super::contents::{Columns, Contents, put};
use super::super::error::FormatError;
use super::super::frame::Compression;
use super::groups::{Group, OfPiece, SiteGroups, lanes};
use super::predict::{BaseBy, Estimate, Known, StepBy, UnitRun, Units, Whose};
use crate::data::{LaneRun, MAX_COUNT, Owner, is_line};

/// Bit of a loose run's owner: a group, with its lanes minus 1 in the lower bits.
const GROUP: u32 = 32;

/// Approximate runs of a sample, and consecutive pieces in it: a run is predicted from the one before.
const SAMPLED_RUNS: usize = 1 << 10;
const SAMPLED_AT_ONCE: usize = 32;

/// For each piece, the time of the first group of its last site, to which the next site's times are relative.
pub(super) type FirstTimes = [Option<u32>];

pub(super) fn put_site(
    pieces: &[OfPiece<'_>],
    first_times: &mut FirstTimes,
    compression: Compression,
    plain: &mut Vec<u8>,
) {
    let column = |each: fn(&OfPiece<'_>) -> usize| Vec::with_capacity(pieces.iter().map(each).sum());
    let of_pieces = || Vec::with_capacity(pieces.len());
    let (mut at, mut groups, mut loose) = (of_pieces(), of_pieces(), of_pieces());
    let of_groups = || column(|site| site.groups.len());
    let (mut masks, mut missing, mut affine) = (of_groups(), of_groups(), of_groups());
    let (mut times, mut spreads, mut owners) = (of_groups(), Vec::new(), Vec::new());
    let (mut next_piece, mut mask, mut spread, mut warp_time) = (0, u32::MAX, 0u32, 0);
    let mut runs: Vec<LaneRun> = Vec::with_capacity(pieces.iter().map(OfPiece::entries).sum());
    for site in pieces {
        at.push(count(site.piece - next_piece));
        next_piece = site.piece + 1;
        groups.push(count(site.groups.len()));
        loose.push(count(site.loose.len()));
        let mut time = first_times[site.piece].unwrap_or(warp_time);
        for (number, group) in site.groups.iter().enumerate() {
            masks.push(group.mask ^ mask);
            missing.push(group.missing);
            affine.push(u32::from(group.spread.is_some()));
            times.push(group.time.wrapping_sub(time).zigzag());
            (mask, time) = (group.mask, group.time);
            if number == 0 {
                (warp_time, first_times[site.piece]) = (time, Some(time));
            }
            if let Some(found) = group.spread.map(i32::cast_unsigned) {
                spreads.push(found.wrapping_sub(spread).zigzag());
                spread = found;
            }
        }
        runs.extend(site.runs);
        for (of, run) in site.loose {
            owners.push(match of {
                Owner::Lane(lane) => *lane,
                Owner::Group(lanes) => GROUP | (lanes - 1),
            });
            runs.push(*run);
        }
    }
    let units = Units::new(&runs);
    let (base_by, step_by) = smallest(pieces, units, runs.len());
    let (mut bases, mut steps) = (Vec::with_capacity(runs.len()), Vec::new());
    each_run(pieces, units, |known, whose, run| {
        bases.push(known.base_residual(base_by, whose, run.base));
        if run.count > 1 {
            steps.push(known.step_residual(step_by, run));
        }
    });
    let counts: Vec<u32> = runs.iter().map(|run| run.count - 1).collect();
    let numbers = [units.least, units.shift.into(), base_by as u64, step_by as u64];
    for column in [&at, &groups, &loose] {
        put(column, 0, compression, plain);
    }
    put(&numbers, 0, compression, plain);
    for column in [&masks, &missing, &affine, &times, &spreads, &owners, &counts] {
        put(column, 0, compression, plain);
    }
    put(&steps, 0, compression, plain);
    put(&bases, 0, compression, plain);
}

pub(super) fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// Calls `each` for a site's runs in the order of the column, with the state before each run.
fn each_run(pieces: &[OfPiece<'_>], units: Units, mut each: impl FnMut(&Known, Whose, UnitRun)) {
    let mut known = Known::default();
    let mut push = |known: &mut Known, whose: Whose, run: &LaneRun| {
        let run = units.run(*run);
        each(known, whose, run);
        known.push(whose, run, units);
    };
    for site in pieces {
        known.next_warp();
        for (group, runs) in site.each_group() {
            match (group.spread, runs) {
                (Some(spread), [run]) => push(&mut known, Whose::Affine(group.mask, spread), run),
                _ => {
                    let of_lanes = lanes(group.mask & !group.missing).zip(runs);
                    of_lanes.for_each(|(lane, run)| push(&mut known, Whose::Lane(lane), run));
                }
            }
        }
        site.loose.iter().for_each(|(of, run)| push(&mut known, Whose::new(*of), run));
    }
}

/// Returns the predictions of bases and steps with the smallest columns, estimated from a sample of the pieces.
fn smallest(pieces: &[OfPiece<'_>], units: Units, runs: usize) -> (BaseBy, StepBy) {
    let sampled = pieces.chunks(SAMPLED_AT_ONCE).step_by(runs.div_ceil(SAMPLED_RUNS).max(1));
    let pieces = &sampled.flatten().copied().collect::<Vec<_>>()[..];
    let mut bases = BaseBy::ALL.map(|_| Estimate::new());
    let mut steps = StepBy::ALL.map(|_| Estimate::new());
    each_run(pieces, units, |known, whose, run| {
        for (by, estimate) in BaseBy::ALL.into_iter().zip(&mut bases) {
            estimate.push(known.base_residual(by, whose, run.base));
        }
        if run.count > 1 {
            for (by, estimate) in StepBy::ALL.into_iter().zip(&mut steps) {
                estimate.push(known.step_residual(by, run));
            }
        }
    });
    (least(BaseBy::ALL, &bases), least(StepBy::ALL, &steps))
}

fn least<T: Copy, const N: usize>(all: [T; N], estimates: &[Estimate; N]) -> T {
    let bits = all.into_iter().zip(estimates.each_ref().map(Estimate::bits));
    bits.reduce(|least, other| if other.1 < least.1 { other } else { least }).map_or(all[0], |(by, _)| by)
}

pub(super) struct Left {
    pub(super) entries: usize,
}

impl Left {
    fn take(&mut self, contents: &Contents, count: u32) -> Result<usize, FormatError> {
        match self.entries.checked_sub(count as usize) {
            Some(left) => self.entries = left,
            None => return Err(contents.wrong("the sites have more entries than the section".to_owned())),
        }
        Ok(count as usize)
    }
}

pub(super) fn next_site(
    (number, of_pieces): (u16, usize),
    first_times: &mut FirstTimes,
    left: &mut Left,
    contents: &Contents,
    columns: &mut Columns<'_>,
) -> Result<Vec<(usize, SiteGroups)>, FormatError> {
    let wrong = |message: String| contents.wrong(format!("site {number}: {message}"));
    // Each piece of a site has at least one entry, so this bounds the memory by the entries left.
    if of_pieces > left.entries {
        return Err(wrong(format!("{of_pieces} pieces, and {} entries are left", left.entries)));
    }
    let at: Vec<u32> = columns.next("piece", of_pieces..=of_pieces)?;
    let groups: Vec<u32> = columns.next("groups", of_pieces..=of_pieces)?;
    let loose: Vec<u32> = columns.next("loose", of_pieces..=of_pieces)?;
    if groups.iter().zip(&loose).any(|(groups, loose)| groups | loose == 0) {
        return Err(wrong("a piece has nothing of it".to_owned()));
    }
    let numbers: Vec<u64> = columns.next("numbers", 4..=4)?;
    let (least, shift) = (numbers[0], u32::try_from(numbers[1]).unwrap_or(u32::MAX));
    let by = |all: u64, at: usize| usize::try_from(numbers[at]).ok().filter(|_| numbers[at] < all);
    let (Some(base_by), Some(step_by)) = (by(5, 2), by(4, 3)) else {
        return Err(wrong(format!("{} and {} are no ways to tell bases and steps", numbers[2], numbers[3])));
    };
    let (base_by, step_by) = (BaseBy::ALL[base_by], StepBy::ALL[step_by]);
    if shift > 63 {
        return Err(wrong(format!("units of 2^{shift}")));
    }
    let units = Units { least, shift };

    let all_groups =
        left.take(contents, groups.iter().fold(0, |sum: u32, more| sum.saturating_add(*more)))?;
    let all_loose = left.take(contents, loose.iter().fold(0, |sum: u32, more| sum.saturating_add(*more)))?;
    let masks: Vec<u32> = columns.next("mask", all_groups..=all_groups)?;
    let missing: Vec<u32> = columns.next("missing", all_groups..=all_groups)?;
    let affine: Vec<u32> = columns.next("affine", all_groups..=all_groups)?;
    let times: Vec<u32> = columns.next("time", all_groups..=all_groups)?;
    let with_spread = affine.iter().filter(|affine| **affine == 1).count();
    let spreads: Vec<u32> = columns.next("spread", with_spread..=with_spread)?;
    let owners: Vec<u32> = columns.next("owner", all_loose..=all_loose)?;
    if affine.iter().any(|affine| *affine > 1) || owners.iter().any(|owner| *owner >= 2 * GROUP) {
        return Err(wrong("a group is neither affine nor generic, or a run of no lane".to_owned()));
    }
    let (mut mask, mut spread, mut next_spread) = (u32::MAX, 0u32, spreads.into_iter());
    let mut decoded = Vec::with_capacity(all_groups);
    for ((masks, missing), affine) in masks.into_iter().zip(missing).zip(affine) {
        mask ^= masks;
        if affine == 1 {
            spread = spread.wrapping_add(next_spread.next().unwrap_or(0).unzigzag());
        }
        let group = Group { mask, time: 0, spread: (affine == 1).then_some(spread.cast_signed()), missing };
        let lacks = missing & !mask != 0 || (affine == 1 && missing != 0 && missing != mask);
        let is_line = group.spread.is_none_or(|spread| is_line(mask, spread));
        if mask == 0 || lacks || !is_line {
            return Err(wrong(format!(
                "no group: lanes {mask:#x}, unknown {missing:#x}, spread {:?}",
                group.spread
            )));
        }
        decoded.push(group);
    }
    let of_groups = decoded.iter().fold(0, |sum: u32, group| sum.saturating_add(group.runs()));
    let all_runs = left.take(contents, of_groups)? + all_loose;
    let counts: Vec<u32> = columns.next("count", all_runs..=all_runs)?;
    if let Some(count) = counts.iter().find(|count| **count >= MAX_COUNT) {
        return Err(wrong(format!("a run has {count} accesses and one more, over {MAX_COUNT}")));
    }
    let stepped = counts.iter().filter(|count| **count > 0).count();
    let steps: Vec<u64> = columns.next("step", stepped..=stepped)?;
    let bases: Vec<u64> = columns.next("base", all_runs..=all_runs)?;

    let mut runs =
        Runs { units, base_by, step_by, known: Known::default(), counts, steps, bases, next: (0, 0) };
    let mut found = Vec::with_capacity(of_pieces);
    let (mut piece, mut warp_time) = (0usize, 0);
    let (mut decoded, mut times, mut owners) = (decoded.into_iter(), times.into_iter(), owners.into_iter());
    for (at, (groups, loose)) in at.into_iter().zip(groups.into_iter().zip(loose)) {
        piece = piece.saturating_add(at as usize);
        let Some(first_time) = first_times.get_mut(piece) else {
            return Err(wrong(format!("piece {piece} is not there")));
        };
        let own = decoded.as_slice().get(..groups as usize).unwrap_or_default();
        let of_groups: u32 = own.iter().map(Group::runs).sum();
        let mut site = SiteGroups { site: number, ..SiteGroups::default() };
        site.groups.reserve_exact(own.len());
        site.runs.reserve_exact(of_groups as usize);
        let mut time = first_time.unwrap_or(warp_time);
        runs.known.next_warp();
        let out_of = || wrong("a step has more than 32 bits".to_owned());
        for (number, (group, step)) in decoded.by_ref().zip(times.by_ref()).take(groups as usize).enumerate()
        {
            time = time.wrapping_add(step.unzigzag());
            if number == 0 {
                (warp_time, *first_time) = (time, Some(time));
            }
            for whose in Whose::of_group(&group) {
                site.runs.push(runs.next(whose).ok_or_else(out_of)?);
            }
            site.groups.push(Group { time, ..group });
        }
        for owner in owners.by_ref().take(loose as usize) {
            let of = if owner < GROUP { Owner::Lane(owner) } else { Owner::Group((owner & (GROUP - 1)) + 1) };
            site.loose.push((of, runs.next(Whose::new(of)).ok_or_else(out_of)?));
        }
        found.push((piece, site));
        piece += 1;
    }
    Ok(found)
}

struct Runs {
    units: Units,
    base_by: BaseBy,
    step_by: StepBy,
    known: Known,
    counts: Vec<u32>,
    steps: Vec<u64>,
    bases: Vec<u64>,
    next: (usize, usize),
}

impl Runs {
    fn next(&mut self, whose: Whose) -> Option<LaneRun> {
        let (run, step) = self.next;
        let (count, base) = (self.counts.get(run)? + 1, *self.bases.get(run)?);
        let base = self.known.base(self.base_by, whose, base);
        let mut unit_run = UnitRun { base, step: 0, count };
        if count > 1 {
            unit_run.step = self.known.step(self.step_by, base, *self.steps.get(step)?);
        }
        self.known.push(whose, unit_run, self.units);
        self.next = (run + 1, step + usize::from(count > 1));
        self.units.bytes(unit_run)
    }
}
