//! The options of a trace. Each has the meaning of the command line option with the same name.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use warptrace_format::Counting;
use warptrace_format::codec::CodecSpec;
use warptrace_host::{
    BlockChoice, DEVICE_ECL, DEVICE_PREDICT, Interrupted, MemorySize, NumberRange, Policy, RecordingSpec,
    Spaces, Times, Visits,
};

use crate::TraceBuilder;

/// Encoding of events on the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Codec {
    /// Compact for events that follow patterns; ids up to 65,535.
    #[default]
    Predict,
    /// The codec of the ECL-Tracer thesis; ids up to 255.
    Ecl,
    /// Six bytes per event.
    Raw,
}

impl Codec {
    fn spec(self) -> CodecSpec {
        match self {
            Self::Predict => CodecSpec::Predict(DEVICE_PREDICT),
            Self::Ecl => CodecSpec::Ecl(DEVICE_ECL),
            Self::Raw => CodecSpec::Raw,
        }
    }
}

impl TraceBuilder {
    /// Sets a complete specification, as used by commands and tests. Replaces all options set before.
    ///
    /// ```
    /// # #[warptrace::kernels]
    /// # mod halving {
    /// #     use warptrace::device::{DisjointSlice, thread};
    /// #     #[kernel]
    /// #     pub fn halvings(numbers: &[u32], counts: DisjointSlice<u32>) {
    /// #         let Some((index, count)) = counts.own(thread::index()) else { return };
    /// #         let mut rest = numbers[index];
    /// #         *count = 0;
    /// #         while rest > 1 {
    /// #             rest /= 2;
    /// #             *count += 1;
    /// #         }
    /// #     }
    /// # }
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("halvings.wtrc");
    /// # let device = warptrace::Device::simulator();
    /// # let numbers = device.upload(&(0..512).collect::<Vec<u32>>())?;
    /// # let counts = device.zeros::<u32>(512)?;
    /// # let config = warptrace::LaunchConfig::for_elements_in_blocks(512, 64);
    /// use warptrace::{Counting, RecordingSpec};
    ///
    /// let spec = RecordingSpec { counting: Counting::Never, zstd: Some(19), ..RecordingSpec::default() };
    /// let mut trace = device.trace(&path).spec(spec).start(&halving::MODULE)?;
    /// trace.launch(&halving::halvings(&numbers, &counts), &config)?;
    /// assert_eq!(trace.finish()?.lost, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn spec(mut self, spec: RecordingSpec) -> Self {
        self.spec = spec;
        self
    }

    /// Sets the codec. The default is [`Codec::Predict`].
    ///
    /// ```
    /// # #[warptrace::kernels]
    /// # mod halving {
    /// #     use warptrace::device::{DisjointSlice, thread};
    /// #     #[kernel]
    /// #     pub fn halvings(numbers: &[u32], counts: DisjointSlice<u32>) {
    /// #         let Some((index, count)) = counts.own(thread::index()) else { return };
    /// #         let mut rest = numbers[index];
    /// #         *count = 0;
    /// #         while rest > 1 {
    /// #             rest /= 2;
    /// #             *count += 1;
    /// #         }
    /// #     }
    /// # }
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("halvings.wtrc");
    /// # let device = warptrace::Device::simulator();
    /// # let numbers = device.upload(&(0..512).collect::<Vec<u32>>())?;
    /// # let counts = device.zeros::<u32>(512)?;
    /// # let config = warptrace::LaunchConfig::for_elements_in_blocks(512, 64);
    /// use warptrace::{Codec, Counting};
    ///
    /// let builder = device.trace(&path).codec(Codec::Ecl).dual().counting(Counting::All);
    /// let mut trace = builder.chunk_bytes(512).zstd(9).property("numbers", "512").start(&halving::MODULE)?;
    /// trace.launch(&halving::halvings(&numbers, &counts), &config)?;
    /// assert_eq!(trace.finish()?.lost, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn codec(mut self, codec: Codec) -> Self {
        self.spec.codec = codec.spec();
        self
    }

    /// Also records every event raw, so that `warptrace verify` can compare the two.
    pub fn dual(mut self) -> Self {
        self.spec.dual = true;
        self
    }

    /// Sets the loops that count their iterations and are recorded at their end, which costs less kernel
    /// time. The default is [`Counting::Proven`].
    pub fn counting(mut self, counting: Counting) -> Self {
        self.spec.counting = counting;
        self
    }

    /// Sets which times are recorded. The default is none.
    pub fn times(mut self, times: Times) -> Self {
        self.spec.times = times;
        self
    }

    /// Records the addresses of accesses to these memories, and values that kernels name. The default is
    /// nothing. Addresses are recorded only on a GPU.
    pub fn accesses(mut self, spaces: Spaces) -> Self {
        self.spec.accesses = Some(spaces);
        self
    }

    /// Sets the maximum bytes of device memory for the trace. The default is an eighth of the free memory, at
    /// most 16 GiB, and at most 1 GiB on the simulator.
    pub fn memory(mut self, bytes: u64) -> Self {
        self.spec.memory = Some(MemorySize(bytes));
        self
    }

    /// Sets the policy when memory is used up. By default, a prefix of each warp's events is kept.
    /// [`Policy::Ring`] keeps a suffix. With [`Policy::Stream`], warps wait for memory.
    ///
    /// ```
    /// # #[warptrace::kernels]
    /// # mod halving {
    /// #     use warptrace::device::{DisjointSlice, thread};
    /// #     #[kernel]
    /// #     pub fn halvings(numbers: &[u32], counts: DisjointSlice<u32>) {
    /// #         let Some((index, count)) = counts.own(thread::index()) else { return };
    /// #         let mut rest = numbers[index];
    /// #         *count = 0;
    /// #         while rest > 1 {
    /// #             rest /= 2;
    /// #             *count += 1;
    /// #         }
    /// #     }
    /// # }
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("halvings.wtrc");
    /// # let device = warptrace::Device::simulator();
    /// # let numbers = device.upload(&(0..512).collect::<Vec<u32>>())?;
    /// # let counts = device.zeros::<u32>(512)?;
    /// # let config = warptrace::LaunchConfig::for_elements_in_blocks(512, 64);
    /// use std::time::Duration;
    ///
    /// use warptrace::Policy;
    ///
    /// for policy in [Policy::Ring, Policy::Stream] {
    ///     let mut builder = device.trace(&path).memory(64 << 20).policy(policy);
    ///     if policy == Policy::Stream {
    ///         builder = builder.stall_limit(Duration::from_secs(60));
    ///     }
    ///     let mut trace = builder.start(&halving::MODULE)?;
    ///     trace.launch(&halving::halvings(&numbers, &counts), &config)?;
    ///     assert_eq!(trace.finish()?.lost, 0);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn policy(mut self, policy: Policy) -> Self {
        self.spec.policy = policy;
        self
    }

    /// With [`Policy::Stream`]: sets how long a warp waits for memory before it loses what it would have
    /// recorded. The default is 10 seconds.
    pub fn stall_limit(mut self, stall: Duration) -> Self {
        self.spec.stall_limit = Some(stall);
        self
    }

    /// Keeps the logs in pinned host memory, which survives a failing kernel. The trace then has the events
    /// up to the failure and the positions of the warps. Kernels run slower. Available with [`Policy::Stop`]
    /// and [`Policy::Ring`].
    pub fn host_logs(mut self) -> Self {
        self.spec.host_logs = true;
        self
    }

    /// Ends the trace during a kernel, for example one that hangs, when `asked` is set, and then calls
    /// `tell`. With [`Policy::Stop`], the file contains the positions of the kernel's warps. A kernel on a
    /// GPU cannot be ended, so `tell` should end the process. If `tell` returns, the launch waits for the
    /// kernel and returns an error. The simulator ends the kernel, unless logs are streamed.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::sync::atomic::AtomicBool;
    ///
    /// # #[warptrace::kernels]
    /// # mod waiting {
    /// #     use warptrace::device::{DisjointSlice, thread};
    /// #     #[kernel]
    /// #     pub fn wait(turns: DisjointSlice<u32>) {
    /// #         let Some((_, turn)) = turns.own(thread::index()) else { return };
    /// #         while *turn == 0 {
    /// #             warptrace::device::simt::spin_hint();
    /// #         }
    /// #     }
    /// # }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("hangs.wtrc");
    /// # let device = warptrace::Device::simulator();
    /// # let turns = device.zeros::<u32>(32)?;
    /// # let config = warptrace::LaunchConfig::for_elements_in_blocks(32, 32);
    /// // A handler of signals would set it.
    /// let asked = Arc::new(AtomicBool::new(true));
    /// let builder = device.trace(&path).memory(16 << 20).interrupt_by(asked, |interrupted| {
    ///     assert_eq!((interrupted.kernel.as_str(), interrupted.launch), ("wait", 0));
    /// });
    /// let mut trace = builder.start(&waiting::MODULE)?;
    /// let error = trace.launch(&waiting::wait(&turns), &config).unwrap_err();
    /// assert!(error.to_string().starts_with("interrupted in launch 0"), "{error}");
    /// # Ok(())
    /// # }
    /// ```
    pub fn interrupt_by(mut self, asked: Arc<AtomicBool>, tell: impl FnMut(&Interrupted) + 'static) -> Self {
        self.interrupt = Some((asked, Box::new(tell)));
        self
    }

    /// Sets the bytes of a chunk, a power of two from 512 to 1,048,576. The default is 4,096.
    pub fn chunk_bytes(mut self, bytes: u32) -> Self {
        self.spec.chunk_bytes = bytes;
        self
    }

    /// Sets the zstd level of the file, from 0 (no compression) to 19. The default is a fast search suited to
    /// codec output.
    pub fn zstd(mut self, level: i32) -> Self {
        self.spec.zstd = Some(level);
        self
    }

    /// Sets the maximum steps of a launch on the simulator; more are an error. Steps are operations of groups
    /// of lanes, such as visits of trace points. They are counted per block, or per launch if blocks
    /// [communicate](crate::LaunchConfig::communicating). The default is 10,000,000,000, which take minutes.
    /// A GPU has no limit.
    ///
    /// ```
    /// # #[warptrace::kernels]
    /// # mod endless {
    /// #     use warptrace::device::{DisjointSlice, thread};
    /// #     #[kernel]
    /// #     pub fn halve(numbers: DisjointSlice<u32>) {
    /// #         let Some((_, number)) = numbers.own(thread::index()) else { return };
    /// #         while *number != 1 {
    /// #             if *number % 2 == 0 {
    /// #                 *number /= 2;
    /// #             }
    /// #         }
    /// #     }
    /// # }
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("endless.wtrc");
    /// # let device = warptrace::Device::simulator();
    /// # let numbers = device.upload(&[64u32, 32, 12, 1])?;
    /// # let config = warptrace::LaunchConfig::for_elements(4);
    /// use std::time::Duration;
    ///
    /// let limit = Duration::from_secs(60);
    /// let builder = device.trace(&path).step_limit(100_000).time_limit(limit).progress(true);
    /// let mut trace = builder.start(&endless::MODULE)?;
    /// // The loop of lane 2 stays at 3.
    /// let error = trace.launch(&endless::halve(&numbers), &config).unwrap_err().to_string();
    /// assert!(error.contains("more than 100000 steps; block (0, 0, 0), warp 0: "), "{error}");
    /// assert!(error.contains("lane 2 waits at the end of a loop's body"), "{error}");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn step_limit(mut self, steps: u64) -> Self {
        self.simulated.steps = Some(steps);
        self
    }

    /// Sets the maximum time of a launch on the simulator; more is an error. The default is no limit.
    pub fn time_limit(mut self, time: Duration) -> Self {
        self.simulated.time = Some(time);
        self
    }

    /// Sets whether the simulator prints the progress of a launch to standard error, after one second, two,
    /// four and so on. The default is true if standard error is a terminal.
    pub fn progress(mut self, tells: bool) -> Self {
        self.simulated.progress = tells;
        self
    }

    /// Writes a user's property into the file, such as an argument of the program. [`start`](Self::start)
    /// rejects names that the recorder uses, such as `command`.
    pub fn property(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.spec.properties.push((name.into(), value.into()));
        self
    }

    /// Records only this kernel. More calls add kernels. `*` matches any characters.
    ///
    /// ```
    /// # #[warptrace::kernels]
    /// # mod halving {
    /// #     use warptrace::device::{DisjointSlice, thread};
    /// #     #[kernel]
    /// #     pub fn halvings(numbers: &[u32], counts: DisjointSlice<u32>) {
    /// #         let Some((index, count)) = counts.own(thread::index()) else { return };
    /// #         let mut rest = numbers[index];
    /// #         *count = 0;
    /// #         while rest > 1 {
    /// #             rest /= 2;
    /// #             *count += 1;
    /// #         }
    /// #     }
    /// # }
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("halvings.wtrc");
    /// # let device = warptrace::Device::simulator();
    /// # let numbers = device.upload(&(0..512).collect::<Vec<u32>>())?;
    /// # let counts = device.zeros::<u32>(512)?;
    /// # let config = warptrace::LaunchConfig::for_elements_in_blocks(512, 64);
    /// let window = device.trace(&path).kernel("halv*").launch("1..10".parse()?).first(3);
    /// let window = window.blocks("1/4".parse()?).warps("0".parse()?).max_events(1_000_000);
    /// let mut trace = window.start(&halving::MODULE)?;
    /// for _ in 0..9 {
    ///     trace.launch(&halving::halvings(&numbers, &counts), &config)?;
    /// }
    /// let summary = trace.finish()?;
    /// assert!(summary.launches == 9 && summary.recorded > 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn kernel(mut self, name: impl Into<String>) -> Self {
        self.spec.window.kernels.push(name.into());
        self
    }

    /// Records only launches with this label, set by [`Trace::label`](crate::Trace::label). More calls add
    /// labels. `*` matches any characters.
    pub fn nvtx(mut self, label: impl Into<String>) -> Self {
        self.spec.window.nvtx.push(label.into());
        self
    }

    /// Records only these launches, numbered from 0 over all launches of the program.
    pub fn launch(mut self, numbers: NumberRange) -> Self {
        self.spec.window.launches = numbers;
        self
    }

    /// Records only the first `launches` launches of each kernel.
    pub fn first(mut self, launches: u64) -> Self {
        self.spec.window.first = Some(launches);
        self
    }

    /// Records only these blocks of each launch, by linear index.
    pub fn blocks(mut self, blocks: BlockChoice) -> Self {
        self.spec.window.blocks = blocks;
        self
    }

    /// Records only these warps of each block, by number in the block.
    pub fn warps(mut self, warps: NumberRange) -> Self {
        self.spec.window.warps = warps;
        self
    }

    /// Records lanes of each launch from a visit of a location on. Earlier events are not counted as lost.
    ///
    /// ```
    /// # #[warptrace::kernels]
    /// # mod halving {
    /// #     use warptrace::device::{DisjointSlice, thread};
    /// #     #[kernel]
    /// #     pub fn halvings(numbers: &[u32], counts: DisjointSlice<u32>) {
    /// #         let Some((index, count)) = counts.own(thread::index()) else { return };
    /// #         let mut rest = numbers[index];
    /// #         *count = 0;
    /// #         while rest > 1 {
    /// #             rest /= 2;
    /// #             *count += 1;
    /// #         }
    /// #     }
    /// # }
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("halvings.wtrc");
    /// # let device = warptrace::Device::simulator();
    /// # let numbers = device.upload(&(0..512).collect::<Vec<u32>>())?;
    /// # let counts = device.zeros::<u32>(512)?;
    /// # let config = warptrace::LaunchConfig::for_elements_in_blocks(512, 64);
    /// // The loop's body, by its name.
    /// let location = halving::MODULE.locations.iter().find(|location| location.name.contains("while"));
    /// let name = location.ok_or("the kernel has a loop")?.name;
    /// let mut trace = device.trace(&path).after(format!("{name}:5").parse()?).start(&halving::MODULE)?;
    /// trace.launch(&halving::halvings(&numbers, &counts), &config)?;
    /// assert!(trace.finish()?.recorded > 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn after(mut self, visits: Visits) -> Self {
        self.spec.window.after = Some(visits);
        self
    }

    /// Records no launch that begins after this many recorded events.
    pub fn max_events(mut self, events: u64) -> Self {
        self.spec.window.max_events = Some(events);
        self
    }
}
