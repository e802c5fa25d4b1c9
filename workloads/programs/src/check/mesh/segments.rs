//! Checks that the output still contains the input's segments, whole or in pieces.
//!
//! The output lists the input's points first. From each of them, the check follows a chain of segments
//! through added points, which have exactly two segments each, to the next input point. The ends of the chain
//! must be a segment of the input, and its added points must lie on that segment, in order.

use super::report::{Parameters, Problem, Report};
use super::sorted;
use crate::inputs::geometry::{Point, distance};
use crate::inputs::{Mesh, MeshView};
use std::collections::HashSet;

struct Chains<'a> {
    output: MeshView<'a>,
    /// Start of each point's entries in `at`, with a final end.
    starts: Vec<usize>,
    /// Segments at each point; indices into `output.segments`.
    at: Vec<u32>,
    walked: Vec<bool>,
}

pub(super) fn check(output: MeshView<'_>, input: &Mesh, parameters: &Parameters, report: &mut Report) {
    let mut seen = HashSet::new();
    for ends in output.segments {
        if !seen.insert(sorted(*ends)) {
            report.add(Problem::DuplicateSegment { ends: *ends });
        }
    }
    let mut missing: HashSet<[u32; 2]> = input.segments().iter().map(|ends| sorted(*ends)).collect();
    let kept = input.points().len().min(output.points.len()) as u32;
    let mut chains = Chains::new(output);
    for start in 0..kept {
        for entry in chains.starts[start as usize]..chains.starts[start as usize + 1] {
            let segment = chains.at[entry];
            if chains.walked[segment as usize] {
                continue;
            }
            let chain = chains.walk(start, segment, kept);
            let end = chain[chain.len() - 1];
            if missing.remove(&sorted([start, end])) {
                check_on_segment(output, &chain, parameters, report);
            } else {
                report.add(Problem::SegmentAdded { from: start, to: end });
            }
        }
    }
    // In the input's order, so that the report is deterministic.
    for ends in input.segments().iter().filter(|ends| missing.contains(&sorted(**ends))) {
        report.add(Problem::SegmentLost { ends: *ends });
    }
    let adrift = chains.walked.iter().filter(|walked| !**walked).count();
    if adrift > 0 {
        report.add(Problem::SegmentsAdrift { segments: adrift });
    }
}

impl<'a> Chains<'a> {
    fn new(output: MeshView<'a>) -> Self {
        let mut starts = vec![0; output.points.len() + 1];
        for point in output.segments.iter().flatten() {
            starts[*point as usize + 1] += 1;
        }
        for point in 0..output.points.len() {
            starts[point + 1] += starts[point];
        }
        let mut next = starts.clone();
        let mut at = vec![0; output.segments.len() * 2];
        for (segment, ends) in output.segments.iter().enumerate() {
            for point in ends {
                at[next[*point as usize]] = segment as u32;
                next[*point as usize] += 1;
            }
        }
        Self { output, starts, at, walked: vec![false; output.segments.len()] }
    }

    /// Returns the points from `start` along `segment` to the next input point or to the end of the chain.
    fn walk(&mut self, start: u32, mut segment: u32, kept: u32) -> Vec<u32> {
        let mut chain = vec![start];
        let mut here = start;
        loop {
            self.walked[segment as usize] = true;
            let [a, b] = self.output.segments[segment as usize];
            here = if a == here { b } else { a };
            chain.push(here);
            let at = &self.at[self.starts[here as usize]..self.starts[here as usize + 1]];
            let onward = at.iter().find(|next| !self.walked[**next as usize]);
            match onward {
                Some(next) if here >= kept && at.len() == 2 => segment = *next,
                _ => return chain,
            }
        }
    }
}

/// Checks that the inner points of a chain lie on the line from its first to its last point, in order.
fn check_on_segment(output: MeshView<'_>, chain: &[u32], parameters: &Parameters, report: &mut Report) {
    let (first, last) = (chain[0], chain[chain.len() - 1]);
    let at = |point: u32| output.points[point as usize];
    let (from, to) = (at(first), at(last));
    let length = distance(from, to);
    let direction = [(to[0] - from[0]) / length, (to[1] - from[1]) / length];
    let relative = |p: Point| [(p[0] - from[0]) / length, (p[1] - from[1]) / length];
    let mut before = 0.0;
    for &point in &chain[1..chain.len() - 1] {
        let [x, y] = relative(at(point));
        let along = x * direction[0] + y * direction[1];
        let off = (x * direction[1] - y * direction[0]).abs();
        let in_order = along > before && along < 1.0;
        if !in_order || off > parameters.split_tolerance {
            report.add(Problem::SplitAway { point, ends: [first, last], off });
        }
        before = along;
    }
}
