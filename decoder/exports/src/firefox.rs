//! Profiles for the Firefox Profiler: stacks of kernel, functions, loops and location, with weighted samples.

use std::collections::BTreeMap;
use std::io::Write;
use std::ops::Range;

use fxprof_processed_profile::{
    CategoryColor, CpuDelta, Frame, FrameFlags, FrameInfo, Profile, ReferenceTimestamp, SamplingInterval,
    Timestamp,
};
use serde_json::{Value, json};
use warptrace_analysis::{weights, words};
use warptrace_decoder::EventRun;
use warptrace_format::file::LaunchInfo;

use crate::axis::{Axis, Scale};
use crate::error::ExportError;
use crate::nest::{Nest, loop_name};
use crate::source::{ExportSource, Step};

/// Maximum number of stretches of the axis for one launch.
const MAX_STRETCHES: u64 = 256;
const ALL_STRETCHES: u64 = 1 << 18;
const MAX_SAMPLES: usize = 1 << 20;

/// The weight of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Weight {
    /// Active lanes, summed over the visits.
    Lanes,
    /// Idle slots: inactive lanes of the warp, summed over the visits and weighted as in the analysis.
    Idle,
    /// Visits of warps.
    Visits,
    /// Warp-cycles, as [`Time`](warptrace_analysis::Time) defines them.
    Cycles,
    /// Idle lane-cycles, as [`Time`](warptrace_analysis::Time) defines them.
    IdleCycles,
}

impl Weight {
    const fn describe(self) -> &'static str {
        match self {
            Self::Lanes => "active lanes",
            Self::Idle => "idle slots",
            Self::Visits => "visits of warps",
            Self::Cycles => "warp-cycles",
            Self::IdleCycles => "idle lane-cycles",
        }
    }

    const fn is_time(self) -> bool {
        matches!(self, Self::Cycles | Self::IdleCycles)
    }

    /// Returns the number of parts of a run, and the weight of each.
    fn weigh(self, run: &EventRun, info: &LaunchInfo, instructions: &[u32]) -> (u64, u64) {
        let lanes = run.event.mask.count_ones();
        let warp_lanes = info.lane_mask(run.warp).map_or(32, u32::count_ones);
        let idle = u64::from(warp_lanes.saturating_sub(lanes));
        match self {
            Self::Lanes => (run.count, lanes.into()),
            Self::Idle => {
                let each = instructions.get(usize::from(run.event.location)).copied().unwrap_or(1);
                (run.count, idle * u64::from(each))
            }
            Self::Visits => (run.count, 1),
            Self::Cycles => (run.cycles.unwrap_or(0), 1),
            Self::IdleCycles => (run.cycles.unwrap_or(0), idle),
        }
    }
}

