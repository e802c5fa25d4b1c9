//! The host interface on the simulator: results, traces, and rejected calls.

use warptrace::{Codec, Device, Error, LaunchConfig, Policy};
use warptrace_decoder::TraceFile;

#[warptrace::kernels]
mod sums {
    use warptrace::device::{DisjointSlice, Global, atomic, thread};

    /// Sums each row of a table with rows of different lengths.
    #[kernel]
    pub fn rows(offsets: &[u32], values: &[u32], sums: DisjointSlice<u32>) {
        let Some((row, sum)) = sums.own(thread::index()) else { return };
        for at in offsets[row]..offsets[row + 1] {
            *sum += values[at as usize];
        }
    }

    #[kernel]
    pub fn odd(values: &[u32], count: Global<u32>) {
        let index = thread::index().get() as usize;
        if values.get(index).is_some_and(|value| value % 2 == 1) {
            // SAFETY: accessed only by atomics.
            unsafe { atomic::add_u32(count.at(0), 1) };
        }
    }
}

#[warptrace::kernels]
mod other {
    #[kernel]
    pub fn nothing() {}
}

/// In one trace with `sums`.
#[warptrace::kernels(first_id = 101)]
mod digits {
    use warptrace::device::{AtomicSlice, BlockIndex, DisjointSlice, thread};

    /// Counts the last digits, and marks blocks with work.
    #[kernel]
    pub fn count(values: &[u32], counts: AtomicSlice<u32>, busy: DisjointSlice<u32, BlockIndex>) {
        let index = thread::index().get() as usize;
        if let Some(leader) = thread::block_leader()
            && let Some((_, busy)) = busy.own(leader)
        {
            *busy = u32::from(index < values.len());
        }
        let Some(value) = values.get(index) else { return };
        counts.fetch_add(*value as usize % 10, 1);
    }
}

/// Two kernels with the same name, in one trace.
#[warptrace::kernels(first_id = 201)]
mod up {
    use warptrace::device::{DisjointSlice, thread};

    #[kernel]
    pub fn step(values: DisjointSlice<u32>) {
        let Some((_, value)) = values.own(thread::index()) else { return };
        *value += 1;
    }
}

#[warptrace::kernels(first_id = 301)]
mod down {
    use warptrace::device::{DisjointSlice, thread};

    #[kernel]
    pub fn step(memory: DisjointSlice<u32>, by: u32) {
        let Some((_, value)) = memory.own(thread::index()) else { return };
        *value -= by;
    }
}

#[test]
fn a_kernel_is_that_of_its_module() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("steps.wtrc");
    let device = Device::simulator();
    let values = device.upload(&[10u32; 32])?;
    let config = LaunchConfig::for_elements_in_blocks(32, 32);
    let mut trace = device.trace(&path).memory(64 << 20).start_modules(&[&up::MODULE, &down::MODULE])?;
    trace.launch(&up::step(&values), &config)?;
    trace.launch(&down::step(&values, 5), &config)?;
    trace.launch(&up::step(&values), &config)?;
    trace.finish()?;
    assert_eq!(values.download()?, [7; 32]);

    let file = TraceFile::open(&path)?;
    assert!(file.verify().is_ok(), "{}", file.verify());
    let kernels: Vec<u32> = file.launches().map(|launch| launch.kernel()).collect();
    assert_eq!(kernels, [0, 1, 0], "each launch names the kernel of its module");

    // Its locations are not part of this trace.
    let mut trace = device.trace(&path).memory(64 << 20).start(&up::MODULE)?;
    let error = trace.launch(&down::step(&values, 5), &config).expect_err("a kernel of another module");
    assert!(
        error.to_string().contains("kernel `it::facade::down::step` is not one of the session's (step)"),
        "{error}"
    );
    Ok(())
}

#[warptrace::kernels]
mod swaps {
    use std::cell::Cell;

    use warptrace::device::{DisjointSlice, ThreadIndex, simt, thread};

