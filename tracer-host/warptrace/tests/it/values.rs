//! User kernels that name values: the recording on the simulator, and the PTX.
#![expect(clippy::unwrap_used, reason = "tests")]

#[path = "../known/values.rs"]
mod kernels;

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;
use std::path::Path;

use kernels::naming;
use warptrace::device::{KernelModule, SourceValue, math};
use warptrace::{Device, LaunchConfig, Spaces};
use warptrace_decoder::{TraceFile, WarpFilter};
use warptrace_format::file::SiteNumber;
use warptrace_ptx::interpret::{Launch, Memory, Program, Schedule, run};
use warptrace_ptx::points::{PointOptions, mark_accesses};

/// The kernels with their stored PTX.
static MODULE: KernelModule = KernelModule { ptx: include_str!("../known/values.ptx"), ..naming::MODULE };

const THREADS: u32 = 80;

fn parts(thread: u32) -> u32 {
    thread * 7 % 13
}

/// The values that a thread names, in order. Key: thread, name, number format, bytes.
type Values = HashMap<(u32, String, SiteNumber, u32), Vec<u64>>;

/// Replaces all NaNs by the same one, because devices return different NaNs for a square root.
fn with_one_nan(mut values: Values) -> Values {
    for ((.., number_is, bytes), all) in &mut values {
        let is_nan = |bits: u64| {
            *number_is == SiteNumber::Float && *bytes == 4 && f32::from_bits(bits as u32).is_nan()
        };
        all.iter_mut().filter(|bits| is_nan(**bits)).for_each(|bits| *bits = f32::NAN.to_bits().into());
    }
    values
}

/// Returns the values that each thread of `weigh` should name.
fn expected() -> Values {
    let mut found = Values::new();
    for thread in 0..THREADS {
        let mut put = |name: &str, number_is, bytes, value: u64| {
            found.entry((thread, name.to_owned(), number_is, bytes)).or_default().push(value);
        };
        let (parts, mut sum) = (parts(thread), 0.0_f32);
        for k in 0..parts {
            let part = 1.0 / (k as f32 - 3.0);
            put("part", SiteNumber::Float, 4, part.to_bits().into());
            put("left", SiteNumber::Unsigned, 4, (parts - k).into());
            sum += part;
        }
        match thread % 3 {
            1 => put("far", SiteNumber::Signed, 8, (i64::from(thread) - (1 << 40)).cast_unsigned()),
            _ => put(
                "small",
                SiteNumber::Signed,
                4,
                (i32::from((thread % 5) as i8) - 2).cast_unsigned().into(),
            ),
        }
        put("root", SiteNumber::Float, 4, math::sqrt(sum).to_bits().into());
        put("is even", SiteNumber::Unsigned, 4, u64::from(thread % 2 == 0));
        put("place", SiteNumber::Unsigned, 8, thread.into());
        put("number", SiteNumber::Unsigned, 4, parts.into());
        put("number", SiteNumber::Float, 4, sum.to_bits().into());
    }
    found
}

fn record(path: &Path, spaces: Spaces, memory: u64) -> Result<TraceFile, warptrace::Error> {
    let device = Device::simulator();
    let data: Vec<u32> = (0..THREADS).map(parts).collect();
    let (data, out) = (device.upload(&data)?, device.zeros::<f32>(THREADS as usize)?);
    let mut trace = device.trace(path).accesses(spaces).memory(memory).start(&MODULE)?;
    trace.launch(&naming::weigh(&data, &out), &LaunchConfig::for_elements_in_blocks(THREADS as usize, 64))?;
    trace.finish()?;
    Ok(TraceFile::open(path).unwrap())
}

