//! Any bytes as a payload of each codec.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| warptrace_format::codec::fuzzing::decode_arbitrary(data));
