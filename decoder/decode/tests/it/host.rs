//! Host times of launches, and conversion of the device's timer.
#![allow(clippy::unwrap_used, reason = "a failed test says where")]

use crate::support::sections::Sections;
use warptrace_decoder::{OnHost, Problem, TraceFile};
use warptrace_format::account::WarpAccount;
use warptrace_format::codec::CodecSpec;
use warptrace_format::file::{ClockReading, Compression, HostLaunch, HostTimes, LaunchInfo};

/// The host's real-time clock at the first reading.
const REALTIME: u64 = 1_790_000_000_000_000_000;

fn reading(timer: u64, since: u64, width: u64) -> ClockReading {
    ClockReading { realtime: REALTIME + since, monotonic: 5_000 + since, timer: Some(timer), width }
}

fn launch(launch: u32, begin: u64) -> HostLaunch {
    HostLaunch { launch, begin, nanoseconds: Some(10) }
}

fn bytes(all: &[HostTimes]) -> Vec<u8> {
    let metadata = crate::support::metadata(vec![CodecSpec::Raw]);
    let mut file = Sections::new(&metadata);
    for number in 0..3 {
        let launch = LaunchInfo::new(number, 0, [1, 1, 1], [32, 1, 1], 0).unwrap();
        file.put(&launch.encode_section());
        file.put_accounts(&launch, 0, &[WarpAccount { finished: 1, ..WarpAccount::default() }], &[]);
    }
    all.iter().for_each(|times| file.put(&times.encode_section(Compression::Suited).unwrap()));
    file.finish()
}

fn trace(all: &[HostTimes]) -> TraceFile {
    TraceFile::from_bytes(bytes(all)).unwrap()
}

#[test]
fn the_timer_is_put_on_the_hosts_clock_between_readings_and_beyond() {
    // Between the readings, the timer advances by 1,000 and the host clock by 1,100.
    let readings = vec![reading(400, 0, 90), reading(1_400, 1_100, 31)];
    let trace = trace(&[HostTimes { launches: Vec::new(), readings }]);
    for (timer, since) in [(400, 0), (900, 550), (1_400, 1_100), (1_500, 1_200), (390, -10)] {
        let realtime = REALTIME.wrapping_add_signed(since);
        assert_eq!(trace.on_host(timer), Some(OnHost { realtime, within: 45 }), "{timer}");
    }
    assert!(trace.verify().is_ok());
}

#[test]
fn one_reading_is_enough_and_none_says_nothing() {
    let reading = reading(400, 0, 90);
    let one = trace(&[HostTimes { launches: Vec::new(), readings: vec![reading] }]);
    assert_eq!(one.on_host(1_400).unwrap().realtime, REALTIME + 1_000);
    assert_eq!(one.on_host(300).unwrap().realtime, REALTIME - 100);
    let readings = vec![ClockReading { timer: None, ..reading }];
    assert_eq!(trace(&[HostTimes { launches: Vec::new(), readings }]).on_host(400), None);
    assert_eq!(trace(&[]).on_host(400), None);
}

#[test]
fn launches_of_several_sections_are_there_also_without_an_index() {
    let times = |launches: &[HostLaunch]| HostTimes { launches: launches.to_vec(), readings: Vec::new() };
    let all = bytes(&[times(&[launch(2, 70), launch(0, 50)]), times(&[launch(1, 60)])]);
    for bytes in [all.clone(), all[..all.len() - 48].to_vec()] {
        let trace = TraceFile::from_bytes(bytes).unwrap();
        let found: Vec<_> = trace.host_launches().copied().collect();
        assert_eq!(found, [launch(0, 50), launch(1, 60), launch(2, 70)]);
        assert_eq!(trace.host_launch(1), Some(&launch(1, 60)));
    }
}

#[test]
fn launches_that_are_told_of_twice_or_are_not_there_are_reported() {
    let times = |launches: &[HostLaunch]| HostTimes { launches: launches.to_vec(), readings: Vec::new() };
    for (bad, words) in [
        (times(&[launch(1, 60)]), "launch 1 is told of a second time"),
        (times(&[launch(3, 60)]), "launch 3 is not in the file"),
    ] {
        let trace = trace(&[times(&[launch(1, 50)]), bad]);
        let problems = trace.verify().problems;
        let [Problem::Unreadable(error)] = &problems[..] else { panic!("{problems:?}") };
        assert!(error.to_string().contains(words), "{error}");
        assert!(
            trace.state().sentence.contains("times of launches by the host's clock"),
            "{:?}",
            trace.state()
        );
        assert_eq!(trace.host_launch(1), Some(&launch(1, 50)));
    }
}
