//! Parts of a set, one per file, before their figures are summed. Other processes can send them as bytes.

#[cfg(feature = "bytes")]
use borsh::{BorshDeserialize, BorshSerialize};
use warptrace_decoder::TraceFile;
use warptrace_format::file::Metadata;

use crate::analyse::analyse_renamed;
use crate::error::AnalysisError;
use crate::figures::Analysis;
use crate::points::{Points, weights};
use crate::selection::Selection;

/// Data of a file that is known before its analysis. Its borsh encoding is slightly larger than the metadata.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "bytes", derive(BorshSerialize, BorshDeserialize))]
pub struct FileHead {
    pub(super) name: String,
    pub(super) rank: Option<u32>,
    pub(super) state: String,
    pub(super) is_whole: bool,
    pub(super) lacks_weights: bool,
    // Without the contents of separate sections.
    #[cfg_attr(
        feature = "bytes",
        borsh(serialize_with = "bytes::write_metadata", deserialize_with = "bytes::read_metadata")
    )]
    pub(super) metadata: Metadata,
}

impl FileHead {
    /// Reads the head of a file. `name` is its name in the output.
    pub fn new(name: &str, trace: &TraceFile) -> Self {
        let metadata = trace.metadata();
        Self {
            name: name.to_owned(),
            rank: metadata.origin.as_ref().and_then(|origin| origin.rank),
            state: trace.state().sentence.clone(),
            is_whole: trace.state().is_whole,
            lacks_weights: weights(trace).is_none(),
            metadata: metadata.clone(),
        }
    }
}

/// Figures of one file with its own location ids, to be [added](crate::SetAnalysis::add) to other files. They
/// exclude single warps, so the size of the borsh encoding does not depend on events or warps.
#[derive(Debug)]
#[cfg_attr(feature = "bytes", derive(BorshSerialize, BorshDeserialize))]
pub struct FilePart {
    pub(super) head: FileHead,
    /// Kernel and run time of each launch with a warp that is known to have begun; `None` if not recorded.
    pub(super) launches: Option<Vec<(String, u64)>>,
    /// Figures, or the reason why the file was left out.
    #[cfg_attr(
        feature = "bytes",
        borsh(serialize_with = "bytes::write_found", deserialize_with = "bytes::read_found")
    )]
    pub(super) found: Result<Box<Analysis>, AnalysisError>,
}

impl FilePart {
    /// Analyses a file that is called `name`. The selection's focus is an id of this file. `lacks_weights` is
    /// the value of [`SetTable::lacks_weights`](crate::SetTable::lacks_weights) for the set. Fails as
    /// [`analyse`](crate::analyse), except for parts of the selection that the file does not have.
    pub fn new(
        name: &str,
        trace: &TraceFile,
        selection: &Selection,
        lacks_weights: bool,
    ) -> Result<Self, AnalysisError> {
        let points = Points::new(trace);
        let points = if lacks_weights { points.without_weights() } else { points };
        let mut launches = None;
        let found = match analyse_renamed(points, trace, selection, None) {
            Ok(mut found) => {
                launches = found.schedule.take().map(|schedule| {
                    schedule.launches.into_iter().map(|launch| (launch.kernel, launch.nanoseconds)).collect()
                });
                Ok(Box::new(found))
            }
            Err(error) if error.is_of_selection() => Err(error),
            Err(error) => return Err(error),
        };
        Ok(Self { head: FileHead::new(name, trace), launches, found })
    }
}

#[cfg(feature = "bytes")]
mod bytes {
    use std::io::{Error, ErrorKind, Read, Result, Write};

    use borsh::{BorshDeserialize, BorshSerialize};
    use warptrace_format::file::Metadata;

    use crate::error::AnalysisError;
    use crate::figures::Analysis;

    pub(super) fn write_metadata(metadata: &Metadata, out: &mut impl Write) -> Result<()> {
        metadata.encode().map_err(invalid)?.serialize(out)
    }

    pub(super) fn read_metadata(from: &mut impl Read) -> Result<Metadata> {
        Metadata::decode(&Vec::<u8>::deserialize_reader(from)?, 0).map_err(invalid)
    }

    pub(super) fn write_found(
        found: &std::result::Result<Box<Analysis>, AnalysisError>,
        out: &mut impl Write,
    ) -> Result<()> {
        found.as_ref().map_err(ToString::to_string).serialize(out)
    }

    pub(super) fn read_found(
        from: &mut impl Read,
    ) -> Result<std::result::Result<Box<Analysis>, AnalysisError>> {
        let found = std::result::Result::<Box<Analysis>, String>::deserialize_reader(from)?;
        Ok(found.map_err(AnalysisError::NotThere))
    }

    fn invalid(error: impl std::error::Error + Send + Sync + 'static) -> Error {
        Error::new(ErrorKind::InvalidData, error)
    }
}
