//! Accesses by buffer: checks each figure of the examples in docs/users/memory.md against a formula.

use warptrace_abi::run::RUN_SPEC;
use warptrace_analysis::{Accesses, BufferFigures, Selection, SiteFigures, accesses};
use warptrace_decoder::TraceFile;
use warptrace_format::file::{BufferInfo, BufferKind};
use warptrace_spec::Spaces;

use super::{ShimRun, built, command_of, data, run_command, spec};

/// Rows and columns of the matrix, and number of values, as in the program.
const SIDE: u64 = 64;
const COUNT: u64 = SIDE * SIDE;

fn record(kernel: &str) -> Option<ShimRun> {
    let built = built()?;
    let all = spec(|spec| spec.recording.accesses = Some(Spaces::ALL));
    let run = |traced| {
        let mut command = command_of(built, "memory");
        run_command(built, traced, command.args([&data("memory.ptx"), kernel]), &[(RUN_SPEC, &all)])
    };
    let (plain, traced) = (run(false), run(true));
    assert_eq!(plain.stdout(), traced.stdout(), "{kernel}: {:?}", traced.report());
    assert_eq!(plain.output.status, traced.output.status, "{kernel}");
    if traced.report().iter().any(|line| line.contains("carries no GPU code")) {
        eprintln!("skipped: built without a device compiler");
        return None;
    }
    traced.verified();
    if let Some(folder) = std::env::var_os("WARPTRACE_KEEP_TRACES") {
        let to = std::path::Path::new(&folder).join(format!("{kernel}.wtrc"));
        std::fs::copy(traced.folder.path().join("t.wtrc"), to).expect("a copy");
    }
    Some(traced)
}

fn found(trace: &TraceFile) -> Accesses {
    let found = accesses(trace, &Selection::default()).expect("sound");
    assert!(found.is_whole() && trace.has_all_buffers());
    assert_eq!(found.unknown_buffer, Some(0));
    found
}

fn sites<'f>(found: &'f Accesses, kind: &str, space: &str) -> Vec<&'f SiteFigures> {
    found.sites.iter().filter(|site| (site.kind, site.space) == (kind, space)).collect()
}

fn each(found: &Accesses, kind: &str, space: &str) -> (u64, u64) {
    let [site] = sites(found, kind, space)[..] else { panic!("one site: {:?}", found.sites) };
    let counts = &site.counts;
    assert_eq!((counts.sectors % counts.requests, counts.passes % counts.requests), (0, 0));
    (counts.sectors / counts.requests, counts.passes / counts.requests)
}

fn in_and_out(found: &Accesses) -> [&BufferFigures; 2] {
    let mut buffers: Vec<&BufferFigures> = found.buffers.iter().collect();
    buffers.sort_by_key(|buffer| buffer.buffer);
    let [first, second] = buffers[..] else { panic!("two buffers: {buffers:?}") };
    [first, second]
}

#[test]
fn a_transpose_touches_32_sectors_or_4() {
    for (kernel, sectors, passes) in
        [("transpose", 32, None), ("transpose_tiled", 4, Some(32)), ("transpose_padded", 4, Some(1))]
    {
        let Some(traced) = record(kernel) else { return };
        let found = found(&traced.trace());
        assert_eq!(each(&found, "load", "global").0, 4, "{kernel}");
        assert_eq!(each(&found, "store", "global").0, sectors, "{kernel}");
        if let Some(passes) = passes {
            assert_eq!(each(&found, "load", "shared").1, passes, "{kernel}");
            assert_eq!(each(&found, "store", "shared").1, 1, "{kernel}");
        }
        let [read, written] = in_and_out(&found);
        for (buffer, loads, stores, sectors) in [(read, COUNT, 0, 4), (written, 0, COUNT, sectors)] {
            assert_eq!((buffer.loads, buffer.stores, buffer.atomics), (loads, stores, 0), "{kernel}");
            assert_eq!((buffer.bytes, buffer.touched_bytes), (4 * COUNT, Some(4 * COUNT)), "{kernel}");
            assert_eq!((buffer.requests, buffer.sectors), (COUNT / 32, sectors * COUNT / 32), "{kernel}");
            assert_eq!(buffer.heat, Some(vec![COUNT / 64; 64]), "{kernel}");
        }
        assert!(found.outside.is_empty() && found.is_exact(), "{kernel}");
    }
}

#[test]
fn every_second_word_takes_two_passes() {
    let Some(traced) = record("halve") else { return };
    let found = found(&traced.trace());
    assert_eq!(each(&found, "load", "shared").1, 2);
    let stores = sites(&found, "store", "shared");
    assert!(stores.len() == 2 && stores.iter().all(|site| site.counts.passes == site.counts.requests));
    let [read, written] = in_and_out(&found);
    assert_eq!((read.touched_bytes, written.touched_bytes), (Some(4 * COUNT), Some(2 * COUNT)));
}

