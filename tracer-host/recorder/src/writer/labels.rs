//! What launches are called.

use std::io::Write;

use super::{TraceWriter, WriteError};

impl<W: Write + Send> TraceWriter<W> {
    /// Says what the program called launches, by their numbers. Written before these launches, it is there in a
    /// file that breaks off behind them.
    ///
    /// # Errors
    /// An I/O error.
    pub fn label(&mut self, launches: &[(u32, impl AsRef<str>)]) -> Result<(), WriteError> {
        self.check_usable(0)?;
        let launches: Vec<_> = launches.iter().map(|(launch, label)| (*launch, label.as_ref())).collect();
        let sections = self.labels.encode_sections(&launches);
        sections.iter().try_for_each(|section| self.put(section))?;
        self.flush()
    }
}
