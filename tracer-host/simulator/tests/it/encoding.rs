//! Cooperative encoding of stretches by several lanes, compared with the encoder of one thread.

use warptrace_abi::log::LoggedLaunch;
use warptrace_abi::pool::PoolDescriptor;
use warptrace_encode::{PREDICT_THREADS, encode_predict_call};
use warptrace_format::account::WarpAccount;
use warptrace_format::chunk::CHUNK_HEADER_BYTES;
use warptrace_format::codec::predict::stack::DEPTH;
use warptrace_format::codec::{PredictParams, PredictState};
use warptrace_format::{Event, SliceMemory};
use warptrace_sim::{Launch, Simulator};

const CHUNK_BYTES: usize = 8192;
const PAYLOAD_BYTES: usize = CHUNK_BYTES - CHUNK_HEADER_BYTES as usize;
const UNTOUCHED: u32 = 0xcccc_cccc;
/// Values in a chunk's header: its stretch waits for several lanes, or for one.
const COOPERATIVE: u32 = u32::MAX - 3;
const SERIAL: u32 = u32::MAX - 2;
const LAUNCH: u32 = 5;
const WARPS: u32 = 7;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct EncodedRun {
    mask: u32,
    location: u16,
    count: u32,
}

struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 32) as u32
    }

    fn below(&mut self, limit: u32) -> u32 {
        ((u64::from(self.next()) * u64::from(limit)) >> 32) as u32
    }

    fn inside(&mut self, mask: u32) -> u32 {
        let some = mask & self.next();
        if some == 0 { mask & mask.wrapping_neg() } else { some }
    }
}

fn serially(params: PredictParams, runs: &[EncodedRun]) -> (u32, Vec<u8>) {
    let (mut work, mut payload) = (vec![0xa5; params.work_bytes() as usize], vec![0xcc; PAYLOAD_BYTES]);
    let (mut work, mut out) = (SliceMemory(&mut work), SliceMemory(&mut payload));
    let mut state = PredictState::new();
    state.begin_chunk(&params, &mut work);
    let mut events = 0;
    for run in runs {
        assert!(state.has_room(PAYLOAD_BYTES as u32), "the test's stretch fits");
        let event = Event { location: run.location, mask: run.mask };
        assert_eq!(state.push_run(&params, &mut work, &mut out, event, run.count), run.count);
        events += run.count;
    }
    let length = state.finish_chunk(&params, &mut work, &mut out);
    payload.truncate(length as usize);
    (events, payload)
}

/// Encodes stretches cooperatively. Stretches with the `excepted` numbers must stay unencoded.
fn check_but(params: PredictParams, stretches: &[Vec<EncodedRun>], blocks: u32, excepted: &[usize]) {
    // After each stretch, words that must not be read as a run.
    let log: Vec<Vec<[u32; 4]>> = stretches
        .iter()
        .map(|runs| {
            let words = |run: &EncodedRun| [run.mask, u32::from(run.location), run.count, 0];
            runs.iter().map(words).chain([[UNTOUCHED; 4]]).collect()
        })
        .collect();
    let mut chunks = vec![UNTOUCHED; (stretches.len() + 1) * CHUNK_BYTES / 4];
    for (number, (chunk, runs)) in chunks.chunks_mut(CHUNK_BYTES / 4).zip(&log).enumerate() {
        let at = runs.as_ptr().expose_provenance() as u64;
        let waiting = if excepted.contains(&number) { SERIAL } else { COOPERATIVE };
        let (warp, number) = (number as u32 % WARPS, number as u32);
        let header = [warp, number, runs.len() as u32 - 1, waiting, 0, 0, at as u32, (at >> 32) as u32];
        chunk[..8].copy_from_slice(&header);
    }
    let before = chunks.clone();
    let mut accounts =
        vec![WarpAccount { attempted: 0, recorded: 0, lost: 0, chunks: 0, finished: 1 }; WARPS as usize];
    let pool = PoolDescriptor {
        chunks: chunks.as_mut_ptr().expose_provenance() as u64,
        chunk_count: stretches.len() as u32 + 1,
        chunk_bytes: CHUNK_BYTES as u32,
        ..PoolDescriptor::default()
    };
    let mut table = [LoggedLaunch {
        accounts: accounts.as_mut_ptr().expose_provenance() as u64,
        warps: WARPS,
        launch: LAUNCH,
        tracks: 1,
        ..LoggedLaunch::default()
    }];
    let table_at = table.as_mut_ptr().expose_provenance() as u64;
    let call = encode_predict_call(&pool, table_at, 1, stretches.len() as u32, params);
    let launch = Launch::new([blocks, 1, 1], [PREDICT_THREADS, 1, 1]).threads(1);
    // SAFETY: the memory has the sizes that the call requires, and outlives the launch.
    let thread = unsafe { call.thread() };
    Simulator::new().launch(&launch, &|| thread()).expect("a correct kernel of the encoder");

    let mut expected = vec![(0, 0); WARPS as usize];
    for (number, runs) in stretches.iter().enumerate() {
        let words = number * CHUNK_BYTES / 4..(number + 1) * CHUNK_BYTES / 4;
        let (found, before) = (&chunks[words.clone()], &before[words]);
        if excepted.contains(&number) {
            assert!(found == before, "stretch {number} is for one thread");
            continue;
        }
        let (events, payload) = serially(params, runs);
        let warp = number as u32 % WARPS;
        let header = [warp, number as u32, events, payload.len() as u32, LAUNCH, 0, 0, 0];
        assert_eq!(found[..8], header, "the header of stretch {number}");
        let bytes: Vec<_> = found[8..].iter().flat_map(|word| word.to_le_bytes()).collect();
        let (bytes, after) = bytes.split_at(payload.len());
        let wrong = bytes.iter().zip(&payload).position(|(found, expected)| found != expected);
        assert_eq!(wrong, None, "the first wrong byte of stretch {number} of {} runs", runs.len());
        let (rest, after) = after.split_at(payload.len().next_multiple_of(4) - payload.len());
        assert!(rest.iter().all(|&byte| byte == 0), "zeros fill the last word");
        assert!(after.iter().all(|&byte| byte == 0xcc), "nothing is written after stretch {number}");
        let account = &mut expected[warp as usize];
        *account = (account.0 + u64::from(events), account.1 + 1);
    }
    let found: Vec<_> = accounts.iter().map(|account| (account.recorded, account.chunks)).collect();
    assert_eq!(found, expected);
    let last = stretches.len() * CHUNK_BYTES / 4;
    assert!(chunks[last..].iter().all(|&word| word == UNTOUCHED), "no other chunk is written");
}

