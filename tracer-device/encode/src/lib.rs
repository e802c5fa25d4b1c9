//! Merges the logs of traced kernels and encodes them into chunks.
//!
//! A traced kernel leaves one log of runs per lane (`warptrace_abi::log`). Before the host collects chunks
//! from the pool, the logs of all launches since the last collection pass through these steps:
//!
//! 0. *Classes* (`classes`), if the host requests them: finds streams whose logs hold the same runs. Only one
//!    stream of a class goes through the next steps. Its chunks represent the whole class.
//! 1. *Merging* (`merge`): brings the logs of each stream (one track of a warp) into one sequence, ordered by
//!    the start times of the runs. Cuts the sequence into *stretches* that are certain to fit into a chunk
//!    each, and reserves a chunk for each stretch.
//! 2. *Encoding* (`encode`): fills those chunks. With `predict`, half a warp encodes a stretch cooperatively,
//!    unless an event of the stretch repeats too often for that. Otherwise, one thread encodes a stretch
//!    serially.
//! 3. *Packing* (`pack`): turns the chunks of addresses and values into tiles, when the host collects them.
//!
//! With streamed logs (`warptrace_abi::stream`), warps that have left their kernel can go through steps 1 and
//! 2 while other warps still run, after `flatten` has gathered their logs. On a GPU, the steps are kernels of
//! one module, for all codecs. The host gets the calls of these kernels from functions such as
//! [`merge_call`], [`encode_predict_call`] and [`encode_serial_call`]. [`native`] takes the same steps on the
//! host without simulating lanes, and produces the same chunks and counts.
//!
//! # A reserved chunk before it is encoded
//! ```text
//! offset  size  field
//!      0     4  warp      as in a chunk
//!      4     4  sequence  as in a chunk
//!      8     4  runs of the stretch
//!     12     4  encoder, 0xfffffffc to 0xffffffff; see `Waiting`
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
//!      8     4  count
//!     12     4  start time, in units of 16 cycles
//! ```
#![cfg_attr(target_arch = "nvptx64", no_std)]
#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx, asm_experimental_arch))]

mod accounts;
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
mod pack;
mod warp;

pub use accounts::{AccountsJob, HEAD_WORDS};
#[cfg(not(target_arch = "nvptx64"))]
pub use calls::{
    ACCOUNTS_THREADS, CLASSES_THREADS, FLATTEN_THREADS, MERGE_THREADS, PACK_THREADS, PREDICT_LANES,
    PREDICT_THREADS, encode_predict_call, encode_serial_call, find_classes_call, flatten_call, link_call,
    merge_call, pack_accounts_call, pack_call, place_call,
};
pub use codec::{Codec, DEVICE_ECL, DEVICE_PREDICT};
pub use encode::serial_shared_bytes;
pub use flatten::{FLATTENED, FlattenJob, HAS_LOST, JOB_WORDS, NO_ROOM, PENDING};
pub use pack::PackJob;
