//! Event counts of one warp.

/// Maximum number of tracks in one launch: the trace, and its raw twin in a dual recording.
pub const MAX_TRACKS: usize = 2;

/// Event counts of a warp for one launch and track. Every event is recorded or lost. 32 bytes, alignment 8.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct WarpAccount {
    /// Events that reached a trace point, counted separately from the next two fields.
    pub attempted: u64,
    /// Events stored in a chunk.
    pub recorded: u64,
    /// Events that are not in a chunk.
    pub lost: u64,
    /// Chunks written.
    pub chunks: u32,
    /// 1 if the warp's logs were merged and encoded after the launch ended; 0 if log entries remain.
    pub finished: u32,
}

const _: () = assert!(size_of::<WarpAccount>() == 32);

/// Bits of the events in a packed account; the chunks have the rest.
const EVENT_BITS: u32 = 20;

impl WarpAccount {
    /// Returns a word, and whether it holds the account: the warp has finished, and has few events, all recorded.
    #[must_use]
    #[inline(always)]
    pub fn pack(&self) -> (u32, bool) {
        let &Self { attempted, recorded, lost, chunks, finished } = self;
        let is_plain = (attempted == recorded) & (lost == 0) & (finished == 1);
        let fits = (recorded < 1 << EVENT_BITS) & (chunks < 1 << (u32::BITS - EVENT_BITS));
        (recorded as u32 | chunks << EVENT_BITS, is_plain & fits)
    }

    /// Returns the account that [`pack`](Self::pack) has packed.
    #[must_use]
    pub fn unpack(word: u32) -> Self {
        let recorded = u64::from(word & ((1 << EVENT_BITS) - 1));
        Self { attempted: recorded, recorded, lost: 0, chunks: word >> EVENT_BITS, finished: 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packed_account_is_the_account_or_does_not_fit() {
        let plain = WarpAccount { attempted: 9, recorded: 9, lost: 0, chunks: 2, finished: 1 };
        let most =
            WarpAccount { attempted: (1 << 20) - 1, recorded: (1 << 20) - 1, chunks: (1 << 12) - 1, ..plain };
        for account in [plain, most, WarpAccount { finished: 1, ..WarpAccount::default() }] {
            let (word, fits) = account.pack();
            assert!(fits);
            assert_eq!(WarpAccount::unpack(word), account);
        }
        for account in [
            WarpAccount { attempted: 10, ..plain },
            WarpAccount { attempted: 10, lost: 1, ..plain },
            WarpAccount { finished: 0, ..plain },
            WarpAccount { attempted: 1 << 20, recorded: 1 << 20, ..plain },
            WarpAccount { attempted: 9 | 1 << 32, recorded: 9 | 1 << 32, ..plain },
            WarpAccount { chunks: 1 << 12, ..plain },
        ] {
            assert!(!account.pack().1, "{account:?}");
        }
    }
}
