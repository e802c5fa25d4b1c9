//! Sentences about run times of launches.

use super::{DominantWarp, Names, about, block_at, count, finding, many, ratio, time};
use crate::blocks::BlockRan;
use crate::counts::share;
use crate::figures::Analysis;
use crate::host::{HostRan, HostSchedule};
use crate::schedule::{LaunchSchedule, Schedule};
use warptrace_decoder::TraceFile;

/// Run time of the last block, relative to the median, from which on it is reported as slow.
const SLOW: f64 = 1.5;
/// Share of waiting in a launch from which on its tail is reported before idle lanes.
const LONG: f64 = 0.05;
/// Share of waiting below which no block is named.
const SHORT: f64 = 0.01;
/// Timer steps in the median block below which the step is reported.
const COARSE: u64 = 20;

/// Returns a time with a suitable unit: `1.2 ms`.
pub fn nanoseconds(number: u64) -> String {
    let unit = [(1e9, "s"), (1e6, "ms"), (1e3, "us")].into_iter().find(|(unit, _)| number as f64 >= *unit);
    match unit {
        None => format!("{number} ns"),
        Some((unit, name)) => format!("{} {name}", ratio(number as f64 / unit)),
    }
}

/// Returns the main findings, most important first: where warps spend their time; the block that
/// multiprocessors waited for, if for long; why lanes are idle; and further findings about launches.
pub fn findings(trace: &TraceFile, analysis: &Analysis, names: &Names) -> Vec<String> {
    let dominant = DominantWarp::new(trace, analysis);
    let mut said: Vec<String> = dominant.iter().map(|warp| warp.describe(trace, names)).collect();
    said.extend(time(trace, analysis, names));
    let of_launches = schedule(trace, analysis);
    let launches = analysis.schedule.iter().flat_map(|schedule| &schedule.launches);
    let is_long = launches.into_iter().any(|launch| launch.waiting_share() >= LONG);
    let at = usize::from(is_long && !of_launches.is_empty());
    said.extend_from_slice(&of_launches[..at]);
    said.push(finding(analysis, names));
    said.extend_from_slice(&of_launches[at..]);
    said
}

/// Describes the launch with the longest waiting time, and the sequence of launches by both clocks.
pub fn schedule(trace: &TraceFile, analysis: &Analysis) -> Vec<String> {
    let on_device = analysis.schedule.iter().flat_map(|schedule| device(trace, schedule));
    on_device.chain(analysis.host.as_ref().and_then(host)).collect()
}

fn host(schedule: &HostSchedule) -> Option<String> {
    let HostSchedule { launches, nanoseconds: all, gap_nanoseconds: gaps, .. } = schedule;
    if launches.len() < 2 {
        return None;
    }
    let longest = schedule.longest_gaps(1);
    let longest = longest.first().map_or_else(String::new, |launch| {
        let HostRan { launch, kernel, gap_nanoseconds: gap, .. } = launch;
        format!(", for longest before launch {launch} (`{kernel}`), {}", nanoseconds(*gap))
    });
    Some(format!(
        "by the host's clock, {} launches in {}: none was under way in {} of it{longest}",
        count(launches.len() as u64),
        nanoseconds(*all),
        about(*gaps, *all)
    ))
}

fn device(trace: &TraceFile, schedule: &Schedule) -> Vec<String> {
    let worst = schedule.launches.iter().rev().max_by_key(|launch| launch.waiting_nanoseconds);
    let mut said: Vec<String> = worst.map(|launch| tail(trace, launch)).into_iter().collect();
    said.extend(launches(schedule));
    let moved = schedule.launches.iter().map(|launch| launch.moved_warps).sum();
    if moved > 0 {
        let warps = many(moved, "warp");
        said.push(format!("{warps} went from one SM to another: cycles of these mean nothing"));
    }
    let step = schedule.timer_step_nanoseconds;
    if worst.is_some_and(|launch| launch.median_block_nanoseconds < COARSE.saturating_mul(step)) {
        said.push(format!(
            "the global timer went in steps of {}: times are not more exact",
            nanoseconds(step)
        ));
    }
    said
}

/// Describes the end of a launch: `in launch 0, block 17 on SM 3 ran 4.1 times as long as the median block`.
pub fn tail(trace: &TraceFile, launch: &LaunchSchedule) -> String {
    let LaunchSchedule { sms, waves, blocks, .. } = *launch;
    let name =
        |ran: &BlockRan| format!("block {} on SM {}", block_at(trace, launch.launch, ran.block), ran.sm);
    let (how, is_over) = match launch.ended {
        "completed" => ("ran for", true),
        "failed" => ("failed, after at least", false),
        "interrupted" => ("was interrupted, after at least", false),
        _ => ("ran for at least", false),
    };
    let ran = format!(
        "{} (`{}`) {how} {}: {} in {} on {}",
        super::launch(trace, launch.launch),
        launch.kernel,
        nanoseconds(launch.nanoseconds),
        many(blocks, "block"),
        many(waves.into(), "wave"),
        many(sms.into(), "SM")
    );
    let Some(last) = &launch.last else { return format!("{ran}; no block is known to have ended") };
    // It is unknown which block ended last.
    if !is_over {
        return format!("{ran} are known to have ended");
    }
    let waited = about(launch.waiting_nanoseconds, launch.sm_nanoseconds());
    let times = share(last.nanoseconds.unwrap_or(0), launch.median_block_nanoseconds);
    if launch.waiting_nanoseconds == 0 {
        return format!("{ran}; no SM waited for its end");
    }
    if launch.waiting_share() < SHORT {
        return format!("{ran}; SMs waited {waited} of it for its end");
    }
    if times >= SLOW {
        let times = ratio(times);
        return format!(
            "{} ran {times} times as long as the median block: SMs waited {waited} of the launch for it; {ran}",
            name(last)
        );
    }
    format!("SMs waited {waited} of the launch for its last block, {}; {ran}", name(last))
}

fn launches(schedule: &Schedule) -> Option<String> {
    let number = schedule.launches.len() as u64;
    if number < 2 {
        return None;
    }
    let Schedule { nanoseconds: all, gap_nanoseconds: gaps, overlap_nanoseconds: overlap, .. } = *schedule;
    let overlaps = match overlap {
        0 => "none overlaps with another".to_owned(),
        overlap => format!("they overlap for {}", nanoseconds(overlap)),
    };
    Some(format!(
        "{} launches in {}: none ran in {} of it; {overlaps}",
        count(number),
        nanoseconds(all),
        about(gaps, all)
    ))
}
