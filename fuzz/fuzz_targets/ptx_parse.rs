//! Any bytes as PTX.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| warptrace_ptx::fuzzing::parse_arbitrary(data));
