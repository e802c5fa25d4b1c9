//! A helper in a separate file, at lines unrelated to its caller's.

use crate::common::Log;

pub(crate) fn count_down(rounds: u32, log: &Log) {
    for _ in 0..rounds {
        log.mark(100);
    }
}
