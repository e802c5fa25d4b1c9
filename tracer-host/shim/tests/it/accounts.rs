//! The PTX of the kernel that packs accounts and spans, interpreted.

use warptrace_abi::log::LoggedLaunch;
use warptrace_encode::{AccountsJob, pack_accounts_call};
use warptrace_format::account::WarpAccount;
use warptrace_format::span::WarpSpan;
use warptrace_ptx::interpret::Memory;

use crate::packing::{interpret, kernels};

const ACCOUNTS: u64 = 0x10_0000;
const TABLE: u64 = 0x20_0000;
const CLASSES: u64 = 0x30_0000;
const TARGET: u64 = 0x40_0000;

/// Returns the accounts and spans of launches with two tracks, the table of these launches, and the packed
/// words if the streams have the representatives `firsts`.
fn accounts(warps: &[u32], firsts: &[u32], at: u64) -> (Vec<u8>, Vec<u8>, Vec<u32>) {
    let (mut memory, mut table, mut streams) = (Vec::new(), Vec::new(), 0);
    let (mut heads, mut of_streams, mut of_warps) = (vec![0; 4], Vec::new(), Vec::new());
    for (number, &warps) in (0_u64..).zip(warps) {
        let (accounts, first_stream) = (at + memory.len() as u64, streams);
        let launch = LoggedLaunch { accounts, first_stream, warps, tracks: 2, ..LoggedLaunch::default() };
        table.extend(launch.to_words().into_iter().flat_map(u32::to_le_bytes));
        for stream in streams..streams + 2 * warps {
            let is_first = firsts[stream as usize] == stream;
            let recorded = if is_first { 7 * u64::from(stream) } else { 0 };
            let (attempted, finished) = (7 * u64::from(stream), u32::from(is_first));
            memory.extend([attempted, recorded, 0].into_iter().flat_map(u64::to_le_bytes));
            memory.extend([stream, finished].into_iter().flat_map(u32::to_le_bytes));
            let account = WarpAccount { attempted, recorded, lost: 0, chunks: stream, finished };
            of_streams.push(if is_first { account.pack().0 } else { 0 });
        }
        streams += 2 * warps;
        let clock = (9 << 40) + number;
        heads.extend([clock as u32, (clock >> 32) as u32, 5, 1]);
        for warp in 0..u64::from(warps) {
            let (begin_clock, begin_timer) = (clock.wrapping_sub(100 * warp), (1 << 32 | 5) + 32 * warp);
            let (end_clock, end_timer) = (begin_clock + 1000, begin_timer + 500);
            let span = WarpSpan { begin_clock, begin_timer, end_clock, end_timer, begin_sm: 132, end_sm: 1 };
            memory.extend(
                [begin_clock, begin_timer, end_clock, end_timer].into_iter().flat_map(u64::to_le_bytes),
            );
            memory.extend([132_u32, 1].into_iter().flat_map(u32::to_le_bytes));
            let (packed, fits) = span.pack([clock, 1 << 32 | 5]);
            assert!(fits);
            assert_eq!(WarpSpan::unpack(packed, [clock, 1 << 32 | 5]), span);
            of_warps.extend(packed);
        }
    }
    (memory, table, [heads, of_streams, of_warps].concat())
}

#[test]
fn the_interpreted_kernel_packs_accounts_and_spans() {
    let Some(program) = kernels() else { return };
    let firsts: Vec<u32> = (0..90).map(|stream| if stream % 5 == 3 { 2 | 1 << 31 } else { stream }).collect();
    let (memory, table, expected) = accounts(&[3, 40, 1], &firsts, ACCOUNTS);
    let job = AccountsJob {
        table: TABLE,
        classes: CLASSES,
        target: TARGET,
        launches: 3,
        streams: 88,
        spans: 1,
        unused: 0,
    };
    assert_eq!(job.words(2), expected.len() as u64);
    // A lost event, a clock that is far away, and a multiprocessor with a large number do not fit.
    let lost = 32 * 6 + 40 * 3 + 16;
    for damage in [usize::MAX, lost, 32 * 6 + 40 + 4, 32 * 6 + 34] {
        let (mut device, mut memory) = (Memory::new(), memory.clone());
        memory.get_mut(damage).into_iter().for_each(|byte| *byte ^= 1);
        device.declare(ACCOUNTS, memory);
        device.declare(TABLE, table.clone());
        device.declare(CLASSES, firsts.iter().copied().flat_map(u32::to_le_bytes).collect());
        device.declare(TARGET, vec![0; 4 * expected.len()]);
        interpret(&program, &pack_accounts_call(&job), [2, 32], 3, &mut device);
        let (words, _) = device.region(TARGET).unwrap().as_chunks();
        let words: Vec<u32> = words.iter().map(|word| u32::from_le_bytes(*word)).collect();
        assert!(if damage == usize::MAX { words == expected } else { words[0] == 1 }, "{damage}");
    }
}