fn check(params: PredictParams, stretches: &[Vec<EncodedRun>]) {
    check_but(params, stretches, (stretches.len() as u32).div_ceil(20), &[]);
}

fn lengths() -> impl Iterator<Item = usize> {
    (1..=35).chain([47, 48, 49, 63, 64, 65, 95, 96, 97, 127, 128, 129, 340, 600])
}

fn stretches(
    numbers: &mut Numbers,
    mut next: impl FnMut(&mut Numbers, &[EncodedRun]) -> EncodedRun,
) -> Vec<Vec<EncodedRun>> {
    lengths()
        .map(|length| {
            let mut runs = Vec::new();
            while runs.len() < length {
                let run = next(numbers, &runs);
                runs.push(run);
            }
            runs
        })
        .collect()
}

#[test]
fn runs_of_any_kind() {
    let mut numbers = Numbers(1);
    for (locations, masks, counts) in
        [(3, 2, 1), (5, 3, 3), (40, 6, 2), (300, 1000, 1), (65_535, 5, 4), (12, 12, 300), (4, 4, 20_000)]
    {
        let masks: Vec<_> = (0..masks).map(|_| numbers.next() | 1).chain([u32::MAX]).collect();
        let all = stretches(&mut numbers, |numbers, _| EncodedRun {
            mask: masks[numbers.below(masks.len() as u32) as usize],
            location: 1 + numbers.below(locations) as u16,
            count: 1 + numbers.below(counts),
        });
        for slot_bits in [2, 5, 10] {
            check(PredictParams { slot_bits }, &all);
        }
    }
}

/// Builds control flow like in programs: branches, loops that lanes leave, lanes that reconverge.
fn nested(numbers: &mut Numbers, length: usize, counts: u32, locations: u32) -> Vec<EncodedRun> {
    let mut runs = Vec::new();
    let mut outside = vec![(u32::MAX, 1)];
    while runs.len() < length {
        let (mask, location) = *outside.last().expect("the outermost stays");
        let at = |add: u32| (1 + (location + add) % locations) as u16;
        let inside = numbers.inside(mask);
        let count = 1 + if numbers.below(3) == 0 { numbers.below(counts) } else { 0 };
        match numbers.below(10) {
            0..=2 => outside.push((inside, location + 1 + numbers.below(4))),
            3 => {
                runs.push(EncodedRun { mask: inside, location: at(1), count });
                if mask != inside {
                    runs.push(EncodedRun { mask: mask & !inside, location: at(2), count: 1 });
                }
            }
            4 => {
                let mut inside = mask;
                for _ in 0..numbers.below(20) {
                    runs.push(EncodedRun { mask: inside, location: at(3), count });
                    inside = numbers.inside(inside);
                }
            }
            5..=6 if outside.len() > 1 => drop(outside.pop()),
            7 => outside.truncate(1),
            8 => {
                for number in 0..numbers.below(30) {
                    runs.push(EncodedRun { mask, location: at(4 + number % 5), count });
                }
            }
            _ => runs.push(EncodedRun { mask, location: at(0), count }),
        }
    }
    runs.truncate(length);
    runs
}

