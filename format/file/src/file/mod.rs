//! The layout of a `.wtrc` file.
//!
//! ```text
//! ┌──────────┐
//! │ preamble │ 24 bytes: magic, version
//! ├──────────┤
//! │ META     │ tool, device, kernels, codecs, locations      exactly one, first
//! ├──────────┤
//! │ ORIG     │ rank, host, device                            at most one
//! │ MORE …   │ kernels and locations known later             before their launches
//! │ TEXT …   │ texts that locations refer to                 any number
//! │ CODE …   │ instructions of locations                     any number
//! │ WAIT …   │ barriers and copies of waits                  any number
//! │ LABL …   │ labels of launches                            any number
//! │ STCK …   │ call stacks of launches                       any number
//! │ UNTR …   │ unrecorded launches                           any number
//! ├──────────┤
//! │ LNCH     │ one launch: kernel, grid, block               before its frames
//! │ FRAM …   │ chunks of that launch, compressed             any number
//! │ TIME     │ times of the runs in the frame's chunks       directly after its frame
//! │ ACCT …   │ event counts, per warp                        any number
//! │ SPAN     │ places and times of these warps               directly after their counts
//! │ SITE …   │ sites: instructions that access memory        any number
//! │ DATA …   │ addresses and values of the launch            any number
//! │ DACC …   │ access counts, per warp                       any number
//! │ BUFS …   │ memory that kernels can access                any number
//! │ ENDS     │ reason for an incomplete launch               if it is incomplete
//! │ HOST …   │ times of launches on the host's clocks        any number
//! ├──────────┤
//! │ INDX …   │ index: LNCH, FRAM, ACCT, ENDS, MORE, TEXT     any number
//! ├──────────┤
//! │ TAIL     │ 48 bytes: offset of the index                 last
//! └──────────┘
//! ```
//!
//! A section is a 24-byte header ([`SectionHeader`]) with tag, version, flags, length and checksums, then the
//! body. All integers are little-endian. `docs/reference/format.md` is the specification.
//!
//! Every parser accepts any bytes. It returns a value or a [`FormatError`] with section, field, file offset
//! and value. It rejects missing and surplus bytes, wrong checksums, contents that do not decompress as
//! announced, and values over the [`limits`], which bound its allocations. An encoder also fails if the
//! compressor fails.
//!
//! A reader lists the versions that it supports: [`READABLE_VERSIONS`] for the file, and one list per section
//! kind. A section whose meaning changes gets a new version. A section that old readers may skip has
//! [`FLAG_OPTIONAL`]. Readers reject unknown flag bits.
#![cfg_attr(not(test), warn(clippy::cast_possible_truncation))]

mod accounts;
mod additions;
mod buffer;
mod code;
mod contents;
pub mod data;
mod early_end;
mod encoded;
mod error;
mod fields;
mod frame;
mod host;
mod index;
mod known_locations;
mod labels;
mod launch;
pub mod limits;
mod loss;
mod metadata;
mod metadata_error;
mod origin;
mod preamble;
mod section;
mod site;
mod spans;
mod stacks;
mod text;
mod tie;
mod times;
mod trailer;
mod unrecorded;
mod wait;

pub use crate::data::{Derived, SiteKind, SiteSpace, ValueType};
pub use accounts::{
    ACCOUNTS_HEADER_BYTES, AccountRun, Accounts, AccountsHeader, decode_accounts, encode_accounts,
};
pub use additions::{Additions, Growing};
pub use buffer::{BufferInfo, BufferKind, Buffers};
pub use code::LocationCode;
pub use early_end::{EarlyEnd, LanesAt, WarpsAt};
pub use error::FormatError;
pub use frame::{
    CHUNK_ENTRY_BYTES, Chunk, ChunkEntry, ChunkRef, Chunks, ClassChunk, Compression, EncodedFrame,
    FRAME_HEADER_BYTES, Frame, FrameHeader, RAW_LEVEL, StoredAs, WarpRun, encode_frame, encode_frame_of,
    encode_frame_of_runs,
};
pub use host::{ClockReading, HostLaunch, HostTimes};
pub use index::{INDEX_HEADER_BYTES, IndexEntry, decode_index, encode_index};
pub use labels::{KnownLabels, LaunchLabels, WrittenLabels, fitting};
pub use launch::{LAUNCH_BYTES, LaunchError, LaunchInfo, StreamId, WARP_LANES};
pub use loss::{LossPosition, LossReason};
pub use metadata::{
    ACCESSES, CLOCK_STEP, COMMAND, COUNTING, DeviceInfo, DeviceKind, KernelInfo, LocationInfo, MEMORY_LIMIT,
    MEMORY_PEAK, Metadata, POINTS, PROGRAM, RecordedPolicy, TIMER_STEP, TIMES, WAITS_LEFT_OUT, WINDOW,
    is_recorders,
};
pub use metadata_error::MetadataError;
pub use origin::{Began, Origin};
pub use preamble::{FILE_VERSION, MAGIC, PREAMBLE_BYTES, READABLE_VERSIONS, check_preamble, encode_preamble};
pub use section::{
    FLAG_OPTIONAL, SECTION_HEADER_BYTES, SectionHeader, SectionKind, Tag, check_body, encode_section,
};
pub use site::{SiteInfo, SiteNumber, decode_sites, encode_sites};
pub use spans::{decode_spans, encode_spans};
pub use stacks::{KnownStacks, LaunchStacks, StackFrame, WrittenStacks};
pub use text::SourceText;
pub use tie::Tie;
pub use times::{ChunkTimes, FrameTimes, RunWalk};
pub use trailer::{TRAILER_BYTES, Trailer};
pub use unrecorded::{Unrecorded, UnrecordedLaunches};
pub use wait::{CopyPlace, MAX_WAIT_COPIES, WaitInfo};
