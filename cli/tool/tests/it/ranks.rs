//! Launches of many ranks on one axis, from files with known clock errors.

use std::path::PathBuf;

use serde_json::Value;
use warptrace_format::account::WarpAccount;
use warptrace_format::codec::CodecSpec;
use warptrace_format::file::{
    AccountRun, Began, ClockReading, DeviceInfo, HostLaunch, HostTimes, LaunchInfo, Metadata, Origin, TIMES,
};
use warptrace_format::span::WarpSpan;
use warptrace_host::HostMessage;
use warptrace_host::writer::{TraceWriter, TrackEnd, WriterOptions};

use crate::support::{Folder, printed, read_with, refused, run, text};

/// Begin of the axis, by an exact clock.
const BEGIN: u64 = 1_790_000_000_000_000_000;
const STEPS: u32 = 20;
const PER_HOST: u32 = 8;
/// The rank that is late in each step, and its minimum delay.
const LATE: u32 = 13;
const LATE_BY: u64 = 20_000;
/// Maximum difference between the ends of a collective.
const NOISE: u64 = 2_000;

/// Returns the nanoseconds by which the clock of a host is ahead.
fn ahead(host: u32) -> i64 {
    (i64::from(host) - 3) * 7_777_777
}

fn noise(seed: u32, below: u64) -> u64 {
    let mixed = u64::from(seed).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed >> 31) ^ mixed) % below
}

/// Begin and end: in each step, a kernel of the rank and a collective.
fn launches(rank: u32, ranks: u32) -> Vec<(u32, u64, u64)> {
    let own = |rank: u32, step: u32| {
        let begin = BEGIN + u64::from(step) * 1_000_000 + noise(rank * 31 + step, 500);
        let late = if rank == LATE { LATE_BY } else { 0 };
        (begin, begin + 300_000 + noise(rank * 77 + step, 3_000) + late)
    };
    let mut all = Vec::new();
    for step in 0..STEPS {
        let (begin, end) = own(rank, step);
        let last = (0..ranks).map(|rank| own(rank, step).1).max().unwrap() + 50_000;
        all.push((0, begin, end));
        all.push((1, end + 100, last + noise(rank * 1_001 + step, NOISE)));
    }
    all
}

/// Difference of a file from the other files.
#[derive(Clone, Copy, Default)]
struct Odd {
    /// Number of launches missing at the end.
    missing: usize,
    has_no_times: bool,
    has_no_origin: bool,
    /// Times are from the device: the host launched everything at once.
    by_device: bool,
    collective: Option<&'static str>,
    host: Option<&'static str>,
    job: Option<&'static str>,
}

fn written(folder: &Folder, rank: u32, ranks: u32, odd: Odd) -> PathBuf {
    let host = rank / PER_HOST;
    let device = DeviceInfo::cuda("a GPU", (9, 0), "CUDA 13.0");
    let mut metadata = Metadata::new("test", device, vec![CodecSpec::Raw])
        .with_kernel("step", "")
        .with_kernel(odd.collective.unwrap_or("ncclDevKernel_AllReduce"), "")
        .with_pool(512, 1);
    let by_clock = |moment: u64| moment.checked_add_signed(ahead(host)).unwrap();
    if odd.by_device {
        metadata = metadata.with_property(TIMES, "blocks");
    }
    if !odd.has_no_origin {
        let monotonic_ns = 1_000_000_000_000 + u64::from(host) * 77_000_000_000;
        metadata.origin = Some(Box::new(Origin {
            job: Some(odd.job.unwrap_or("job").into()),
            rank: Some(rank),
            ranks: Some(ranks),
            host: Some(odd.host.map_or_else(|| format!("node{host}"), str::to_owned)),
            device: Some(rank % PER_HOST),
            began: Some(Began { realtime_ns: by_clock(BEGIN), monotonic_ns, error_ns: 50 }),
            ..Origin::default()
        }));
    }
    let mut writer = TraceWriter::create(Vec::new(), &metadata, WriterOptions::default()).unwrap();
    // The timer of each device has another origin.
    let timer = |moment: u64| moment - BEGIN + 5_000_000_000 * u64::from(rank + 1);
    let mut host_launches = Vec::new();
    let mut all = launches(rank, ranks);
    all.truncate(all.len() - odd.missing);
    for (launch, (kernel, begin, end)) in (0..).zip(all) {
        writer.begin_launch(&LaunchInfo::new(launch, kernel, [1, 1, 1], [32, 1, 1], 0).unwrap()).unwrap();
        let accounts = [WarpAccount { finished: 1, ..WarpAccount::default() }];
        let span = WarpSpan {
            begin_clock: 7,
            begin_timer: timer(begin),
            end_clock: 1_807,
            end_timer: timer(end),
            begin_sm: 1,
            end_sm: 1,
        };
        let spans = if odd.by_device { vec![span] } else { Vec::new() };
        let accounts = AccountRun::of(&accounts);
        writer.end_tracks(&[TrackEnd { launch, track: 0, accounts, spans: &spans }]).unwrap();
        let (begin, length) = if odd.by_device { (BEGIN, 90_000_000) } else { (begin, end - begin) };
        host_launches.push(HostLaunch { launch, begin: by_clock(begin), nanoseconds: Some(length) });
    }
    if !odd.has_no_times {
        let reading = |moment: u64| ClockReading {
            realtime: by_clock(moment),
            monotonic: moment - BEGIN,
            timer: odd.by_device.then(|| timer(moment)),
            width: 1_000,
        };
        let readings = vec![reading(BEGIN), reading(BEGIN + 50_000_000)];
        writer.write_message(&HostMessage::Times(HostTimes { launches: host_launches, readings })).unwrap();
    }
    let path = folder.at(&format!("r{rank}.wtrc"));
    std::fs::write(&path, writer.finish().unwrap().0).unwrap();
    path
}