#[test]
fn a_histogram_has_hot_bins() {
    let mut bins = [0_u64; 256];
    (0..COUNT).for_each(|at| bins[if at % 3 != 0 { 7 } else { at * 5 % 256 } as usize] += 1);
    for (kernel, block) in [("histogram", None), ("histogram_shared", Some(256))] {
        let Some(traced) = record(kernel) else { return };
        let found = found(&traced.trace());
        let [_, written] = in_and_out(&found);
        // Each 64th of the buffer has 4 of the 256 bins.
        let mut heat = vec![0; 64];
        match block {
            None => bins.iter().enumerate().for_each(|(bin, count)| heat[bin / 4] += count),
            // Each of the two blocks adds to each of its bins once.
            Some(_) => {
                let of_block = |block| {
                    (0..COUNT)
                        .filter(move |at| at / 256 % 2 == block)
                        .map(|at| if at % 3 != 0 { 7 } else { at * 5 % 256 })
                        .collect::<std::collections::BTreeSet<u64>>()
                };
                (0..2).flat_map(of_block).for_each(|bin| heat[(bin / 4) as usize] += 1);
            }
        }
        assert_eq!(written.heat.as_ref(), Some(&heat), "{kernel}");
        assert_eq!(written.atomics, heat.iter().sum::<u64>(), "{kernel}");
        assert_eq!((written.loads, written.stores), (0, 0), "{kernel}");
    }
}

#[test]
fn what_is_in_no_buffer_is_found() {
    let Some(traced) = record("stencil") else { return };
    let trace = traced.trace();
    let found = found(&trace);
    let outside: Vec<_> = found
        .outside
        .iter()
        .map(|site| (site.kind, site.accesses, site.warp, site.lane, site.nearest, site.distance))
        .collect();
    // The first lane reads the word before the buffer, and the last lane reads the word after it.
    let last = (COUNT / 32 - 1) as u32;
    let [read, written] = in_and_out(&found);
    let nearest = Some(read.buffer);
    assert_eq!(outside, [("load", 1, 0, 0, nearest, Some(-4)), ("load", 1, last, 31, nearest, Some(4))]);
    assert!(found.outside.iter().all(|site| site.line > 0 && site.file.ends_with("memory.cu")));
    assert_eq!((read.loads, written.stores), (3 * COUNT - 2, COUNT));
    // The sectors of a request count for the buffer even if a lane is outside.
    let all: u64 = sites(&found, "load", "global").iter().map(|site| site.counts.sectors).sum();
    assert_eq!(read.sectors, all - 2);
    let Some(traced) = record("stencil_guarded") else { return };
    assert_eq!(self::found(&traced.trace()).outside, []);
}

#[test]
fn variables_of_modules_are_buffers() {
    let Some(traced) = record("shift") else { return };
    let found = found(&traced.trace());
    let variable = found.buffers.iter().find(|buffer| buffer.kind == "variable").expect("it was accessed");
    assert_eq!((&*variable.name, variable.bytes, variable.loads), ("offsets", 128, 32));
    assert_eq!(found.buffers.len(), 3);
}

#[test]
fn buffers_live_from_launch_to_launch() {
    let Some(traced) = record("lives") else { return };
    let trace = traced.trace();
    let of = |kind| -> Vec<&BufferInfo> {
        trace.buffers().expect("recorded").filter(|buffer| buffer.kind == kind).collect()
    };
    let lives = |kind| -> Vec<(u64, u32, Option<u32>)> {
        of(kind).iter().map(|buffer| (buffer.bytes, buffer.first, buffer.end)).collect()
    };
    let pitched = SIDE * 512;
    assert_eq!(lives(BufferKind::Device), [(pitched, 0, Some(1)), (pitched, 2, None)]);
    assert_eq!(lives(BufferKind::Managed), [(4 * COUNT, 0, None)]);
    assert_eq!(lives(BufferKind::Pool), [(4 * COUNT, 0, Some(2))]);
    assert_eq!(lives(BufferKind::Host), [(100, 0, None)]);
    let found = found(&trace);
    assert_eq!(found.outside, []);
    let by_kind = |kind: &str| -> Vec<(u64, u64)> {
        let mut all: Vec<_> = found.buffers.iter().filter(|buffer| buffer.kind == kind).collect();
        all.sort_by_key(|buffer| buffer.buffer);
        all.iter().map(|buffer| (buffer.loads, buffer.stores)).collect()
    };
    assert_eq!(by_kind("device"), [(1024, 0), (1024, 1024)]);
    assert_eq!((by_kind("managed"), by_kind("pool")), (vec![(2048, 2048)], vec![(0, 1024)]));
}

#[test]
fn without_accesses_there_are_no_buffers() {
    let Some(built) = built() else { return };
    let mut command = command_of(built, "memory");
    let traced = run_command(built, true, command.args([&data("memory.ptx"), "transpose"]), &[]);
    if traced.report().iter().any(|line| line.contains("carries no GPU code")) {
        return;
    }
    assert_eq!(traced.verified().0, 1);
    assert!(traced.trace().buffers().is_none() && !traced.trace().has_all_buffers());
}