    thread_local! {
        static LEFT: Cell<Option<ThreadIndex>> = const { Cell::new(None) };
    }

    /// Each lane after the first takes the index of the previous one, stored in the host's thread.
    #[kernel]
    pub fn swap(out: DisjointSlice<u32>) {
        let number = LEFT.replace(Some(thread::index())).unwrap_or(thread::index());
        if let Some((_, own)) = out.own(number) {
            *own = 1 + simt::lane();
        }
    }
}

#[test]
fn a_lane_does_not_get_the_element_of_another() -> Result<(), Error> {
    let device = Device::simulator();
    let out = device.zeros::<u32>(32)?;
    let error = device
        .launch(&swaps::swap(&out), &LaunchConfig::for_elements_in_blocks(32, 32))
        .expect_err("an element has one owner");
    assert!(error.to_string().contains("0 is the number of another thread"), "{error}");
    Ok(())
}

#[test]
fn a_trace_that_does_not_start_leaves_the_earlier_one() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("kept.wtrc");
    let device = Device::simulator();
    let trace = || device.trace(&path).memory(64 << 20);
    trace().start(&sums::MODULE)?.finish()?;
    let before = std::fs::read(&path)?;
    assert!(trace().memory(1 << 10).start(&sums::MODULE).is_err(), "too little memory");
    assert!(trace().start_modules(&[&sums::MODULE, &other::MODULE]).is_err(), "shared ids");
    assert_eq!(std::fs::read(&path)?, before, "byte for byte");
    // A started trace replaces the file, even with a shorter one.
    trace().start(&other::MODULE)?.finish()?;
    let after = TraceFile::open(&path)?;
    assert!(after.verify().is_ok() && path.metadata()?.len() < before.len() as u64, "{}", after.verify());
    Ok(())
}

#[test]
fn two_modules_are_one_trace() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("two.wtrc");
    let device = Device::simulator();
    let (offsets, numbers, expected) = table(300);
    let (offsets, values) = (device.upload(&offsets)?, device.upload(&numbers)?);
    let (results, counts, busy) =
        (device.zeros::<u32>(300)?, device.zeros::<u32>(10)?, device.zeros::<u32>(5)?);
    let builder = device.trace(&path).memory(64 << 20);
    let mut trace = builder.start_modules(&[&digits::MODULE, &sums::MODULE])?;
    let config = LaunchConfig::for_elements_in_blocks(300, 64);
    trace.launch(&sums::rows(&offsets, &values, &results), &config)?;
    let call = digits::count(&values, &counts, &busy);
    trace.launch(&call, &LaunchConfig::for_elements_in_blocks(numbers.len(), 256))?;
    trace.finish()?;
    assert_eq!(results.download()?, expected);
    let digits_of = |digit: u32| numbers.iter().filter(|&&number| number % 10 == digit).count() as u32;
    assert_eq!(counts.download()?, (0..10).map(digits_of).collect::<Vec<_>>());
    let blocks = numbers.len().div_ceil(256);
    assert_eq!(busy.download()?, (0..5).map(|block| u32::from(block < blocks)).collect::<Vec<_>>());

    let file = TraceFile::open(&path)?;
    assert!(file.verify().is_ok(), "{}", file.verify());
    let ids: Vec<u16> = file.metadata().locations.iter().map(|location| location.id).collect();
    assert!(ids[0] == 1 && ids.contains(&101) && ids.is_sorted(), "{ids:?}");
    assert!(file.metadata().locations.iter().all(|found| (found.id > 100) == (found.function == "count")));

    // Both modules have ids that begin at 1.
    let error =
        device.trace(&path).start_modules(&[&sums::MODULE, &other::MODULE]).expect_err("ids are shared");
    assert!(
        error
            .to_string()
            .starts_with("location 1 is in module `it::facade::sums` and in module `it::facade::other`: "),
        "{error}"
    );
    // Counters overlap like results.
    let call = digits::count(&values, &counts, &counts);
    let error = device.launch(&call, &config).expect_err("one buffer for two arguments").to_string();
    assert!(error.contains("overlaps argument"), "{error}");
    Ok(())
}

