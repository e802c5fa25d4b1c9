//! Memory that lanes and the host access concurrently.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Number of polls of a slot that yield the thread; later polls sleep.
const YIELDS: u32 = 64;
/// Time between later polls.
const SLEEP: Duration = Duration::from_micros(20);

/// Memory as 8-byte words, and the time of waiting lanes. Atomics of different sizes must not be mixed.
pub(super) trait LiveWords {
    fn load(&self, address: u64, order: Ordering) -> u64;
    fn store(&self, address: u64, word: u64, order: Ordering);
    /// Returns the word's previous value.
    fn add(&self, address: u64, more: u64, order: Ordering) -> u64;
    fn set_bits(&self, address: u64, bits: u64, order: Ordering);
    /// Pauses a waiting lane. Returns true if the wait has not reached its limit.
    fn pause(&self, wait: &mut Wait) -> bool;
}

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

/// Host memory, with real time or the time of a clock.
pub(super) struct HostWords(Option<&'static AtomicU64>);

impl HostWords {
    /// # Safety
    /// Every address passed to the methods is the address of a word that is valid at that time and aligned to
    /// eight bytes. Others access the word only by atomics of eight bytes.
    pub(super) unsafe fn new(clock: Option<&'static AtomicU64>) -> Self {
        Self(clock)
    }

    /// Returns the time since a fixed moment.
    fn now(&self) -> Duration {
        static START: LazyLock<Instant> = LazyLock::new(Instant::now);
        match self.0 {
            Some(clock) => Duration::from_nanos(clock.load(Ordering::Relaxed)),
            None => START.elapsed(),
        }
    }

    fn word(&self, address: u64) -> &AtomicU64 {
        let word = std::ptr::with_exposed_provenance_mut(address as usize);
        // SAFETY: guaranteed to `new`; the reference lasts no longer than a call.
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
