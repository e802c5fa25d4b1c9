//! A device that has nothing to compute: what its kernels leave is there from the start.

use std::time::Duration;

use warptrace_device::KernelCall;
use warptrace_format::file::DeviceInfo;
use warptrace_format::log::LoggedLaunch;
use warptrace_format::pool::{Claims, PoolDescriptor};
use warptrace_host::{
    Allocation, Choosing, Device, DeviceError, DeviceMemory, Encoded, LaunchShape, LaunchTime, Placement,
    Recording, Tracing,
};

use crate::data::{Launch, Numbers};

/// What a launch leaves, as it comes from a device.
struct Recorded {
    /// The used chunks as `collect` packs them, in any order, but for the chunks of a warp.
    packed: Vec<u8>,
    /// Where each begins.
    starts: Vec<usize>,
    accounts: Vec<u8>,
}

/// The device.
pub(crate) struct Replay {
    launches: Vec<Recorded>,
    /// Launches that are drained, and all up to now.
    drained: usize,
    launched: usize,
    /// The address of the first chunk, and of the first account of the launches that are being drained.
    chunks: u64,
    accounts: u64,
    allocated: u64,
}

impl Replay {
    pub(crate) fn new(launches: &[Launch]) -> Self {
        let launches = launches.iter().map(recorded).collect();
        Self { launches, drained: 0, launched: 0, chunks: 0, accounts: 0, allocated: 1 << 32 }
    }

    /// Begins again.
    pub(crate) fn rewind(&mut self) {
        (self.drained, self.launched) = (0, 0);
    }

    fn pending(&self) -> &[Recorded] {
        &self.launches[self.drained..self.launched]
    }

    fn chunk_count(&self) -> u32 {
        self.pending().iter().map(|recorded| recorded.starts.len() as u32 - 1).sum()
    }
}

fn recorded(launch: &Launch) -> Recorded {
    // Warps in any order, each as often as it has chunks.
    let mut numbers = Numbers(4);
    let mut order: Vec<usize> = (0..launch.chunks.len()).collect();
    for last in (1..order.len()).rev() {
        order.swap(last, numbers.below(last as u64 + 1) as usize);
    }
    let mut of_warp = vec![Vec::new(); launch.accounts.len()];
    for (number, chunk) in launch.chunks.iter().enumerate().rev() {
        of_warp[chunk.warp as usize].push(number);
    }
    let (mut packed, mut starts) = (Vec::new(), vec![0]);
    for number in order {
        let next = of_warp[launch.chunks[number].warp as usize].pop().expect("as many as the warp has");
        let chunk = &launch.chunks[next];
        let number = launch.info.number();
        for word in [chunk.warp, chunk.sequence, chunk.events, chunk.payload.len() as u32, number, 0, 0, 0] {
            packed.extend_from_slice(&word.to_le_bytes());
        }
        packed.extend_from_slice(&chunk.payload);
        packed.resize(packed.len().next_multiple_of(16), 0xaa);
        starts.push(packed.len());
    }
    let mut accounts = Vec::new();
    for account in &launch.accounts {
        for long in [account.attempted, account.recorded, account.lost] {
            accounts.extend_from_slice(&long.to_le_bytes());
        }
        for word in [account.chunks, account.finished] {
            accounts.extend_from_slice(&word.to_le_bytes());
        }
    }
    Recorded { packed, starts, accounts }
}

impl Device for Replay {
    fn info(&self) -> DeviceInfo {
        DeviceInfo::simulator("replay")
    }

    fn multiprocessors(&self) -> u32 {
        132
    }

    fn memory(&self) -> DeviceMemory {
        DeviceMemory { total: 1 << 40, free: 1 << 40 }
    }

    fn allocate(&mut self, bytes: u64) -> Result<Allocation, DeviceError> {
        let address = self.allocated;
        self.allocated += bytes.next_multiple_of(256) + 256;
        Ok(Allocation { address, bytes })
    }

    fn free(&mut self, _: Allocation) -> Result<(), DeviceError> {
        Ok(())
    }

    fn write(&mut self, _: u64, _: &[u8]) -> Result<(), DeviceError> {
        Ok(())
    }

    fn read(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        assert_eq!(address, self.accounts, "nothing else is read");
        let mut rest = bytes;
        for recorded in self.pending() {
            let (target, after) = rest.split_at_mut(recorded.accounts.len());
            target.copy_from_slice(&recorded.accounts);
            rest = after;
        }
        Ok(())
    }

    fn collect(
        &mut self,
        first: u64,
        chunk_bytes: u32,
        count: u32,
        _: Allocation,
        to: &mut Vec<u8>,
    ) -> Result<u32, DeviceError> {
        let mut from = ((first - self.chunks) / u64::from(chunk_bytes)) as usize;
        let mut rest = count as usize;
        for recorded in self.pending() {
            let chunks = recorded.starts.len() - 1;
            if from < chunks {
                let end = chunks.min(from + rest);
                to.extend_from_slice(&recorded.packed[recorded.starts[from]..recorded.starts[end]]);
                rest -= end - from;
            }
            from = from.saturating_sub(chunks);
        }
        Ok(count)
    }

    fn fill(&mut self, _: u64, _: u64, _: u8) -> Result<(), DeviceError> {
        Ok(())
    }

    fn prepare(
        &mut self,
        _: &[&str],
        _: Option<(Recording, Option<Placement>, Choosing)>,
    ) -> Result<(), DeviceError> {
        Ok(())
    }

    fn encode(
        &mut self,
        _: Recording,
        pool: &PoolDescriptor,
        launches: &[LoggedLaunch],
        _: Allocation,
    ) -> Result<Encoded, DeviceError> {
        // These are all launches since the last drain.
        self.drained = self.launched - launches.len();
        self.chunks = pool.chunks;
        self.accounts = launches.first().map_or(0, |first| first.accounts);
        let claims = Claims { chunks: self.chunk_count(), ..Claims::default() };
        assert!(claims.chunks <= pool.chunk_count, "all chunks are there at once");
        Ok(Encoded { claims, time: Duration::ZERO })
    }

    unsafe fn launch(
        &mut self,
        _: &KernelCall,
        _: &LaunchShape,
        _: Option<&Tracing>,
    ) -> Result<LaunchTime, DeviceError> {
        self.launched += 1;
        Ok(LaunchTime::default())
    }
}