fn table(rows: u32) -> (Vec<u32>, Vec<u32>, Vec<u32>) {
    let offsets: Vec<u32> = (0..=rows).map(|row| row * (row + 1) / 2 % 5000).collect();
    let offsets: Vec<u32> = offsets
        .iter()
        .scan(0, |sum, offset| {
            *sum += offset % 7;
            Some(*sum)
        })
        .collect();
    let values: Vec<u32> = (0..offsets[rows as usize]).collect();
    let sums = offsets.windows(2).map(|ends| (ends[0]..ends[1]).sum()).collect();
    (offsets, values, sums)
}

#[test]
fn results_are_right_and_the_trace_verifies() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let (offsets, values, expected) = table(1000);
    let device = Device::simulator();
    let (offsets, values) = (device.upload(&offsets)?, device.upload(&values)?);
    for (number, codec) in [Codec::Predict, Codec::Ecl, Codec::Raw].into_iter().enumerate() {
        let path = folder.path().join(format!("{number}.wtrc"));
        let builder = device.trace(&path).codec(codec).memory(64 << 20).property("rows", "1000");
        let mut trace =
            if number == 2 { builder.policy(Policy::Stream) } else { builder }.start(&sums::MODULE)?;
        // Creates and frees buffers while a trace is open.
        let results = device.zeros::<u32>(1000)?;
        trace.launch(&sums::rows(&offsets, &values, &results), &LaunchConfig::for_elements(1000))?;
        let count = device.zeros::<u32>(1)?;
        let call = sums::odd(&values, count.global());
        // SAFETY: a counter, accessed by atomics.
        unsafe { trace.launch_unchecked(&call, &LaunchConfig::for_elements(values.len()))? };
        let summary = trace.finish()?;
        assert_eq!(results.download()?, expected);
        assert_eq!(count.download()?, [values.len() as u32 / 2]);

        let file = TraceFile::open(&path)?;
        assert!(file.verify().is_ok(), "{}", file.verify());
        assert_eq!((summary.launches, summary.lost, summary.file_bytes), (2, 0, path.metadata()?.len()));
        assert!(summary.recorded > 500 && summary.to_string().contains("events of 2 launches"), "{summary}");
        let metadata = file.metadata();
        assert_eq!(metadata.kernels[0].name, "rows");
        assert!(metadata.kernels[0].source_file.ends_with("facade.rs"));
        let (first, table) = (&metadata.locations[0], &sums::LOCATIONS[0]);
        assert_eq!((first.name.as_str(), first.line, first.kind), (table.name, table.line, table.kind));
        let hash = format!("{:016x}", warptrace_format::location::source_hash(include_str!("facade.rs")));
        let name = format!("source_hash:{}", sums::MODULE.file);
        assert!(metadata.properties.contains(&(name, hash)), "{:?}", metadata.properties);
        // Without a trace, the results are the same.
        results.write(&vec![0; 1000])?;
        device.launch(&sums::rows(&offsets, &values, &results), &LaunchConfig::for_elements(1000))?;
        assert_eq!(results.download()?, expected);
    }
    Ok(())
}

