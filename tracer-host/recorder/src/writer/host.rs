//! When launches ran by the host's clocks.

use std::io::Write;

use warptrace_format::file::HostTimes;
use warptrace_format::file::limits::MAX_HOST_LAUNCHES;

use super::{TraceWriter, WriteError};

impl<W: Write + Send> TraceWriter<W> {
    /// Says when launches ran by the host's clocks, and how these stand to the device's timer, and flushes.
    ///
    /// # Errors
    /// More readings of clocks than a section holds, an I/O error.
    pub fn tell_host(&mut self, times: &HostTimes) -> Result<(), WriteError> {
        self.check_usable(0)?;
        let mut readings = times.readings.clone();
        // In each section as many launches as it holds; readings in the first.
        let (parts, none) = (times.launches.chunks(MAX_HOST_LAUNCHES as usize), [&[][..]]);
        for launches in parts.chain(none.into_iter().filter(|_| times.launches.is_empty())) {
            let part = HostTimes { launches: launches.to_vec(), readings: std::mem::take(&mut readings) };
            if !part.is_empty() {
                self.put(&part.encode_section(self.options.compression)?)?;
            }
        }
        self.flush()
    }
}