/// Writes a profile with a process for each kernel, a thread for each launch, and a function for each
/// location, loop and function of the program. Returns the sum of all weights.
/// Memory: as for [`ExportSource::walk`], 2^20 samples of one launch, and 2^18 samples for each location.
/// Fails if the trace is damaged or lacks the times to weigh, `out` cannot be written, or the output exceeds
/// [its limit](warptrace_decoder::TraceFile::limited).
pub fn firefox(source: &ExportSource<'_>, out: impl Write, weight: Weight) -> Result<u64, ExportError> {
    if weight.is_time() && !source.trace().has_times() {
        return Err(ExportError::NoTimes(weight.describe()));
    }
    let mut out = source.trace().limited(out);
    let product = if source.lacks().is_whole() { "warptrace" } else { "warptrace (INCOMPLETE trace)" };
    let start = ReferenceTimestamp::from_millis_since_unix_epoch(0.0);
    let mut profile = Profile::new(product, start, SamplingInterval::from_nanos(1_000));
    profile.set_symbolicated(true);
    let category = profile.add_category("Kernel", CategoryColor::Green);
    let labels = Labels::new(source);
    let nest = Nest::new(source, |id| labels.label(source, id))?;
    let instructions = weights(source.trace()).unwrap_or_default();
    let mut processes = BTreeMap::new();
    let mut sums = Vec::new();
    let most = (ALL_STRETCHES / source.launches().len().max(1) as u64).clamp(1, MAX_STRETCHES);
    for info in source.launches() {
        let (mut stretches, mut axis) = (Stretches::new(most), Axis::new(source.trace()));
        source.walk(info.number(), &mut |step| {
            if let Step::Run(run) = step {
                stretches.add(run.event.location, &axis.lasts(&run), weight.weigh(&run, info, &instructions));
            }
            Ok(())
        })?;
        let kernel = source.kernel(info);
        let zero = Timestamp::from_nanos_since_reference(0);
        let next = processes.len() as u32 + 1;
        let process =
            *processes.entry(info.kernel()).or_insert_with(|| profile.add_process(kernel, next, zero));
        let thread = profile.add_thread(process, info.number().saturating_add(1), zero, false);
        profile.set_thread_name(thread, &words::launch(source.trace(), info.number()));
        let mut of_thread = Vec::new();
        for (nanos, location, sum) in stretches.samples() {
            let own = labels.label(source, location);
            let around = nest.around(source, info, location).iter().map(String::as_str);
            let names = std::iter::once(kernel).chain(around).chain([own.as_str()]);
            let frames: Vec<FrameInfo> = names
                .map(|name| FrameInfo {
                    frame: Frame::Label(profile.intern_string(name)),
                    category_pair: category.into(),
                    flags: FrameFlags::empty(),
                })
                .collect();
            let stack = profile.intern_stack_frames(thread, frames.into_iter());
            let time = Timestamp::from_nanos_since_reference(nanos);
            profile.add_sample(thread, time, stack, CpuDelta::ZERO, 1);
            of_thread.push(sum);
        }
        sums.push(of_thread);
    }
    let total = sums.iter().flatten().fold(0_u64, |total, sum| total.saturating_add(*sum));
    let mut profile = serde_json::to_value(&profile)?;
    complete(source, &labels, &mut profile, &sums, weight);
    serde_json::to_writer(&mut out, &profile)?;
    out.flush()?;
    Ok(total)
}

/// Adds data that the crate does not accept: weights beyond 31 bits, sources of functions, and facts.
fn complete(
    source: &ExportSource<'_>,
    labels: &Labels,
    profile: &mut Value,
    weights: &[Vec<u64>],
    weight: Weight,
) {
    let facts = source.facts().into_iter();
    let facts = facts
        .chain(Scale::own(source.trace()).facts(source))
        .chain([("weights", weight.describe().to_owned())]);
    let entries = facts.map(|(key, value)| json!({ "label": key, "format": "string", "value": value }));
    profile["meta"]["extra"] = json!([{ "label": "Trace", "entries": entries.collect::<Vec<_>>() }]);
    let threads = profile["threads"].as_array_mut().into_iter().flatten();
    for (thread, weights) in threads.zip(weights) {
        thread["samples"]["weight"] = json!(weights);
        let mut strings: Vec<Value> = thread["stringArray"].as_array().cloned().unwrap_or_default();
        let names = thread["funcTable"]["name"].as_array().cloned().unwrap_or_default();
        let (mut files, mut lines) = (Vec::new(), Vec::new());
        for name in &names {
            let name = name.as_u64().and_then(|at| strings.get(at as usize)?.as_str());
            let Some((file, line)) = name.and_then(|name| labels.sources.get(name)) else {
                files.push(Value::Null);
                lines.push(Value::Null);
                continue;
            };
            let file = Value::from(file.as_str());
            let at = strings.iter().position(|known| *known == file).unwrap_or_else(|| {
                strings.push(file);
                strings.len() - 1
            });
            files.push(json!(at));
            lines.push(if *line > 0 { json!(line) } else { Value::Null });
        }
        let of_frame = |func: &Value| func.as_u64().and_then(|func| lines.get(func as usize)).cloned();
        let frames = thread["frameTable"]["func"].as_array().into_iter().flatten();
        let of_frames: Vec<Value> = frames.map(|func| of_frame(func).unwrap_or(Value::Null)).collect();
        thread["frameTable"]["line"] = json!(of_frames);
        thread["funcTable"]["fileName"] = json!(files);
        thread["funcTable"]["lineNumber"] = json!(lines);
        thread["stringArray"] = json!(strings);
    }
}

/// Names of functions. A profile identifies functions by name, so each location needs a unique one.
struct Labels {
    by_id: BTreeMap<u16, String>,
    sources: BTreeMap<String, (String, u32)>,
}