#[test]
fn several_traces_are_open_at_once() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let (offsets, values, expected) = table(300);
    let of_thread = |thread: u32| -> Result<(), Box<dyn std::error::Error>> {
        // Each thread has a separate device with three traces whose launches alternate.
        let device = Device::simulator();
        let (offsets, values) = (device.upload(&offsets)?, device.upload(&values)?);
        let path = |number: usize| folder.path().join(format!("{thread}-{number}.wtrc"));
        let mut traces = Vec::new();
        for number in 0..3 {
            let builder = device.trace(path(number)).memory(16 << 20);
            let streams = number == usize::try_from(thread)?;
            let builder = if streams { builder.policy(Policy::Stream) } else { builder };
            traces.push(builder.start(&sums::MODULE)?);
        }
        for _ in 0..2 {
            for trace in &mut traces {
                let results = device.zeros::<u32>(300)?;
                trace.launch(&sums::rows(&offsets, &values, &results), &LaunchConfig::for_elements(300))?;
                assert_eq!(results.download()?, expected);
            }
        }
        // Ends the traces in reverse order.
        let mut recorded = Vec::new();
        for trace in traces.into_iter().rev() {
            let summary = trace.finish()?;
            assert_eq!((summary.launches, summary.lost), (2, 0));
            recorded.push(summary.recorded);
        }
        assert!(recorded[0] > 100 && recorded.iter().all(|events| *events == recorded[0]), "{recorded:?}");
        for number in 0..3 {
            let verified = TraceFile::open(path(number))?.verify();
            assert!(verified.is_ok() && verified.events == recorded[0], "{verified}");
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let of_thread = &of_thread;
            scope.spawn(move || of_thread(thread).unwrap_or_else(|error| panic!("thread {thread}: {error}")));
        }
    });
    Ok(())
}

#[test]
fn calls_that_would_be_undefined_are_refused() -> Result<(), Error> {
    let (device, elsewhere) = (Device::simulator(), Device::simulator());
    let config = LaunchConfig::for_elements(4);
    let offsets = device.upload(&[0u32, 1, 2, 3, 4])?;
    let values = device.upload(&[1u32, 2, 3, 4])?;
    let refused = |call: &_| device.launch(call, &config).expect_err("it is refused").to_string();
    assert_eq!(
        refused(&sums::rows(&offsets, &values, &values)),
        "argument 2 of kernel `rows`, which it writes, overlaps argument 1: give it a buffer of its own"
    );
    let sums = elsewhere.zeros::<u32>(4)?;
    assert_eq!(
        refused(&sums::rows(&offsets, &values, &sums)),
        "argument 2 of kernel `rows` is no memory of this device: launch on the device that made the buffer"
    );
    let sums = device.zeros::<u32>(4)?;
    let call = sums::rows(&offsets, &values, &sums);
    assert!(device.launch(&call, &config).is_ok());
    // Row 4 has no end: a panic in the kernel, with its position.
    let sums = device.zeros::<u32>(5)?;
    let message = refused(&sums::rows(&offsets, &values, &sums));
    assert!(message.contains("index out of bounds") && message.contains("facade.rs"), "{message}");
    Ok(())
}

/// Runs this test again with a standard error that accepts no output.
#[cfg(target_os = "linux")]
#[test]
fn a_note_that_cannot_be_written_stops_nothing() -> Result<(), Box<dyn std::error::Error>> {
    const CHILD: &str = "WARPTRACE_TEST_FULL_STDERR";
    if std::env::var_os(CHILD).is_some() {
        let device = Device::simulator();
        let (offsets, values) = (device.zeros::<u32>(65)?, device.zeros::<u32>(1)?);
        let results = device.zeros::<u32>(64)?;
        let too_few = LaunchConfig::for_elements_in_blocks(32, 32);
        device.launch(&sums::rows(&offsets, &values, &results), &too_few)?;
        std::process::exit(7);
    }
    let status = std::process::Command::new(std::env::current_exe()?)
        .args(["--exact", "facade::a_note_that_cannot_be_written_stops_nothing", "--nocapture"])
        .env(CHILD, "1")
        .stdout(std::process::Stdio::null())
        .stderr(std::fs::File::options().write(true).open("/dev/full")?)
        .status()?;
    assert_eq!(status.code(), Some(7), "{status}");
    Ok(())
}

#[test]
fn auto_finds_a_device_on_every_machine() -> Result<(), Error> {
    let device = Device::auto()?;
    let is_simulator = device.info().name.contains("simulator");
    assert_eq!(device.no_gpu().is_some(), is_simulator, "{device:?}");
    assert_eq!(device.upload(&[1.5f64, 2.5])?.download()?, [1.5, 2.5]);
    Ok(())
}
