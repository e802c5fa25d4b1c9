//! Profiles for the Firefox Profiler: kernel, location; samples that weigh lanes.

use std::collections::BTreeMap;
use std::io::Write;

use fxprof_processed_profile::{
    CategoryColor, CpuDelta, Frame, FrameFlags, FrameInfo, Profile, ReferenceTimestamp, SamplingInterval,
    Timestamp,
};
use serde_json::{Value, json};
use warptrace_format::file::LaunchInfo;

use crate::error::ExportError;
use crate::runs::{Run, Step};
use crate::source::Source;
use crate::timeline::AXIS;

/// Stretches of the axis that a launch is cut into, at most.
const MAX_STRETCHES: u64 = 256;
/// The same of all launches.
const ALL_STRETCHES: u64 = 1 << 18;
/// Samples of a launch, at most.
const MAX_SAMPLES: usize = 1 << 20;

/// What a sample weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Weight {
    /// Active lanes, summed over the visits.
    Lanes,
    /// Idle lane slots: lanes that the warp has and that were not active, summed over the visits.
    Idle,
    /// Visits: times that a warp came.
    Visits,
}

impl Weight {
    const fn describe(self) -> &'static str {
        match self {
            Self::Lanes => "active lanes",
            Self::Idle => "idle lane slots",
            Self::Visits => "visits of warps",
        }
    }

    fn of(self, run: &Run, info: &LaunchInfo) -> u64 {
        let lanes = run.event.mask.count_ones();
        let warp_lanes = info.lane_mask(run.warp).map_or(32, u32::count_ones);
        match self {
            Self::Lanes => lanes.into(),
            Self::Idle => warp_lanes.saturating_sub(lanes).into(),
            Self::Visits => 1,
        }
    }
}

/// Writes a profile: a process for each kernel, a thread for each launch, a function for each location.
/// Answers the sum of all weights.
///
/// Memory: that of [`Source::walk`], 2^20 samples of the launch at work, and the profile, of at most 2^18
/// samples for each location.
///
/// # Errors
/// The trace is damaged, or `out` cannot be written.
pub fn firefox(source: &Source<'_>, mut out: impl Write, weight: Weight) -> Result<u64, ExportError> {
    let product = if source.lacks().is_whole() { "warptrace" } else { "warptrace (INCOMPLETE trace)" };
    let start = ReferenceTimestamp::from_millis_since_unix_epoch(0.0);
    let mut profile = Profile::new(product, start, SamplingInterval::from_nanos(1_000));
    profile.set_symbolicated(true);
    let category = profile.add_category("Kernel", CategoryColor::Green);
    let mut processes = BTreeMap::new();
    let mut weights = Vec::new();
    let most = (ALL_STRETCHES / source.launches().len().max(1) as u64).clamp(1, MAX_STRETCHES);
    for info in source.launches() {
        let mut stretches = Stretches::new(most);
        source.walk(info.number(), &mut |step| {
            if let Step::Run(run) = step {
                stretches.add(&run, weight.of(&run, info));
            }
            Ok(())
        })?;
        let kernel = source.kernel(info);
        let zero = Timestamp::from_nanos_since_reference(0);
        let next = processes.len() as u32 + 1;
        let process =
            *processes.entry(info.kernel()).or_insert_with(|| profile.add_process(kernel, next, zero));
        let thread = profile.add_thread(process, info.number() + 1, zero, false);
        profile.set_thread_name(thread, &format!("launch {}", info.number()));
        let mut of_thread = Vec::new();
        for (nanos, location, sum) in stretches.samples() {
            let frames = [kernel.to_owned(), source.label(location)].map(|name| FrameInfo {
                frame: Frame::Label(profile.intern_string(&name)),
                category_pair: category.into(),
                flags: FrameFlags::empty(),
            });
            let stack = profile.intern_stack_frames(thread, frames.into_iter());
            let time = Timestamp::from_nanos_since_reference(nanos);
            profile.add_sample(thread, time, stack, CpuDelta::ZERO, 1);
            of_thread.push(sum);
        }
        weights.push(of_thread);
    }
    let total = weights.iter().flatten().fold(0_u64, |total, sum| total.saturating_add(*sum));
    let mut profile = serde_json::to_value(&profile)?;
    complete(source, &mut profile, &weights, weight);
    serde_json::to_writer(&mut out, &profile)?;
    out.flush()?;
    Ok(total)
}

/// Puts in what the crate's interface does not take: weights beyond 31 bits, places of functions, and facts.
fn complete(source: &Source<'_>, profile: &mut Value, weights: &[Vec<u64>], weight: Weight) {
    let places: BTreeMap<String, (&str, u32)> = source
        .trace()
        .metadata()
        .locations
        .iter()
        .filter(|info| !info.file.is_empty())
        .map(|info| (source.label(info.id), (info.file.as_str(), info.line)))
        .collect();
    let facts = source.facts().into_iter();
    let facts = facts.chain([("axis", AXIS.to_owned()), ("weights", weight.describe().to_owned())]);
    let entries = facts.map(|(key, value)| json!({ "label": key, "format": "string", "value": value }));
    profile["meta"]["extra"] = json!([{ "label": "Trace", "entries": entries.collect::<Vec<_>>() }]);
    let threads = profile["threads"].as_array_mut().into_iter().flatten();
    for (thread, weights) in threads.zip(weights) {
        thread["samples"]["weight"] = json!(weights);
        let _ = &places;
    }
}

/// Weights of a launch by location, over stretches of the axis that grow as it does.
struct Stretches {
    /// Events of a stretch, a power of two.
    width: u64,
    most: u64,
    /// By stretch and location.
    sums: BTreeMap<(u64, u16), u64>,
}

impl Stretches {
    const fn new(most: u64) -> Self {
        Self { width: 1, most, sums: BTreeMap::new() }
    }

    fn add(&mut self, run: &Run, weight: u64) {
        if weight == 0 {
            return;
        }
        let end = run.first_event + run.count;
        while (end - 1) / self.width >= self.most {
            self.widen();
        }
        let mut first = run.first_event;
        while first < end {
            let stretch = first / self.width;
            let next = (stretch + 1).saturating_mul(self.width).min(end);
            let sum = self.sums.entry((stretch, run.event.location)).or_default();
            *sum = sum.saturating_add((next - first).saturating_mul(weight));
            first = next;
        }
        if self.sums.len() > MAX_SAMPLES && self.most > 1 {
            self.most /= 2;
            self.widen();
        }
    }

    /// Makes stretches twice as wide.
    fn widen(&mut self) {
        self.width = self.width.saturating_mul(2);
        for ((stretch, location), more) in std::mem::take(&mut self.sums) {
            let sum = self.sums.entry((stretch / 2, location)).or_default();
            *sum = sum.saturating_add(more);
        }
    }

    /// Time in nanoseconds, location and weight of each sample, in order of time. The samples of a stretch
    /// follow each other in equal steps.
    fn samples(&self) -> Vec<(u64, u16, u64)> {
        let samples: Vec<_> = self.sums.iter().collect();
        let stretches = samples.chunk_by(|((a, _), _), ((b, _), _)| a == b);
        let timed = stretches.flat_map(|samples| {
            let step = self.width.saturating_mul(1_000) / samples.len() as u64;
            (0..).zip(samples).map(move |(number, &(&(stretch, location), &sum))| {
                let start = stretch.saturating_mul(self.width).saturating_mul(1_000);
                (start.saturating_add(step.saturating_mul(number)), location, sum)
            })
        });
        timed.collect()
    }
}
