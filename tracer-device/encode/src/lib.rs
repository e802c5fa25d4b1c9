//! Merges the logs of traced kernels and encodes them into chunks.
//!
//! A traced kernel leaves, for each lane, a log of the runs that the lane has kept (`warptrace_abi::log`).
//! Before the host takes chunks out of the pool, the logs of all launches since the last time go through two
//! steps, before which a third one can save most of them:
//!
//! 0. *Classes* (`classes`) are found, if the host asks for them: streams whose logs hold the same runs. One
//!    stream of a class stands for it and goes through the two steps; its chunks are the others', too.
//! 1. *Merging* (`merge`) brings the logs of each stream, a warp's track, into one sequence by the times at
//!    which runs began, and cuts the sequence into *stretches* that are sure to fit into a chunk each. It
//!    claims a chunk for each stretch.
//! 2. *Encoding* (`encode`) fills those chunks: cooperatively, half a warp a stretch, with `predict`;
//!    serially, one thread a stretch, with the other codecs, and where an event is repeated too often for
//!    that.
//!
//! Of streamed logs (`warptrace_abi::stream`), those of warps that have left their kernel can go through the
//! same steps while other warps still run, when `flatten` has gathered them.
//!
//! On a GPU both are kernels of one module, for all codecs; [`merge_call`], [`encode_predict_call`] and
//! [`encode_serial_call`] describe them to the host. On the host [`native`] does the same without a
//! simulator: it makes the same chunks and accounts.
//!
//! # A chunk that waits for its stretch
//! ```text
//! offset  size  field
//!      0     4  warp      as in a chunk
//!      4     4  sequence  as in a chunk
//!      8     4  runs of the stretch
//!     12     4  who is to encode it, 0xfffffffc to 0xffffffff; see `Waiting`
//!     16     4  index of the launch in the table
//!     20     4  track     as in a chunk
//!     24     8  address of the first run
//! ```
//!
//! # A merged run
//! ```text
//! offset  size  field
//!      0     4  mask
//!      4     4  location
//!      8     8  count
//! ```
#![cfg_attr(target_arch = "nvptx64", no_std)]
#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx, asm_experimental_arch))]

#[cfg(not(target_arch = "nvptx64"))]
mod calls;
mod chunks;
mod classes;
mod codec;
mod encode;
mod flatten;
#[cfg(target_arch = "nvptx64")]
mod kernels;
mod lane_log;
mod launches;
mod memory;
mod merge;
mod merged;
#[cfg(not(target_arch = "nvptx64"))]
pub mod native;
mod warp;

#[cfg(not(target_arch = "nvptx64"))]
pub use calls::{
    CLASSES_THREADS, FLATTEN_THREADS, MERGE_THREADS, PREDICT_LANES, PREDICT_THREADS, encode_predict_call,
    encode_serial_call, find_classes_call, flatten_call, link_call, merge_call,
};
pub use codec::{Codec, DEVICE_ECL, DEVICE_PREDICT};
pub use encode::serial_shared_bytes;
pub use flatten::{FLATTENED, FlattenJob, HAS_LOST, JOB_WORDS, NO_ROOM, PENDING};
