//! Addresses and values, from lanes' accesses to the file and back.
#![allow(clippy::unwrap_used, reason = "a failed test says where")]

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::Command;

use proptest::prelude::*;
use warptrace_decoder::{AccessProblem, Completeness, DecodeError, Problem, TraceFile, WarpFilter};
use warptrace_format::account::WarpAccount;
use warptrace_format::codec::CodecSpec;
use warptrace_format::data::native::WarpRecorder;
use warptrace_format::file::{Compression, Derived, LaunchInfo, SiteInfo, SiteKind, SiteSpace};
use warptrace_host::HostMessage;
use warptrace_host::writer::{DataChunk, TraceWriter, WriterOptions};

type Accesses = BTreeMap<(u16, u32), Vec<u64>>;

struct Warp {
    stream: Vec<u8>,
    account: WarpAccount,
    accesses: Accesses,
}

const LAUNCH: u32 = 5;

#[derive(Clone, Debug)]
struct Step {
    mask: u32,
    site: u16,
    form: u8,
    seed: u64,
}

fn step() -> impl Strategy<Value = Step> {
    let mask =
        prop_oneof![3 => Just(u32::MAX), 1 => Just(0x0000_ffff), 1 => Just(0x8000_0001), 2 => any::<u32>()];
    (mask, 1u16..5, 0u8..6, any::<u64>()).prop_map(|(mask, site, form, seed)| Step { mask, site, form, seed })
}