fn recorded(trace: &TraceFile) -> Values {
    let mut found = Values::new();
    let _ = trace
        .accesses_in_order(0, &WarpFilter::all(), &mut |warp| {
            for site in &warp.sites {
                let info = trace.site(site.site).unwrap();
                for lane in 0..32 {
                    let values: Vec<u64> = warp.lane(site.site, lane).collect();
                    if !values.is_empty() {
                        let of = (warp.warp * 32 + lane, info.name.clone(), info.number_is, info.bytes);
                        assert!(found.insert(of, values).is_none(), "a site for each name and type");
                    }
                }
            }
            ControlFlow::Continue(())
        })
        .unwrap();
    found
}

/// Returns the line number of the kernels' line that begins with this text.
fn line_of(text: &str) -> u32 {
    let lines = include_str!("../known/values.rs").lines();
    lines.map(str::trim).position(|line| line.starts_with(text)).unwrap() as u32 + 1
}

#[test]
fn the_simulator_records_what_lanes_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("values.wtrc");
    let trace = record(&path, Spaces::VALUES, 64 << 20).unwrap();
    assert!(trace.verify().is_ok(), "{}", trace.verify());
    assert_eq!(recorded(&trace), expected());
    let places: BTreeMap<&str, (u32, &str)> = trace
        .sites()
        .map(|site| {
            (&*site.name, (site.line, &*trace.metadata().locations[usize::from(site.location) - 1].name))
        })
        .collect();
    for (name, line, location) in [
        ("part", line_of("trace!(\"part\""), "weigh: for k in 0..parts"),
        ("left", line_of("trace!(\"part\""), "weigh: for k in 0..parts"),
        ("far", line_of("trace!(\"far\""), "weigh: if i % 3 == 1"),
        ("number", line_of("trace!(\"number\""), "half"),
    ] {
        assert_eq!(places[name], (line, location), "{name}");
    }
    assert!(trace.sites().all(|site| site.file.ends_with("known/values.rs")));
    // A second recording is equal.
    let bytes = std::fs::read(&path).unwrap();
    record(&path, Spaces::VALUES, 64 << 20).unwrap();
    let again = TraceFile::open(&path).unwrap();
    assert_eq!(recorded(&again), recorded(&TraceFile::from_bytes(bytes).unwrap()));
}

#[test]
fn events_are_the_same_with_and_without_values() {
    let folder = tempfile::tempdir().unwrap();
    let with = record(&folder.path().join("with.wtrc"), Spaces::VALUES, 64 << 20).unwrap();
    let without = record(&folder.path().join("without.wtrc"), Spaces::NONE, 64 << 20).unwrap();
    assert!(with.has_accesses() && !without.has_accesses());
    for warp in 0..3 {
        let events = |trace: &TraceFile| {
            trace.decode_warp(0, warp, 0).unwrap().map(Result::unwrap).collect::<Vec<_>>()
        };
        assert_eq!(events(&with), events(&without), "warp {warp}");
    }
}

#[test]
fn more_values_than_a_trace_has_numbers_for_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let values: Vec<SourceValue> = (1..=5_462).map(|id| SourceValue { id, ..MODULE.values[0] }).collect();
    let module = KernelModule { name: "many", values: Vec::leak(values), ..MODULE };
    let device = Device::simulator();
    let start = |spaces| device.trace(folder.path().join("many.wtrc")).accesses(spaces).start(&module);
    let error = start(Spaces::VALUES).err().unwrap().to_string();
    assert!(
        error.contains("the kernels name 5462 values, and a trace of the simulator has at most 5461"),
        "{error}"
    );
    start(Spaces::NONE).unwrap().finish().unwrap();
}

#[test]
fn addresses_are_refused_on_the_simulator() {
    let folder = tempfile::tempdir().unwrap();
    for spaces in [Spaces::ALL, Spaces { global: true, ..Spaces::VALUES }] {
        let error = record(&folder.path().join("all.wtrc"), spaces, 64 << 20).err().unwrap().to_string();
        assert!(error.contains("record them on a GPU, or `values` alone"), "{error}");
    }
}