fn timeline(paths: &[PathBuf], more: &[&str]) -> String {
    let mut arguments = vec!["timeline"];
    arguments.extend(paths.iter().map(|path| text(path)));
    arguments.extend(more);
    printed(&arguments)
}

fn json(paths: &[PathBuf], more: &[&str]) -> Value {
    serde_json::from_str(&timeline(paths, &[more, &["--json"]].concat())).unwrap()
}

fn check_offsets(found: &Value, most: u64) -> u64 {
    let error = found["alignment"]["error_ns"].as_u64().unwrap();
    assert!(error <= most, "{error}");
    for file in found["files"].as_array().unwrap() {
        let Some(offset) = file["offset_ns"].as_i64() else { continue };
        let rank = file["rank"].as_u64().unwrap() as u32;
        let expected = ahead(0) - ahead(rank / PER_HOST);
        assert!(offset.abs_diff(expected) <= error, "rank {rank}: {offset}, not {expected} within {error}");
    }
    error
}

#[test]
fn clocks_of_64_ranks_are_compared_and_the_late_one_is_told() {
    let folder = Folder::new();
    for by_device in [false, true] {
        let odd = Odd { by_device, ..Odd::default() };
        let paths: Vec<PathBuf> = (0..64).rev().map(|rank| written(&folder, rank, 64, odd)).collect();
        let found = json(&paths, &[]);
        check_offsets(&found, 2 * NOISE);
        let alignment = &found["alignment"];
        assert_eq!((&alignment["clocks"], &alignment["shared_launches"]), (&8.into(), &STEPS.into()));
        assert_eq!(found["notes"], Value::Array(Vec::new()));
        let files = found["files"].as_array().unwrap();
        assert_eq!(files[LATE as usize]["name"], format!("rank {LATE}"));
        assert_eq!(files[0]["clock"], if by_device { "device" } else { "host" });
        let late = |file: &Value| file["late"]["launches"].as_u64().unwrap();
        let all: Vec<u64> = files.iter().map(late).collect();
        assert_eq!((all[LATE as usize], all.iter().sum::<u64>()), (STEPS.into(), STEPS.into()));
        let late = &files[LATE as usize]["late"];
        let mean = late["sum_ns"].as_u64().unwrap() / u64::from(STEPS);
        assert!(mean.abs_diff(LATE_BY) <= 4_000 && late["max_ns"].as_u64() >= Some(mean), "{late}");
        let rows = found["launches"].as_array().unwrap();
        assert_eq!(rows.len(), 2 * STEPS as usize);
        for row in &rows[..STEPS as usize] {
            assert_eq!((&row["ranks"], &row["latest"]), (&64.into(), &LATE.into()), "{row}");
            assert_eq!(
                (&row["kernel"], &row["is_decided"]),
                (&"ncclDevKernel_AllReduce".into(), &true.into())
            );
        }
        assert!(rows[STEPS as usize..].iter().all(|row| row["kernel"] == "step"));
        let page = timeline(&paths, &["--limit", "2"]);
        let first = page.lines().next().unwrap();
        let said = "64 files of 8 hosts, whose clocks are compared by 20 launches of nccl*";
        assert!(first.starts_with(said) && first.contains("known to within"), "{page}");
        assert!(page.contains(&format!("rank {LATE} begins last in 20 of 40 launches")), "{page}");
        assert!(page.contains("38 more launches"), "{page}");
    }
}

