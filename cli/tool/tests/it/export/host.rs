//! Launches by the host's clocks in `info`, `top`, `stats` and timelines, as from a GPU and a simulator.

use serde_json::{Value, json};
use warptrace_decoder::TraceFile;
use warptrace_format::account::WarpAccount;
use warptrace_format::codec::CodecSpec;
use warptrace_format::file::{
    AccountRun, ClockReading, DeviceInfo, HostLaunch, HostTimes, LaunchInfo, Metadata, TIMER_STEP, TIMES,
};
use warptrace_format::span::WarpSpan;
use warptrace_host::HostMessage;
use warptrace_host::writer::{TraceWriter, TrackEnd, WriterOptions};

use super::perfetto_file;
use crate::support::{Folder, run, text};

/// The host's real-time clock when the device's timer was `TIMER`.
const REALTIME: u64 = 1_790_000_000_500_000_000;
const TIMER: u64 = 9_000_000;
/// For each launch: nanoseconds from then until the device received it, and its duration for the host.
const LAUNCHES: [(u64, u64); 3] = [(10_000, 30_000), (20_000, 30_000), (100_000, 7_000)];

/// Writes three launches of one warp, which begins 5,000 ns after its launch and runs for 1,000 ns.
fn traced(folder: &Folder) -> String {
    let device = DeviceInfo::cuda("a GPU", (9, 0), "CUDA 13.0");
    let metadata = Metadata::new("warptrace test", device, vec![CodecSpec::Raw])
        .with_kernel("k", "")
        .with_pool(512, 1)
        .with_property(TIMES, "blocks")
        .with_property(TIMER_STEP, "32");
    let mut writer = TraceWriter::create(Vec::new(), &metadata, WriterOptions::default()).unwrap();
    let reading = |since: u64| ClockReading {
        realtime: REALTIME + since,
        monotonic: since,
        timer: Some(TIMER + since),
        width: 8_000,
    };
    let readings = |since| HostTimes { launches: Vec::new(), readings: vec![reading(since)] };
    writer.write_message(&HostMessage::Times(readings(0))).unwrap();
    let mut launches = Vec::new();
    for (launch, (begin, length)) in (0..).zip(LAUNCHES) {
        writer.begin_launch(&LaunchInfo::new(launch, 0, [1, 1, 1], [32, 1, 1], 0).unwrap()).unwrap();
        let accounts = [WarpAccount { finished: 1, ..WarpAccount::default() }];
        let begin_timer = TIMER + begin + 5_000;
        let spans = [WarpSpan {
            begin_clock: 7,
            begin_timer,
            end_clock: 1_807,
            end_timer: begin_timer + 1_000,
            begin_sm: 1,
            end_sm: 1,
        }];
        let accounts = AccountRun::of(&accounts);
        writer.end_tracks(&[TrackEnd { launch, track: 0, accounts, spans: &spans }]).unwrap();
        launches.push(HostLaunch { launch, begin: REALTIME + begin, nanoseconds: Some(length) });
    }
    writer.write_message(&HostMessage::Times(HostTimes { launches, readings: Vec::new() })).unwrap();
    writer.write_message(&HostMessage::Times(readings(200_000))).unwrap();
    let path = folder.at("gpu.wtrc");
    std::fs::write(&path, writer.finish().unwrap().0).unwrap();
    text(&path).to_owned()
}

#[test]
fn gaps_on_the_hosts_side_are_told() {
    let folder = Folder::new();
    let path = traced(&folder);
    let host = &super::json(&["stats", &path])["host"];
    // The second launch begins before the first one has ended.
    assert_eq!((&host["nanoseconds"], &host["gap_nanoseconds"]), (&json!(97_000), &json!(50_000)));
    assert_eq!(host["timer_within_nanoseconds"], 4_000);
    let gaps: Vec<&Value> =
        host["launches"].as_array().unwrap().iter().map(|launch| &launch["gap_nanoseconds"]).collect();
    assert_eq!(gaps, [&json!(0), &json!(0), &json!(50_000)]);
    let top = super::json(&["top", &path]);
    assert_eq!(top["host"]["launches"].as_array().unwrap().len(), 1);
    let said = "by the host's clock, 3 launches in 97.0 us: none was under way in 52% of it, for longest before launch 2 \
                (`k`), 50.0 us";
    let findings = top["schedule_findings"].as_array().unwrap();
    assert_eq!(findings.last().unwrap(), said, "{findings:?}");
    let (_, output, _) = run(&["info", &path]);
    let said = "\nhost         3 of 3 launches began from 1790000000.500010000 s after 1970-01-01 UTC on, and ended in \
                97.0 us; the device's timer is known to within 4.0 us\n";
    assert!(output.contains(said), "{output}");
    assert!(output.contains("; times in steps of 32 ns\n"), "{output}");
    let info = super::json(&["info", &path]);
    assert_eq!(info["host"]["begin"], (REALTIME + 10_000).to_string());
    assert_eq!(info["host"]["readings"][1]["timer"], (TIMER + 200_000).to_string());
}

#[test]
fn a_timeline_stands_on_the_hosts_clock() {
    let folder = Folder::new();
    let path = traced(&folder);
    let out = folder.at("out.pftrace");
    let (code, _, errors) = run(&["export", &path, "--to", "perfetto", "-o", text(&out)]);
    assert_eq!((code, errors.contains("lacks")), (0, false), "{errors}");
    let tracks = perfetto_file::tracks(&out);
    let about = perfetto_file::about(&tracks);
    // From the first launch by the host's clock.
    assert_eq!(about["realtime_at_axis_zero"], (REALTIME + 10_000).to_string());
    assert_eq!(about["axis_zero"], (TIMER + 10_000).to_string());
    let slices = |name: &str| -> Vec<Value> {
        let named = tracks.iter().filter(|track| track["path"].as_array().unwrap().last().unwrap() == name);
        let lasts = |slice: &Value| json!([slice[3]["launch"], slice[1], slice[2]]);
        named.map(|track| track["slices"].as_array().unwrap().iter().map(lasts).collect()).collect()
    };
    // Launches that overlap are in separate lanes.
    assert_eq!(
        slices("launches"),
        [json!([[0, 0, 30_000], [2, 90_000, 97_000]]), json!([[1, 10_000, 40_000]])]
    );
    let warps = [[0, 5_000, 6_000], [1, 15_000, 16_000], [2, 95_000, 96_000]];
    assert_eq!(slices("warp 0"), warps.map(|warp| json!([warp])));
}

#[test]
fn the_simulators_axis_begins_when_the_first_launch_did() {
    let folder = Folder::new();
    let path = folder.traced("mis", "a.wtrc", &["--graph", "road:300", "--times", "blocks"]);
    let trace = TraceFile::open(&path).unwrap();
    let first = trace.host_launches().map(|ran| ran.begin).min().unwrap();
    assert!(trace.launches().all(|info| trace.host_launch(info.number()).is_some()));
    let out = folder.at("out.pftrace");
    run(&["export", text(&path), "--to", "perfetto", "-o", text(&out)]);
    let tracks = perfetto_file::tracks(&out);
    let about = perfetto_file::about(&tracks);
    assert_eq!(about["realtime_at_axis_zero"], first.to_string());
    let said = about["realtime"].as_str().unwrap();
    assert!(said.contains("The simulator's time is none of the host"), "{said}");
    assert!(tracks.iter().all(|track| track["path"][0] != "host"));
    let (_, output, _) = run(&["info", text(&path)]);
    assert!(output.contains("; no device's timer was compared with it\n"), "{output}");
}