#[test]
fn lanes_of_the_compiled_kernel_name_the_same() {
    let options =
        PointOptions { accesses: Spaces::VALUES, kernels: Some(&["weigh"]), ..PointOptions::default() };
    let marked = mark_accesses(MODULE.ptx, &options).unwrap();
    assert_eq!(marked.unrecorded, []);
    let (data, out) = (0x10_0000_u64, 0x20_0000_u64);
    for seed in 0..4 {
        let mut memory = Memory::new();
        memory.declare(data, (0..THREADS).flat_map(|thread| parts(thread).to_le_bytes()).collect());
        memory.declare(out, vec![0; 4 * THREADS as usize]);
        let array = |at: u64| [at, u64::from(THREADS)].map(u64::to_le_bytes).concat();
        let launch = Launch {
            kernel: "weigh",
            grid: [2, 1, 1],
            block: [64, 1, 1],
            dynamic_shared: 0,
            parameters: vec![array(data), array(out)],
            clock: 0,
            multiprocessors: 1,
            max_steps: 10_000_000,
        };
        let program = Program::parse(&marked.text).unwrap();
        let observed = run(&program, &launch, &mut memory, &mut Schedule::random(seed)).unwrap();
        let mut found = Values::new();
        for access in observed.accesses {
            let site = marked.sites.iter().find(|site| site.id == access.site).unwrap();
            let value = site.value.as_ref().unwrap();
            let name = MODULE.values.iter().find(|known| known.id == value.id).unwrap().name;
            let of = (access.warp * 32 + access.lane, name.to_owned(), value.ty.into(), value.ty.bytes());
            found.entry(of).or_default().push(access.value);
        }
        let (found, expected) = (with_one_nan(found), with_one_nan(expected()));
        assert!(found == expected, "{found:x?}\n{expected:x?}");
    }
}

#[test]
fn arrays_are_buffers_of_the_launches_that_can_reach_them() -> Result<(), warptrace::Error> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("buffers.wtrc");
    let record = |module: &KernelModule, spaces| {
        let device = Device::simulator();
        let early = device.zeros::<u8>(7)?;
        let data: Vec<u32> = (0..THREADS).map(parts).collect();
        let (data, out) = (device.upload(&data)?, device.zeros::<f32>(THREADS as usize)?);
        let mut trace = device.trace(&path).accesses(spaces).start(module)?;
        let call = naming::weigh(&data, &out);
        let mut launch = || trace.launch(&call, &LaunchConfig::for_elements(THREADS as usize));
        launch()?;
        // No launch could access buffers that exist only between launches.
        drop((early, device.zeros::<u8>(5)?));
        let _late = device.zeros::<u8>(3)?;
        launch()?;
        launch()?;
        trace.finish()?;
        Ok::<_, warptrace::Error>((TraceFile::open(&path).unwrap(), format!("{data:?}")))
    };
    let (trace, data) = record(&naming::MODULE, Spaces::VALUES)?;
    assert!(trace.verify().is_ok(), "{}", trace.verify());
    let buffers: Vec<_> = trace.buffers().unwrap().collect();
    let lives: Vec<_> = buffers.iter().map(|buffer| (buffer.bytes, buffer.first, buffer.end)).collect();
    let array = (4 * u64::from(THREADS), 0, None);
    assert_eq!(lives, [(7, 0, Some(1)), array, array, (3, 1, None)]);
    assert_eq!(data, format!("Buffer({:#x}, {THREADS} elements)", buffers[1].address));
    assert!(trace.has_all_buffers());
    // A variable of a module is additional memory with unknown buffers.
    let ptx = ".version 7.0\n.target sm_70\n.address_size 64\n.global .align 4 .u32 counter;\n";
    let (trace, _) = record(&KernelModule { ptx, ..naming::MODULE }, Spaces::VALUES)?;
    assert!(!trace.has_all_buffers() && trace.buffers().unwrap().len() == 4);
    // Without accesses, buffers are not recorded.
    assert!(record(&naming::MODULE, Spaces::NONE)?.0.buffers().is_none());
    Ok(())
}