impl Labels {
    fn new(source: &ExportSource<'_>) -> Self {
        let metadata = source.trace().metadata();
        let mut uses: BTreeMap<String, u32> = BTreeMap::new();
        for kernel in &metadata.kernels {
            *uses.entry(kernel.name.clone()).or_default() += 1;
        }
        for info in &metadata.locations {
            *uses.entry(source.label(info.id)).or_default() += 1;
        }
        let (mut by_id, mut sources) = (BTreeMap::new(), BTreeMap::new());
        for info in &metadata.locations {
            let name = source.label(info.id);
            let is_shared = uses.get(&name).is_some_and(|uses| *uses > 1);
            let name = if is_shared { format!("{name} (location {})", info.id) } else { name };
            if !info.file.is_empty() {
                let place = (info.file.clone(), info.line);
                sources.insert(loop_name(&name), place.clone());
                sources.insert(name.clone(), place);
            }
            by_id.insert(info.id, name);
        }
        Self { by_id, sources }
    }

    fn label(&self, source: &ExportSource<'_>, id: u16) -> String {
        self.by_id.get(&id).cloned().unwrap_or_else(|| source.label(id))
    }
}

/// Weights of a launch by location, over stretches of the axis. The stretches widen as the axis grows.
struct Stretches {
    /// Units of the axis in a stretch, a power of two.
    width: u64,
    most: u64,
    sums: BTreeMap<(u64, u16), u64>,
}

impl Stretches {
    const fn new(most: u64) -> Self {
        Self { width: 1, most, sums: BTreeMap::new() }
    }

    /// Distributes the equal parts of a run evenly over its range. Each part has this weight.
    fn add(&mut self, location: u16, lasts: &Range<u64>, (parts, weight): (u64, u64)) {
        if weight == 0 || parts == 0 {
            return;
        }
        // An empty run is placed at its start.
        let start = lasts.start.min(u64::MAX - 1);
        let end = lasts.end.max(start + 1);
        while (end - 1) / self.width >= self.most {
            self.widen();
        }
        let length = u128::from(end - start);
        let (mut from, mut given) = (start, 0);
        while from < end {
            let stretch = from / self.width;
            let next = (stretch + 1).saturating_mul(self.width).min(end);
            // At most `parts`.
            let until = (u128::from(parts) * u128::from(next - start) / length) as u64;
            if until > given {
                let sum = self.sums.entry((stretch, location)).or_default();
                *sum = sum.saturating_add((until - given).saturating_mul(weight));
            }
            (from, given) = (next, until);
        }
        if self.sums.len() > MAX_SAMPLES && self.most > 1 {
            self.most /= 2;
            self.widen();
        }
    }

    fn widen(&mut self) {
        self.width = self.width.saturating_mul(2);
        for ((stretch, location), more) in std::mem::take(&mut self.sums) {
            let sum = self.sums.entry((stretch / 2, location)).or_default();
            *sum = sum.saturating_add(more);
        }
    }

    /// Returns time in nanoseconds, location and weight of samples, by time, equally spaced in a stretch.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_grow_and_keep_all_weights() {
        let mut stretches = Stretches::new(4);
        let run = |first: u64, count: u64, weight| (first..first + count, (count, weight));
        let mut add = |location, (lasts, weighs): (Range<u64>, (u64, u64))| {
            stretches.add(location, &lasts, weighs);
            stretches.samples()
        };
        add(1, run(0, 3, 2));
        let samples = add(2, run(3, 1, 1));
        assert_eq!(samples, [(0, 1, 2), (1_000, 1, 2), (2_000, 1, 2), (3_000, 2, 1)]);
        let samples = add(1, run(4, 5, 10));
        assert_eq!(samples, [(0, 1, 6), (2_000, 2, 1), (4_000, 1, 40), (8_000, 1, 10)]);
        add(3, run(9, 1 << 62, 0));
        let samples = add(3, run(9, 1 << 62, 5));
        let sum: u128 = samples.iter().map(|(_, _, sum)| u128::from(*sum)).sum();
        assert_eq!(sum, (5 << 62) + 57);
        assert!(samples.len() <= 3 * 4);
    }

    #[test]
    fn parts_lie_evenly_where_a_run_lasts() {
        let mut stretches = Stretches::new(4);
        stretches.add(1, &(0..4), (7, 1));
        stretches.add(2, &(2..2), (3, 5));
        assert_eq!(
            stretches.samples(),
            [(0, 1, 1), (1_000, 1, 2), (2_000, 1, 2), (2_500, 2, 15), (3_000, 1, 2)]
        );
    }
}