fn access(step: &Step, lane: u32, turn: u64) -> u64 {
    let Step { form, seed, .. } = step;
    let (lane, mixed) = (u64::from(lane), seed.wrapping_mul(turn + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    match form {
        0 => 0x1000 + 4 * lane + 128 * turn,
        1 => 0x2000 + (turn / 4) * 16,
        2 => 0x3000 + 4 * (((mixed >> 20) ^ (lane * 77)) % 256),
        3 => mixed ^ lane << 50,
        4 => 0x4000 + seed % 3 * lane,
        _ => 0u64.wrapping_sub(8 * turn),
    }
}

fn record(steps: &[Step], room: usize, apart: bool, start: u32) -> Warp {
    let (mut recorder, mut accesses, mut time) = (WarpRecorder::new(room), Accesses::new(), start);
    for (turn, step) in (0u64..).zip(steps) {
        let lanes = (0..32u32).filter(|lane| step.mask >> lane & 1 == 1);
        let vector: Vec<(u32, u64)> = lanes.map(|lane| (lane, access(step, lane, turn))).collect();
        for (lane, access) in &vector {
            accesses.entry((step.site, *lane)).or_default().push(*access);
            for (site, derived) in derived().into_iter().filter(|(_, derived)| derived.root == step.site) {
                accesses.entry((site, *lane)).or_default().push(derived.address(*access));
            }
        }
        let (low, high) = vector.split_at(if apart { vector.len() / 2 } else { 0 });
        for part in [low, high] {
            time = time.wrapping_add(1 + (step.seed % 3) as u32);
            recorder.access(step.site, time, part);
        }
    }
    for mask in [0x0f0f_0f0f, 0xf0f0_f0f0] {
        time = time.wrapping_add(1);
        recorder.leave(time, mask);
    }
    let (attempted, lost) = (recorder.attempted, recorder.lost);
    let stream = recorder.finish().concat().into_iter().flat_map(u32::to_le_bytes).collect();
    let account = WarpAccount { attempted, recorded: attempted - lost, lost, chunks: 0, finished: 1 };
    Warp { stream, account, accesses }
}

fn derived() -> [(u16, Derived); 3] {
    [(5, 1, 12, false), (6, 1, -(1 << 40), false), (7, 2, -24, true)]
        .map(|(site, root, offset, is_narrow)| (site, Derived { root, offset, is_narrow }))
}

fn site(number: u16) -> SiteInfo {
    SiteInfo::new(number, SiteKind::Load, SiteSpace::Global, 4).at(number, "k.cu", 10)
}

fn sites() -> Vec<SiteInfo> {
    let derived = derived().map(|(number, derived)| SiteInfo { derived: Some(derived), ..site(number) });
    (1..5).map(site).chain(derived).collect()
}

fn file(warps: &[Warp], chunk: usize, batch: usize) -> Vec<u8> {
    file_with(warps, (chunk, batch), WriterOptions::default())
}

fn file_with(warps: &[Warp], (chunk, batch): (usize, usize), options: WriterOptions) -> Vec<u8> {
    let metadata = crate::recordings::metadata(vec![CodecSpec::Raw]);
    let mut writer = TraceWriter::create(Vec::new(), &metadata, options).unwrap();
    writer.write_message(&HostMessage::Sites(sites())).unwrap();
    let launch = LaunchInfo::new(LAUNCH, 0, [warps.len() as u32, 1, 1], [32, 1, 1], 0).unwrap();
    writer.begin_launch(&launch).unwrap();
    let chunks: Vec<DataChunk<'_>> = (0..)
        .zip(warps)
        .flat_map(|(warp, of)| {
            let chunks = (0..).zip(of.stream.chunks(16 * chunk));
            chunks.map(move |(sequence, entries)| DataChunk { warp, sequence, entries })
        })
        .collect();
    let longest = chunks.iter().map(|chunk| chunk.sequence as usize + 1).max().unwrap_or(0);
    for from in (0..longest).step_by(batch) {
        let here = chunks.iter().filter(|chunk| (from..from + batch).contains(&(chunk.sequence as usize)));
        writer.write_data(LAUNCH, &here.rev().copied().collect::<Vec<_>>()).unwrap();
    }
    let none = WarpAccount { finished: 1, ..WarpAccount::default() };
    writer.end_launch(LAUNCH, 0, &vec![none; warps.len()]).unwrap();
    let account =
        |warp: &Warp| WarpAccount { chunks: warp.stream.len().div_ceil(16 * chunk) as u32, ..warp.account };
    writer.end_data(LAUNCH, &warps.iter().map(account).collect::<Vec<_>>()).unwrap();
    writer.finish().unwrap().0
}

/// Returns the accesses of each warp's lanes, and the number of accesses left out.
fn read(trace: &TraceFile) -> Result<BTreeMap<u32, (Accesses, u64)>, DecodeError> {
    let followers =
        |root: u16| derived().into_iter().filter(|(_, derived)| derived.root == root).count() as u64;
    let mut found = BTreeMap::new();
    let flow = trace.accesses_in_order(LAUNCH, &WarpFilter::all(), &mut |warp| {
        let of = |(site, lane)| ((site, lane), warp.lane(site, lane).collect::<Vec<_>>());
        let accesses: Accesses = warp.each_lane().map(of).collect();
        assert_eq!(accesses.values().map(|of| of.len() as u64).sum::<u64>(), warp.accesses());
        assert_eq!(warp.in_order().iter().map(|run| run.accesses()).sum::<u64>(), warp.accesses());
        assert!(warp.in_order().is_sorted_by_key(|run| run.time));
        let lacking = warp.left_out + warp.unmatched;
        assert_eq!(warp.accesses() + lacking, warp.recorded + warp.derived);
        // Without a table of sites, no site is derived.
        if lacking == 0 && trace.derived_sites() > 0 {
            let follow = accesses.iter().map(|((site, _), of)| followers(*site) * of.len() as u64);
            assert_eq!(follow.sum::<u64>(), warp.derived);
        }
        assert!(found.insert(warp.warp, (accesses, warp.left_out + warp.unmatched)).is_none());
        ControlFlow::Continue(())
    })?;
    assert_eq!(flow, ControlFlow::Continue(()));
    Ok(found)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn what_lanes_access_is_read(
        steps in prop::collection::vec(prop::collection::vec((step(), 1usize..40), 1..12), 1..4),
        room in prop_oneof![2 => Just(usize::MAX), 3 => 0usize..400],
        (chunk, batch) in (1usize..50, 1usize..5),
        apart in any::<bool>(),
        start in any::<u32>(),
    ) {
        let warps: Vec<Warp> = steps.iter().map(|steps| {
            let all: Vec<Step> = steps.iter().flat_map(|(step, times)| vec![step.clone(); *times]).collect();
            record(&all, room, apart, start)
        }).collect();
        let trace = TraceFile::from_bytes(file(&warps, chunk, batch)).unwrap();
        let found = read(&trace).unwrap();
        let mut left_out = 0;
        for (number, warp) in (0u32..).zip(&warps) {
            let Some((accesses, left)) = found.get(&number) else {
                prop_assert!(warp.stream.is_empty());
                continue;
            };
            // A prefix of each lane's accesses; all of them if nothing was lost.
            for (lane, accesses) in accesses {
                prop_assert!(warp.accesses[lane].starts_with(accesses), "{lane:?}");
            }
            let known: u64 = accesses.values().map(|of| of.len() as u64).sum();
            let recorded: u64 = accesses.iter().filter(|((site, _), _)| *site < 5).map(|(_, of)| of.len() as u64).sum();
            prop_assert!(known >= recorded && recorded <= warp.account.recorded);
            prop_assert_eq!(*left == 0, recorded == warp.account.recorded);
            if warp.account.lost == 0 {
                prop_assert_eq!(accesses, &warp.accesses);
            }
            left_out += left;
        }
        let lost: u64 = warps.iter().map(|warp| warp.account.lost).sum();
        let report = trace.verify();
        let is_lost = |problem: &Problem| {
            matches!(problem, Problem::Accesses { problem: AccessProblem::Lost { .. }, .. })
        };
        prop_assert!(report.problems.iter().all(is_lost), "{report}");
        prop_assert_eq!((report.lost_accesses, report.unmatched_accesses), (lost, left_out));
        prop_assert_eq!(report.is_ok(), lost == 0);
        prop_assert_eq!(trace.state().is_whole, lost == 0, "{}", trace.state().sentence);
    }
}

fn reference(command: &str, bytes: &[u8]) -> Option<(String, Option<i32>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readers = root.join(".toolchain/readers");
    let python = || {
        let mut python = Command::new("python3");
        python.env("PYTHONPATH", &readers).env("PYTHONDONTWRITEBYTECODE", "1");
        python
    };
    let has_package =
        python().args(["-c", "import zstandard"]).output().is_ok_and(|output| output.status.success());
    if !has_package {
        println!("skipped: python3 with the package zstandard is not there (`cargo xtask setup --tests`)");
        return None;
    }
    let file = std::env::temp_dir().join(format!(
        "warptrace-accesses-{}-{:?}.wtrc",
        std::process::id(),
        std::thread::current().id()
    ));
    std::fs::write(&file, bytes).unwrap();
    let output = python().arg(root.join("decoder/reference")).arg(command).arg(&file).output().unwrap();
    std::fs::remove_file(&file).unwrap();
    let text = String::from_utf8(output.stdout).unwrap() + &String::from_utf8(output.stderr).unwrap();
    Some((text, output.status.code()))
}

#[test]
fn a_second_reader_finds_the_same() {
    check_second_reader(&[(usize::MAX, 7, 1), (usize::MAX, 1000, 1)]);
}

#[test]
fn a_second_reader_finds_the_same_where_accesses_are_lost() {
    check_second_reader(&[(300, 9, 2), (20, 50, 50)]);
}

/// Compares both readers on traces with these sizes: warp capacity, chunk entries, sequence numbers per call.
fn check_second_reader(sizes: &[(usize, usize, usize)]) {
    let steps = |seed: u64| -> Vec<Step> {
        let step = |turn: u64| Step {
            mask: [u32::MAX, 0xffff, 0x8000_0001, 0x1248_1248][(turn / 7 % 4) as usize],
            site: 1 + (turn % 4) as u16,
            form: ((turn + seed) % 6) as u8,
            seed: seed + turn / 20,
        };
        (0..120).map(step).collect()
    };
    for &(room, chunk, batch) in sizes {
        let warps: Vec<Warp> =
            (0..3).map(|warp| record(&steps(warp), room, warp == 1, 0xffff_fff0)).collect();
        let bytes = file(&warps, chunk, batch);
        let trace = TraceFile::from_bytes(bytes.clone()).unwrap();
        let mut expected = "launch,warp,site,lane,access\n".to_owned();
        for (warp, (accesses, _)) in read(&trace).unwrap() {
            for ((site, lane), accesses) in accesses {
                let line = |access| format!("{LAUNCH},{warp},{site},{lane},{access:#x}\n");
                expected.extend(accesses.into_iter().map(line));
            }
        }
        let Some((text, code)) = reference("accesses", &bytes) else { return };
        assert_eq!((text == expected, code), (true, Some(0)), "{room} {chunk} {batch}: {text:.2000}");
        let is_ok = trace.verify().is_ok();
        let (text, code) = reference("check", &bytes).unwrap();
        assert_eq!(code, Some(if is_ok { 0 } else { 3 }), "{text}");
    }
}

/// Damages every `step`th byte, one at a time.
fn check_second_reader_of_damage(step: usize) {
    let (bytes, _) = sample();
    for at in (100..bytes.len() - 100).step_by(step) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 4;
        let Ok(trace) = TraceFile::from_bytes(damaged.clone()) else { continue };
        assert!(!trace.verify().is_ok());
        let Some((text, code)) = reference("check", &damaged) else { return };
        assert_ne!(code, Some(0), "byte {at}: {text}");
    }
}

#[test]
fn a_second_reader_notices_damage() {
    check_second_reader_of_damage(3310);
}

fn sample() -> (Vec<u8>, Vec<Warp>) {
    let step = |site, form| Step { mask: u32::MAX, site, form, seed: 77 };
    let warps: Vec<Warp> = (0..3u32)
        .map(|warp| {
            let steps: Vec<Step> =
                (0..20 + 10 * warp).map(|turn| step(1 + (turn % 2) as u16, (turn % 2 * 2) as u8)).collect();
            record(&steps, usize::MAX, false, 100 * warp)
        })
        .collect();
    (file(&warps, 10, 1), warps)
}

#[test]
fn readers_of_events_find_the_same_with_and_without_accesses() {
    let (bytes, _) = sample();
    let trace = TraceFile::from_bytes(bytes).unwrap();
    assert!(trace.has_accesses());
    assert_eq!(trace.verify().to_string().lines().last(), Some("result    no problem found"));
    assert_eq!(trace.metadata().tracks.len(), 1);
    assert_eq!(trace.totals(LAUNCH, 0).frames, 0);
    let totals = trace.totals(LAUNCH, trace.data_track());
    let report = trace.verify();
    assert_eq!((totals.events, report.accesses), (report.accesses, 20 * 32 + 30 * 32 + 40 * 32));
    // Two sites are derived from the first one, and one from the second.
    let says = "accesses  2880 and 4320 that follow from them, lost: 0, left out for that: 0";
    assert!(report.to_string().contains(says), "{report}");
}

#[test]
fn damage_is_local_and_reported() {
    let (bytes, warps) = sample();
    let whole = read(&TraceFile::from_bytes(bytes.clone()).unwrap()).unwrap();
    let mut seen = [0; 3];
    for at in (0..bytes.len()).step_by(5) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        let Ok(trace) = TraceFile::from_bytes(damaged) else { continue };
        assert!(!trace.verify().is_ok(), "byte {at}");
        match read(&trace) {
            Err(_) => seen[0] += 1,
            Ok(found) if found == whole => seen[1] += 1,
            Ok(found) => {
                // A section with an unreadable header is missing; all warps but its own are unchanged.
                // Without a table of sites, no warp has derived accesses.
                if *trace.completeness() != Completeness::Complete || trace.sites().len() == 0 {
                    continue;
                }
                let others = found.iter().filter(|(warp, found)| whole[warp] != **found).count();
                assert!(others + whole.len() - found.len() <= 1, "byte {at}");
                seen[2] += 1;
            }
        }
    }
    assert!(seen[0] > 20 && seen[1] > 20, "{seen:?}");
    assert_eq!(whole.len(), warps.len());
}

