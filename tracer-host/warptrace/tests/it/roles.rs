//! Kernels whose warps have several roles, and kernels with one role.
#![expect(clippy::unwrap_used, reason = "tests")]

use warptrace::device::KernelModule;
use warptrace::{Device, LaunchConfig};
use warptrace_analysis::words::{Names, farthest, groups, roles};
use warptrace_analysis::{Analysis, Outlier, Selection, analyse};
use warptrace_decoder::TraceFile;

#[warptrace::kernels]
mod pipeline {
    use warptrace::device::{DisjointSlice, shared_arrays, simt, thread};

    shared_arrays! {
        /// Thirty-two words for each tile.
        fn tiles() -> [u32; 1024];
        /// The number of tiles written.
        fn filled() -> [u32; 1];
    }

    /// Warp 0 of each block writes tiles; the others sum one tile in each turn.
    #[kernel]
    pub fn specialised(values: &[u32], out: DisjointSlice<u32>, count: u32) {
        let Some((i, out)) = out.own(thread::index()) else { return };
        let (number, lane) = (simt::linear_thread() / 32, simt::linear_thread() % 32);
        // All warps clear the tiles first.
        for at in 0..4 {
            // SAFETY: below the length; each element belongs to one thread.
            unsafe { tiles().set((at * 5 + number) * 32 + lane, 0) };
        }
        if simt::linear_thread() == 0 {
            // SAFETY: below the length, before the barrier.
            unsafe { filled().set(0, 0) };
        }
        // SAFETY: no thread has left.
        unsafe { simt::sync_threads() };
        if number == 0 {
            for tile in 0..count {
                // SAFETY: below the length; others read the tile only after `filled` counts it.
                unsafe {
                    tiles().set(tile * 32 + lane, values[i] + tile);
                    simt::sync_warp(u32::MAX);
                }
                if lane == 0 {
                    // SAFETY: accessed only by atomics.
                    unsafe { filled().fetch_add(0, 1) };
                }
            }
        } else {
            for tile in 0..count {
                // SAFETY: accessed only by atomics.
                while unsafe { filled().fetch_add(0, 0) } <= tile {
                    simt::spin_hint();
                }
                // SAFETY: below the length, and already written.
                *out += unsafe { tiles().get(tile * 32 + lane) };
            }
            *out += number;
        }
    }

    /// Warps with odd numbers execute another loop than warps with even ones, depending only on data. The
    /// last warp of a block executes a third loop.
    #[kernel]
    pub fn plain(values: &[u32], out: DisjointSlice<u32>) {
        let Some((i, out)) = out.own(thread::index()) else { return };
        if values[i / 32] & 1 == 0 {
            for turn in 0..7 {
                *out += turn;
            }
        } else {
            for turn in 0..9 {
                *out += 2 * turn;
            }
        }
        if simt::linear_thread() >= 128 {
            for turn in 0..3 {
                *out += turn;
            }
        }
    }
}

fn read(path: &std::path::Path) -> (TraceFile, Analysis) {
    let trace = TraceFile::open(path).unwrap();
    let analysis = analyse(&trace, &Selection::default()).unwrap();
    (trace, analysis)
}

/// Returns the line number of the nth line with this text in this file.
fn line_of(text: &str, nth: usize) -> usize {
    let lines = include_str!("roles.rs").lines().enumerate().filter(|(_, line)| line.trim() == text);
    lines.map(|(number, _)| number + 1).nth(nth).unwrap()
}

#[test]
fn a_warp_is_compared_with_those_of_its_role() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("specialised.wtrc");
    let device = Device::simulator();
    const MODULE: &KernelModule = &pipeline::MODULE;
    let values: Vec<u32> = (0..480).collect();
    let (values, out) = (device.upload(&values).unwrap(), device.zeros::<u32>(480).unwrap());
    let mut trace = device.trace(&path).memory(64 << 20).start(MODULE).unwrap();
    let config = LaunchConfig::for_elements_in_blocks(480, 160);
    for tiles in [20, 20] {
        trace.launch(&pipeline::specialised(&values, &out, tiles), &config).unwrap();
    }
    trace.finish().unwrap();
    let (trace, analysis) = read(&path);

    let [found] = &analysis.roles[..] else { panic!("roles: {:?}", analysis.roles) };
    assert_eq!((found.launches, found.launch, found.kernel.as_str()), (2, 0, "specialised"));
    let warps: Vec<&[u32]> = found.roles.iter().map(|role| &role.warps[..]).collect();
    assert_eq!(warps, [&[0][..], &[1, 2, 3, 4]]);
    let names = Names::new(&trace);
    let [said] = &roles(&analysis, &names)[..] else { panic!("one line") };
    let [producer, consumer] = [0, 1].map(|nth| line_of("for tile in 0..count {", nth));
    assert!(said.starts_with("specialised: 2 roles from "), "{said}");
    assert!(said.contains("role 1, 1 warp of each block (0), runs "), "{said}");
    assert!(said.contains("; role 2, 4 warps of each block (1 to 4), run "), "{said}");
    let places = [format!("(roles.rs:{producer})"), format!("(roles.rs:{consumer})")];
    assert!(places.iter().all(|place| said.contains(place)), "{said}");
    println!("{said}\n{}", groups(&analysis));

    // Producers behave equally and are not odd.
    for warp in analysis.warps.iter() {
        let role = if warp.warp % 5 == 0 { 1 } else { 2 };
        assert_eq!(warp.role, Some(role));
    }
    let producers: Vec<_> = analysis.warps.iter().filter(|warp| warp.role == Some(1)).collect();
    assert!(producers.len() == 6 && producers.iter().all(|warp| warp.distance() == 0));
    assert!(groups(&analysis).starts_with("role 1: all 6 warps took the same path; role 2: "));
    if let Some(odd) = farthest(&analysis) {
        let odd = Outlier::new(&trace, &analysis, odd).unwrap();
        assert_eq!(odd.role, Some(2));
        assert!(odd.describe(&trace, &names)[0].contains("the median of its role"));
    }
    // A single warp has no others for comparison.
    let one = Selection { warp: Some(0), ..Selection::default() };
    let one = analyse(&trace, &one).unwrap();
    assert!(one.roles.is_empty() && one.warps.iter().all(|warp| warp.role.is_none()));
}

#[test]
fn what_depends_on_data_is_no_role() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plain.wtrc");
    let device = Device::simulator();
    let values: Vec<u32> = (0..480).map(|number| number * 7 / 3).collect();
    let (values, out) = (device.upload(&values).unwrap(), device.zeros::<u32>(480).unwrap());
    let mut trace = device.trace(&path).memory(64 << 20).start(&pipeline::MODULE).unwrap();
    trace.label("plain one");
    let config = LaunchConfig::for_elements_in_blocks(480, 160);
    trace.launch(&pipeline::plain(&values, &out), &config).unwrap();
    trace.label("");
    trace.launch(&pipeline::plain(&values, &out), &config).unwrap();
    trace.finish().unwrap();
    let (trace, analysis) = read(&path);
    assert!(analysis.roles.is_empty(), "{:?}", analysis.roles);
    assert!(analysis.warps.iter().all(|warp| warp.role.is_none()));
    assert!(roles(&analysis, &Names::new(&trace)).is_empty());
    assert_eq!([trace.label(0), trace.label(1)], [Some("plain one"), None]);
}
