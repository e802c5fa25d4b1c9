//! The options of a trace. Each says what the option of the same name says on the command line.

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

/// How events are encoded on the device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Codec {
    /// Small, for events that follow each other in patterns; ids up to 65,535.
    #[default]
    Predict,
    /// That of the thesis; ids up to 255.
    Ecl,
    /// Six bytes an event.
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
    /// Takes a whole specification, as commands and tests make it, in place of all that was said before.
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

    /// Sets the codec; [`Codec::Predict`] if not asked for.
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

    /// Records every event raw as well, so that `warptrace verify` can compare the two.
    pub fn dual(mut self) -> Self {
        self.spec.dual = true;
        self
    }

    /// Says which loops count their iterations and are recorded where they end, which costs the kernel less;
    /// [`Counting::Proven`] if not asked for.
    pub fn counting(mut self, counting: Counting) -> Self {
        self.spec.counting = counting;
        self
    }

    /// Says which times are recorded; none if not asked for.
    pub fn times(mut self, times: Times) -> Self {
        self.spec.times = times;
        self
    }

    /// Records the addresses of accesses to these memories, and values that kernels name; nothing of that, if
    /// not asked for. Addresses on a GPU only.
    pub fn accesses(mut self, spaces: Spaces) -> Self {
        self.spec.accesses = Some(spaces);
        self
    }

    /// Sets how many bytes of device memory the trace may take; an eighth of what is free, at most 16 GiB, if
    /// not asked for, and on the simulator at most 1 GiB.
    pub fn memory(mut self, bytes: u64) -> Self {
        self.spec.memory = Some(MemorySize(bytes));
        self
    }

    /// Says what happens where events do not fit into that: of each warp a beginning is kept if not asked
    /// for, an end with [`Policy::Ring`]; with [`Policy::Stream`] warps wait for memory.
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
    /// recorded; 10 seconds if not asked for.
    pub fn stall_limit(mut self, stall: Duration) -> Self {
        self.spec.stall_limit = Some(stall);
        self
    }

    /// Keeps the logs in pinned memory of the host, where a kernel that fails leaves them: the trace has what
    /// its warps did until then, and where they were. Kernels take longer. With [`Policy::Stop`] and
    /// [`Policy::Ring`].
    pub fn host_logs(mut self) -> Self {
        self.spec.host_logs = true;
        self
    }

    /// Ends the trace in the middle of a kernel, one that hangs for instance, when `asked` is set, and then
    /// calls `tell`. With [`Policy::Stop`] the file says where the kernel's warps were. Nothing can end a
    /// kernel of a GPU: `tell` best ends the process; if it returns, the launch waits for the kernel, and is
    /// an error. The simulator ends the kernel, unless logs are streamed.
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

    /// Sets the bytes of a chunk, a power of two from 512 to 1,048,576; 4,096 if not asked for.
    pub fn chunk_bytes(mut self, bytes: u32) -> Self {
        self.spec.chunk_bytes = bytes;
        self
    }

    /// Sets the zstd level of the file, 0 for no compression, to 19; a quick search that suits what codecs
    /// leave if not asked for.
    pub fn zstd(mut self, level: i32) -> Self {
        self.spec.zstd = Some(level);
        self
    }

    /// Sets after how many steps of the simulator a launch is an error: operations of groups of lanes, such
    /// as visits of trace points, of a block, or of the launch where blocks
    /// [communicate](crate::LaunchConfig::communicating). 10,000,000,000, which take minutes, if not asked
    /// for. A GPU runs a kernel to its end.
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

    /// Sets after which time a launch on the simulator is an error; never if not asked for.
    pub fn time_limit(mut self, time: Duration) -> Self {
        self.simulated.time = Some(time);
        self
    }

    /// Says whether the simulator tells on standard error how far a launch is, after one second, two, four
    /// and so on. It does so if not asked and standard error is a terminal.
    pub fn progress(mut self, tells: bool) -> Self {
        self.simulated.progress = tells;
        self
    }

    /// Writes a pair of one's own into the file, such as an argument of the program. [`start`](Self::start)
    /// refuses names of what the recorder itself writes, such as `command`.
    pub fn property(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.spec.properties.push((name.into(), value.into()));
        self
    }

    /// Records this kernel only, and others that are named so; `*` stands for any characters.
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

    /// Records launches only that [`Trace::label`](crate::Trace::label) has called so; `*` stands for any
    /// characters. May be called more than once.
    pub fn nvtx(mut self, label: impl Into<String>) -> Self {
        self.spec.window.nvtx.push(label.into());
        self
    }

    /// Records these launches only; all launches of the program count, from 0.
    pub fn launch(mut self, numbers: NumberRange) -> Self {
        self.spec.window.launches = numbers;
        self
    }

    /// Records the first launches of each kernel only.
    pub fn first(mut self, launches: u64) -> Self {
        self.spec.window.first = Some(launches);
        self
    }

    /// Records these blocks of each launch only, by their linear index.
    pub fn blocks(mut self, blocks: BlockChoice) -> Self {
        self.spec.window.blocks = blocks;
        self
    }

    /// Records these warps of each block only, by their number in it.
    pub fn warps(mut self, warps: NumberRange) -> Self {
        self.spec.window.warps = warps;
        self
    }

    /// Records, in each launch, what lanes do from some visit of a location on. What comes before is no loss.
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

    /// Records no launch after those that have recorded this many events.
    pub fn max_events(mut self, events: u64) -> Self {
        self.spec.window.max_events = Some(events);
        self
    }
}