#[test]
fn what_cannot_be_compared_is_told_and_does_not_count() {
    let folder = Folder::new();
    let odd = |rank| match rank {
        5 => Odd { missing: 2, ..Odd::default() },
        9 => Odd { has_no_times: true, ..Odd::default() },
        _ => Odd::default(),
    };
    let mut paths: Vec<PathBuf> = (0..16).map(|rank| written(&folder, rank, 17, odd(rank))).collect();
    let lost = folder.at("lost.wtrc");
    let one =
        written(&folder, 16, 17, Odd { has_no_origin: true, collective: Some("other"), ..Odd::default() });
    std::fs::rename(one, &lost).unwrap();
    paths.push(lost.clone());
    let found = json(&paths, &[]);
    check_offsets(&found, 2 * NOISE);
    let notes = found["notes"].to_string();
    for said in [
        "launches of step are not compared for 1 file with another number of them than most: ",
        "r5.wtrc has 19, most have 20",
        "r9.wtrc does not say when its launches ran",
        "lost.wtrc shares no launch by which its clock could be compared",
        "files of 16 of 17 ranks were given",
    ] {
        assert!(notes.contains(said), "{said}: {notes}");
    }
    let files = found["files"].as_array().unwrap();
    assert_eq!((&files[9]["offset_ns"], &files[9]["clock"]), (&Value::Null, &Value::Null));
    assert_eq!((&files[16]["offset_ns"], &files[16]["rank"]), (&Value::Null, &Value::Null));
    assert_eq!(files[16]["name"], text(&lost));
    // Without ranks 5 and 9 and the file without origin.
    let rows = found["launches"].as_array().unwrap();
    assert!(rows.len() == 2 * STEPS as usize && rows.iter().all(|row| row["ranks"] == 14), "{}", rows[0]);
    // Launches that no other file has.
    let found = json(&paths[..9], &["--align", "no*"]);
    assert_eq!(found["alignment"]["error_ns"], Value::Null);
    assert!(found["launches"].as_array().unwrap().iter().all(|row| row["is_decided"] == false));
    let page = timeline(&paths[..9], &["--align", "no*"]);
    assert!(page.lines().next().unwrap().contains("no launch of no* is in files of several hosts"), "{page}");
    // On one host, all ranks have the same clock.
    for align in ["no*", "nccl*"] {
        let found = json(&paths[..3], &["--align", align]);
        assert_eq!(found["alignment"]["error_ns"], 0, "by one clock nothing is assumed: {found}");
    }
    assert!(timeline(&paths[..1], &[]).contains("no launch is in several files"));
    assert!(timeline(&paths[9..10], &[]).starts_with("no file says when its launches ran"));
}

#[test]
fn hosts_are_told_by_name_and_start_and_files_that_do_not_belong_together_are_named() {
    let folder = Folder::new();
    let odd = Odd { host: Some("localhost"), ..Odd::default() };
    let other = Odd { job: Some("other"), ..odd };
    let paths = [(0, odd), (1, odd), (8, other)].map(|(rank, odd)| written(&folder, rank, 9, odd));
    let clocks = |paths: &[PathBuf]| json(paths, &["--align", "no*"])["alignment"]["clocks"].take();
    assert_eq!((clocks(&paths[..2]), clocks(&paths)), (1.into(), 2.into()));
    let again = folder.at("again.wtrc");
    std::fs::copy(&paths[0], &again).unwrap();
    let found = json(&[&paths[..], std::slice::from_ref(&again)].concat(), &[]);
    let notes = found["notes"].to_string();
    assert!(notes.contains("the files are of 2 jobs"), "{notes}");
    assert!(notes.contains("several files are of rank 0 and the same device"), "{notes}");
    let names: Vec<&str> =
        found["files"].as_array().unwrap().iter().map(|file| file["name"].as_str().unwrap()).collect();
    assert_eq!(names, [text(&again), text(&paths[0]), "rank 1", "rank 8"]);
}

#[test]
fn perfetto_has_a_track_for_each_rank() {
    let folder = Folder::new();
    let paths: Vec<PathBuf> = (0..9).map(|rank| written(&folder, rank, 9, Odd::default())).collect();
    let out = folder.at("ranks.pftrace");
    let mut arguments = vec!["timeline"];
    arguments.extend(paths.iter().map(|path| text(path)));
    refused(&[&arguments[..], &["--to", "perfetto"]].concat(), "belong together");
    refused(&[&arguments[..], &["--to", "perfetto", "-o", text(&paths[0])]].concat(), "a trace");
    let (code, said, errors) = run(&[&arguments[..], &["--to", "perfetto", "-o", text(&out)]].concat());
    assert!(code == 0 && errors.starts_with("note: 9 files of 2 hosts"), "{errors}");
    assert!(said.contains("ranks.pftrace: 360 launches"), "{said}");
    let messages = "perfetto.protos.perfetto.trace.perfetto_trace_pb2";
    let Some(tracks) = read_with("read_perfetto.py", messages, &[text(&out)]) else { return };
    let read = tracks.to_string();
    assert!((0..9).all(|rank| read.contains(&format!("rank {rank}"))), "{read}");
    assert_eq!(read.matches("ncclDevKernel_AllReduce").count(), 9 * STEPS as usize);
}
