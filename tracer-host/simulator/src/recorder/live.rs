//! Memory that the host reads and writes while lanes use it.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Polls of a slot between which a lane gives its thread away; between later ones it sleeps.
const YIELDS: u32 = 64;
/// How long it sleeps.
const SLEEP: Duration = Duration::from_micros(20);

/// Memory in words of eight bytes, by their addresses, and what time is to those who wait for it to change.
/// Both sides use whole words only, since atomics of different sizes must not meet.
pub(super) trait LiveWords {
    fn load(&self, address: u64, order: Ordering) -> u64;
    fn store(&self, address: u64, word: u64, order: Ordering);
    /// Returns what the word was.
    fn add(&self, address: u64, more: u64, order: Ordering) -> u64;
    fn set_bits(&self, address: u64, bits: u64, order: Ordering);
    /// Lets some time go by. Returns whether it is still worth waiting.
    fn pause(&self, wait: &mut Wait) -> bool;
}

/// The wait for a slot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wait {
    pub(super) limit: Duration,
    pub(super) polls: u32,
    began: Option<Duration>,
}

impl Wait {
    pub(super) fn new(limit: Duration) -> Self {
        Self { limit, polls: 0, began: None }
    }
}

/// The host's own memory, and its time, or that of a clock.
pub(super) struct HostWords(Option<&'static AtomicU64>);

impl HostWords {
    /// # Safety
    /// Every address that is given to the methods is that of a word of memory, aligned to eight bytes, that
    /// is valid then, and that others touch by atomics of eight bytes only.
    pub(super) unsafe fn new(clock: Option<&'static AtomicU64>) -> Self {
        Self(clock)
    }

    /// Returns the time since some moment.
    fn now(&self) -> Duration {
        static START: LazyLock<Instant> = LazyLock::new(Instant::now);
        match self.0 {
            Some(clock) => Duration::from_nanos(clock.load(Ordering::Relaxed)),
            None => START.elapsed(),
        }
    }

    fn word(&self, address: u64) -> &AtomicU64 {
        let word = std::ptr::with_exposed_provenance_mut(address as usize);
        // SAFETY: promised to `new`; the reference lasts no longer than a call.
        unsafe { AtomicU64::from_ptr(word) }
    }
}

impl LiveWords for HostWords {
    fn load(&self, address: u64, order: Ordering) -> u64 {
        self.word(address).load(order)
    }

    fn store(&self, address: u64, word: u64, order: Ordering) {
        self.word(address).store(word, order);
    }

    fn add(&self, address: u64, more: u64, order: Ordering) -> u64 {
        self.word(address).fetch_add(more, order)
    }

    fn set_bits(&self, address: u64, bits: u64, order: Ordering) {
        self.word(address).fetch_or(bits, order);
    }

    fn pause(&self, wait: &mut Wait) -> bool {
        let began = *wait.began.get_or_insert_with(|| self.now());
        wait.polls = wait.polls.saturating_add(1);
        if wait.polls <= YIELDS || self.0.is_some() {
            std::thread::yield_now();
        } else {
            std::thread::sleep(SLEEP.min(wait.limit));
        }
        self.now().saturating_sub(began) < wait.limit
    }
}
