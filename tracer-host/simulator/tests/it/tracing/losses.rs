//! Losses when memory is used up.

use super::*;

/// Asserts that each warp's recorded events are a prefix of all events. Returns the number of lost events.
fn check_beginnings(found: &Encoded, whole: &Encoded) -> u64 {
    check_part(found, whole, |all, events| all.starts_with(events))
}

/// Returns the number of lost events. Asserts that each warp's recorded events satisfy `is_part`.
fn check_part(found: &Encoded, whole: &Encoded, is_part: impl Fn(&[Event], &[Event]) -> bool) -> u64 {
    assert_eq!(found.streams.len(), whole.streams.len());
    for (number, (stream, all)) in found.streams.iter().zip(&whole.streams).enumerate() {
        assert!(is_part(&all.events, &stream.events), "stream {number} of {} events", all.events.len());
        assert_eq!(stream.account.attempted, all.events.len() as u64, "stream {number}");
        assert_eq!(stream.account.recorded, stream.events.len() as u64, "stream {number}");
    }
    found.lost()
}

/// Records in little log memory. `is_part`: only one recording per kernel.
pub(super) fn check_log_memory(is_part: bool) {
    let calls = [staircases(30), departures(60, 2), parted(150)];
    let (mut some, mut all, mut none) = (0, 0, 0);
    for (number, call) in calls.iter().enumerate() {
        let recordings = [RAW, DUAL];
        for recording in if is_part { &recordings[number % 2..][..1] } else { &recordings[..] } {
            let recording = *recording;
            let whole = record(call, 2, AMPLE, recording, in_turn(2));
            for (first, segment) in [(8, 8), (16, 32)] {
                for segments in [0, 1, 2, 3, 30, 100, 300, 1000] {
                    // The remaining entries are too few for one more segment.
                    let room = Room { first, segment, claimable: segments * segment + 7, ..AMPLE };
                    let found = record(call, 2, room, recording, in_turn(2));
                    let lost = check_beginnings(&found, &whole);
                    let recorded: u64 = found.streams.iter().map(|stream| stream.account.recorded).sum();
                    assert!(recorded > 0 || segments < 30, "there are some segments");
                    some += u32::from(lost > 0);
                    none += u32::from(lost == 0);
                    all += u32::from(found.streams.iter().all(|stream| stream.account.lost > 0));
                }
            }
        }
    }
    assert!(some > 0 && none > 0 && all > 0, "some lost {some} times, none {none}, of all warps {all}");
}

#[test]
fn what_finds_no_log_memory_is_lost_and_counted() {
    check_log_memory(true);
}

/// Records with rings of several lengths. `is_part`: only one recording per kernel.
pub(super) fn check_rings(is_part: bool) {
    let calls = [staircases(30), departures(60, 2), parted(150), loops(40)];
    let (mut some, mut none, mut longest) = (0, 0, 0);
    for (number, call) in calls.iter().enumerate() {
        let recordings = [RAW, DUAL, Recording { counting: Counting::All, ..DUAL }];
        for recording in if is_part { &recordings[number % 3..][..1] } else { &recordings[..] } {
            let recording = *recording;
            let whole = record(call, 2, AMPLE, recording, in_turn(2));
            let mut fewer = 0;
            for entries in if is_part { &[16, 64, 1024][..] } else { &[16, 32, 64, 256, 1024, 4096] } {
                let entries = *entries;
                let found = record(call, 2, AMPLE.rings(entries), recording, in_turn(2));
                let lost = check_part(&found, &whole, |all, events| all.ends_with(events));
                let recorded: u64 = found.streams.iter().map(|stream| stream.account.recorded).sum();
                assert!(recorded >= fewer.max(1), "a longer ring has no less");
                fewer = recorded;
                some += u32::from(lost > 0);
                none += u32::from(lost == 0);
                let room = Room { chunks: 9, merged: 32 * entries, ..AMPLE.rings(entries) };
                let in_rounds = record(call, 2, room, recording, in_turn(2));
                in_rounds.assert_same(&found);
                longest = longest.max(in_rounds.rounds.len());
            }
        }
    }
    let [few, fewer] = if is_part { [2, 1] } else { [20, 10] };
    assert!(
        some > few && none > fewer && longest > 3,
        "{some} lost something, {none} nothing; {longest} rounds"
    );
}

#[test]
fn rings_have_the_end_of_each_warps_events() {
    check_rings(true);
}

#[test]
fn losses_are_counted_whatever_the_codec() {
    let call = staircases(30);
    for codec in [CodecSpec::Raw, ECL, PREDICT] {
        let recording = Recording { codec, ..DUAL };
        let whole = record(&call, 2, AMPLE, recording, in_turn(2));
        let mut some = 0;
        // Little memory for logs, chunks, or merged runs: only the first causes losses.
        for (chunks, claimable, merged) in
            [(4000, 600, 1 << 16), (4000, 4000, 1 << 16), (9, 1 << 16, 1 << 16), (4000, 1 << 16, 5000)]
        {
            let room = Room { chunks, claimable, merged, ..AMPLE };
            let found = record(&call, 2, room, recording, in_turn(2));
            let lost = check_beginnings(&found, &whole) > 0;
            assert_eq!(lost, claimable < 1 << 16, "{room:?}");
            some += u32::from(found.rounds.len() > 1);
        }
        assert_eq!(some, 2, "{codec:?}");
    }
}

#[test]
fn a_stream_that_fits_into_no_memory_to_be_merged_in_is_lost_and_counted() {
    let call = staircases(9);
    let whole = record(&call, 2, AMPLE, RAW, in_turn(2));
    let needed = whole.rounds[0].merged_entries as u32;
    let (mut lost, mut rounds) = (Vec::new(), Vec::new());
    for merged in [0, 1, 300, 577, 1000, needed - 1, needed] {
        let found = record(&call, 2, Room { merged, ..AMPLE }, RAW, in_turn(2));
        lost.push(check_beginnings(&found, &whole));
        rounds.push(found.rounds.len());
    }
    let attempted: u64 = whole.streams.iter().map(|stream| stream.account.attempted).sum();
    assert_eq!((lost[0], lost[6], rounds[6]), (attempted, 0, 1));
    assert!(lost.is_sorted_by(|a, b| a >= b), "{lost:?}");
    assert_eq!((lost[5], rounds[5]), (0, 2));
}