fn damage_behind_right_checksums(step: usize) {
    let bytes = sample().0;
    for at in (150..bytes.len()).step_by(step) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        warptrace_decoder::fuzzing::open(&damaged);
    }
}

#[test]
fn damage_behind_right_checksums_is_survived() {
    damage_behind_right_checksums(19);
}

#[test]
fn the_golden_file_is_written_and_read_as_before() {
    let (_, warps) = sample();
    let options = WriterOptions::default().with_compression(Compression::None);
    let written = file_with(&warps, (10, 3), options);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let path = root.join("decoder/decode/tests/golden/accesses-v2.wtrc");
    crate::support::assert_golden(&path, &written);
    let golden = std::fs::read(&path).unwrap();
    let found = read(&TraceFile::from_bytes(golden).unwrap()).unwrap();
    for (number, warp) in (0..).zip(&warps) {
        assert_eq!(found[&number], (warp.accesses.clone(), 0));
    }
}

#[test]
fn what_accounts_and_sites_say_is_checked() {
    let (_, mut warps) = sample();
    warps[0].account.recorded += 1;
    warps[1].account.lost += 3;
    let text = TraceFile::from_bytes(file(&warps, 10, 9)).unwrap().verify().to_string();
    assert!(
        text.contains("warp 0: 641 accesses attempted") || text.contains("warp 0: 640 accesses attempted"),
        "{text}"
    );
    assert!(text.contains("warp 0: 641 accesses accounted for, 640 found"), "{text}");
    assert!(text.contains("lost 3 of"), "{text}");
    // A site that is missing from the table.
    let step = Step { mask: 3, site: 9, form: 0, seed: 0 };
    let text =
        TraceFile::from_bytes(file(&[record(&[step], 99, false, 0)], 4, 4)).unwrap().verify().to_string();
    assert!(text.contains("warp 0: site 9 is not in the table of sites"), "{text}");
    let step = Step { mask: 3, site: 5, form: 0, seed: 0 };
    let bytes = file(&[record(&[step], 99, false, 0)], 4, 4);
    let text = TraceFile::from_bytes(bytes.clone()).unwrap().verify().to_string();
    assert!(text.contains("warp 0: 2 accesses, or the lanes of some group, belong to nothing"), "{text}");
    if let Some((text, code)) = reference("check", &bytes) {
        assert_ne!(code, Some(0), "{text}");
    }
    // Entries that no kernel writes, and values without a header.
    let mut odd = record(&[Step { mask: 1, site: 1, form: 0, seed: 0 }], 99, false, 0);
    odd.stream.extend([0; 16]);
    odd.stream.drain(..16);
    let text = TraceFile::from_bytes(file(&[odd], 4, 4)).unwrap().verify().to_string();
    assert!(text.contains("warp 0: 1 entries that no kernel writes"), "{text}");
    assert!(text.contains("belong to nothing"), "{text}");
}