#[test]
fn masks_inside_of_masks() {
    let mut numbers = Numbers(2);
    for (counts, locations) in [(1, 6), (1, 60), (4, 9), (1000, 5), (3, 33), (2, 64)] {
        for slot_bits in [2, 5, 7] {
            let all: Vec<_> = lengths()
                .chain(lengths())
                .map(|length| nested(&mut numbers, length, counts, locations))
                .collect();
            check(PredictParams { slot_bits }, &all);
        }
    }
}

#[test]
fn deeper_than_the_stack() {
    let mut numbers = Numbers(3);
    let mut all = Vec::new();
    for length in lengths() {
        // Goes several levels down and up, so that masks drop out of the stack, miss, and are replaced.
        let mut levels = vec![u32::MAX];
        let runs = (0..length).map(|_| {
            let deeper = numbers.below(3) != 0 && levels.len() < 20;
            if deeper {
                let mask = *levels.last().expect("one stays");
                let gone = numbers.inside(mask & mask.wrapping_sub(1) | mask & mask.wrapping_neg());
                let inside = if mask & !gone == 0 { mask } else { mask & !(gone & gone.wrapping_neg()) };
                levels.push(inside);
            } else {
                let by = numbers.below(2 + DEPTH as u32) as usize;
                levels.truncate(levels.len().saturating_sub(by).max(1));
            }
            EncodedRun {
                mask: *levels.last().expect("one stays"),
                location: 1 + numbers.below(4) as u16,
                count: 1 + numbers.below(2),
            }
        });
        all.push(runs.collect());
    }
    check(PredictParams::DEFAULT, &all);
    check(PredictParams { slot_bits: 2 }, &all);
}

#[test]
fn second_events_that_miss() {
    // Each location learns a transition or another mask first. Then its event repeats.
    let mut numbers = Numbers(4);
    let all = stretches(&mut numbers, |numbers, before| {
        let location = match before.last() {
            Some(last) if numbers.below(3) == 0 => last.location,
            _ => 1 + numbers.below(4) as u16,
        };
        let mask = [u32::MAX, 0xffff, 0xffff_0000, 0xff][numbers.below(4) as usize];
        EncodedRun { mask, location, count: [1, 1, 2, 3, 70, 5000][numbers.below(6) as usize] }
    });
    for slot_bits in [2, 5] {
        check(PredictParams { slot_bits }, &all);
    }
}

#[test]
fn first_events_and_long_runs() {
    let run = |mask, location, count| EncodedRun { mask, location, count };
    let mut all = Vec::new();
    for location in [1, 2, 3, 33, 34, 35, 255, 256, 65_535] {
        for mask in [u32::MAX, 1, 0xffff_fffe, 0x8000_0001, 0x00ff_00ff] {
            for count in [1, 2, 3] {
                all.push(vec![run(mask, location, count)]);
                all.push(vec![run(mask, location, count), run(mask, location, count)]);
                all.push(vec![run(mask, location, 1), run(!mask | 2, location, count)]);
            }
        }
    }
    for bits in 0..24 {
        for hits in [1 << bits, (1 << bits) + 1, (2 << bits) - 1] {
            if hits < (1 << 24) - 8 {
                all.push(vec![run(7, 9, hits), run(9, 11, 1), run(7, 9, 1), run(7, 9, 1), run(9, 11, 2)]);
            }
        }
    }
    check(PredictParams::DEFAULT, &all);
}

#[test]
fn what_is_for_one_thread_stays() {
    let mut numbers = Numbers(5);
    let all: Vec<_> = (0..40).map(|length| nested(&mut numbers, 1 + 3 * length, 3, 7)).collect();
    let excepted: Vec<_> = (0..40).filter(|_| numbers.below(3) == 0).collect();
    check_but(PredictParams::DEFAULT, &all, 1, &excepted);
    check_but(PredictParams::DEFAULT, &all, 9, &excepted);
    let every: Vec<_> = (0..40).collect();
    check_but(PredictParams::DEFAULT, &all, 1, &every);
}