#[test]
fn sections_of_sites_that_contradict_each_other_are_reported() {
    let metadata = crate::recordings::metadata(vec![CodecSpec::Raw]);
    let mut writer = TraceWriter::create(Vec::new(), &metadata, WriterOptions::default()).unwrap();
    let follows = |root| Some(Derived { root, offset: 4, is_narrow: false });
    writer
        .write_message(&HostMessage::Sites(vec![site(1), SiteInfo { derived: follows(1), ..site(2) }]))
        .unwrap();
    writer
        .write_message(&HostMessage::Sites(vec![site(2), SiteInfo { derived: follows(2), ..site(3) }]))
        .unwrap();
    let bytes = writer.finish().unwrap().0;
    let trace = TraceFile::from_bytes(bytes.clone()).unwrap();
    assert!(!trace.state().is_whole && !trace.verify().is_ok());
    let text = trace.verify().to_string();
    assert!(text.contains("site 3 follows from site 2, which another section has otherwise"), "{text}");
    if let Some((text, code)) = reference("check", &bytes) {
        assert_eq!(code, Some(3), "{text}");
    }
}

#[test]
fn the_writer_refuses_what_it_cannot_write() {
    let metadata = crate::recordings::metadata(vec![CodecSpec::Raw]);
    let mut writer = TraceWriter::create(Vec::new(), &metadata, WriterOptions::default()).unwrap();
    writer.begin_launch(&LaunchInfo::new(0, 0, [2, 1, 1], [32, 1, 1], 0).unwrap()).unwrap();
    let chunk = |warp, sequence, entries| DataChunk { warp, sequence, entries };
    let entry = [1u8; 16];
    for (launch, chunk) in [
        (1, chunk(0, 0, &entry[..])),
        (0, chunk(2, 0, &entry)),
        (0, chunk(0, 0, &entry[..15])),
        (0, chunk(0, 0, &[])),
    ] {
        assert!(writer.write_data(launch, &[chunk]).is_err(), "{chunk:?}");
    }
    writer.write_data(0, &[chunk(1, 4, &entry)]).unwrap();
    assert!(writer.write_data(0, &[chunk(1, 4, &entry)]).is_err(), "twice");
    writer.end_data(0, &[WarpAccount::default(); 2]).unwrap();
    assert!(writer.end_data(0, &[WarpAccount::default(); 2]).is_err(), "twice");
    assert!(writer.write_data(0, &[chunk(1, 5, &entry)]).is_err(), "ended");
}

mod full {
    #[test]
    fn a_second_reader_notices_damage() {
        super::check_second_reader_of_damage(331);
    }

    #[test]
    fn damage_behind_right_checksums_is_survived() {
        super::damage_behind_right_checksums(3);
    }
}
